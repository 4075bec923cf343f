"""The processors of an emulated host, which its computing tasks share: computing is a sleep whose length others change.

All tasks that compute at once go on at the same pace: at full speed, or, where there are more of them than processors,
at the share that is left for each (processor sharing). The clock of all tasks is virtual time: the work that a task has
done which has computed all along. A task ends at a moment of virtual time that is known when it begins (A. K. Parekh,
R. G. Gallager: A generalized processor sharing approach to flow control, IEEE/ACM Transactions on Networking 1, 1993).
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush

LOOK_SECONDS = 0.5
"""A computing task looks this often whether it is to stop."""


@dataclass(order=True)
class Computing:
    """A task that computes until the moment ``due`` of virtual time. It is woken where its end comes nearer."""

    due: float
    number: int
    woken: threading.Event = field(default_factory=threading.Event, compare=False)


class Shares:
    """Who computes on so many processors, and how far each is. Pure: ``now`` is a moment in seconds, never earlier
    than the one before. It is not thread-safe."""

    def __init__(self, processors: int) -> None:
        self._processors = processors
        self._computing: list[Computing] = []
        self._numbers = 0
        self._virtual = 0.0
        self._since = 0.0

    def begin(self, now: float, seconds: float) -> Computing:
        """Add a task that takes so long on a processor of its own."""
        self._advance(now)
        self._numbers += 1
        task = Computing(self._virtual + seconds, self._numbers)
        heappush(self._computing, task)
        return task

    def left(self, now: float, task: Computing) -> float:
        """Returns the seconds until the end of a task, if no other comes or goes meanwhile; 0 or less: it has ended."""
        self._advance(now)
        return (task.due - self._virtual) / self._pace()

    def end(self, now: float, task: Computing) -> Computing | None:
        """Take a task away. Returns the one that ends next, which now ends sooner; None where none is left."""
        self._advance(now)
        if self._computing[0] is task:
            heappop(self._computing)
        else:
            self._computing.remove(task)
            heapify(self._computing)
        return self._computing[0] if self._computing else None

    def _advance(self, now: float) -> None:
        if self._computing:
            self._virtual += (now - self._since) * self._pace()
        self._since = now

    def _pace(self) -> float:
        """Returns the share of a processor that each computing task has."""
        return min(1.0, self._processors / len(self._computing))


class Processor:
    """So many processors of one host. Any thread may compute; all of a host's tasks must be in one process."""

    def __init__(self, processors: int) -> None:
        self._shares = Shares(processors)
        self._lock = threading.Lock()

    def compute(self, seconds: float, stopped: threading.Event) -> bool:
        """Compute what takes so long on a processor of its own. Returns False where the task was stopped before."""
        with self._lock:
            task = self._shares.begin(time.monotonic(), seconds)
        try:
            while (left := self._left(task)) > 0:
                task.woken.wait(min(left, LOOK_SECONDS))
                task.woken.clear()
                if stopped.is_set():
                    return False
            return True
        finally:
            with self._lock:
                following = self._shares.end(time.monotonic(), task)
            if following is not None:
                following.woken.set()

    def _left(self, task: Computing) -> float:
        with self._lock:
            return self._shares.left(time.monotonic(), task)
