"""Tasks of devices and transfers between hosts, played through: each starts when all that it waits for has ended. Pure.

A device does its tasks in the order in which they are listed. Transfers of one queue start in that order, too, as one
communicator sends them, and hold their links alone. Where a machine's cores are all busy, what transfers take from them
the devices lack.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from deepprophet.predict.network import Port

Kind = Literal["compute", "communicate"]

_ENDED = 1e-12
"""A task has ended when this share of it is left: numbers are rounded."""


@dataclass(frozen=True, slots=True)
class Task:
    """Something that takes ``seconds`` once the tasks at the places ``after`` have ended.

    With a ``device`` it computes there; without one it is a transfer, which holds ``links``, takes ``work`` seconds
    from a worker that computes meanwhile, and starts after those before it in its ``queue``.
    """

    name: str
    seconds: float
    after: tuple[int, ...] = ()
    device: int | None = None
    links: frozenset[Port] = frozenset()
    work: float = 0.0
    queue: str = ""


@dataclass(frozen=True, slots=True)
class Span:
    """Something that took from ``start`` to ``end``; ``cause``: the place of the span that it had to wait for."""

    name: str
    kind: Kind
    start: float
    end: float
    cause: int | None = None
    device: int = 0


@dataclass(frozen=True)
class Played:
    """What became of tasks: seconds in all, what was done when, and the places of the spans that decide how long it
    takes.

    ``compute``: seconds of the device that computes longest; ``exposed``: those in which it waits; ``overlapped``:
    those in which devices and links both work.
    """

    seconds: float
    compute: float
    exposed: float
    overlapped: float
    spans: tuple[Span, ...]
    critical: tuple[int, ...]


def play(tasks: Sequence[Task], *, stretch: float = 1.0, crowded: bool = False) -> Played:
    """Play tasks through; what devices do takes ``stretch`` times as long. Raises ValueError if some wait for ever."""
    return _Player(tasks, stretch, crowded=crowded).played()


@dataclass(slots=True)
class _Running:
    place: int
    start: float
    left: float
    cause: int | None


class _Player:
    def __init__(self, tasks: Sequence[Task], stretch: float, *, crowded: bool) -> None:
        self._tasks, self._stretch, self._crowded = tasks, stretch, crowded
        self._now = 0.0
        self._spans: list[Span] = []
        self._running: dict[int, _Running] = {}
        self._waits = [len(set(task.after)) for task in tasks]
        self._waiting_for: dict[int, list[int]] = defaultdict(list)
        self._lines: dict[int | str, deque[int]] = defaultdict(deque)
        """The tasks of a device, or of a queue, that have not started."""
        self._after: dict[int, int | None] = {}
        """By a task that has ended the span that ended it."""
        self._holders: dict[Port | int | str, int | None] = {}
        """By a link, a device or a queue the span that held it last."""
        self._busy: set[Port | int] = set()
        for place, task in enumerate(tasks):
            self._lines[task.queue if task.device is None else task.device].append(place)
            for earlier in set(task.after):
                self._waiting_for[earlier].append(place)

    def played(self) -> Played:
        while True:
            self._start_all()
            if not self._running:
                break
            self._advance()
        if len(self._after) < len(self._tasks):
            raise ValueError("tasks wait for each other")
        return _summed(self._spans, self._now)

    def _start_all(self) -> None:
        """Start what can start now; what takes no time ends at once, and may let others start."""
        while ready := sorted(line[0] for line in self._lines.values() if line and self._can_start(line[0])):
            for place in ready:
                if self._can_start(place):
                    self._start(place)

    def _can_start(self, place: int) -> bool:
        task = self._tasks[place]
        return not self._waits[place] and not (self._busy & self._held_by(task))

    def _held_by(self, task: Task) -> set[Port | int]:
        return {task.device} if task.device is not None else set(task.links)

    def _start(self, place: int) -> None:
        task = self._tasks[place]
        line: int | str = task.queue if task.device is None else task.device
        self._lines[line].popleft()
        cause = self._cause(task, line)
        if task.device is None or task.seconds <= 0:
            # What comes after it in its line has waited for as much.
            self._holders[line] = cause
        if task.seconds <= 0:
            self._end(place, cause)
            return
        self._busy |= self._held_by(task)
        seconds = task.seconds * (1.0 if task.device is None else self._stretch)
        self._running[place] = _Running(place, self._now, seconds, cause)

    def _cause(self, task: Task, line: int | str) -> int | None:
        """The span that ended last of those that the task had to wait for."""
        held: Iterable[Port | int | str] = (line, *task.links)
        before = [self._after[place] for place in task.after] + [self._holders.get(each) for each in held]
        return max((span for span in before if span is not None), key=lambda span: self._spans[span].end, default=None)

    def _end(self, place: int, span: int | None) -> None:
        self._after[place] = span
        for later in self._waiting_for[place]:
            self._waits[later] -= 1

    def _advance(self) -> None:
        """Go on to the moment when the next task ends."""
        speed = self._device_speed()
        speeds = {place: 1.0 if self._tasks[place].device is None else speed for place in self._running}
        soonest = min(self._running.values(), key=lambda one: one.left / speeds[one.place])
        step = soonest.left / speeds[soonest.place]
        self._now += step
        for one in list(self._running.values()):
            one.left -= step * speeds[one.place]
            if one is soonest or one.left <= _ENDED * self._tasks[one.place].seconds:
                self._finish(one)

    def _device_speed(self) -> float:
        if not self._crowded:
            return 1.0
        sending = (self._tasks[place] for place in self._running if self._tasks[place].device is None)
        # Workers that share a core all send: it works for each of them.
        return 1.0 / (1.0 + self._stretch * sum(task.work / task.seconds for task in sending))

    def _finish(self, one: _Running) -> None:
        task = self._tasks[one.place]
        del self._running[one.place]
        self._busy -= self._held_by(task)
        kind: Kind = "communicate" if task.device is None else "compute"
        self._spans.append(Span(task.name, kind, one.start, self._now, one.cause, task.device or 0))
        span = len(self._spans) - 1
        for each in (*task.links, *(() if task.device is None else (task.device,))):
            self._holders[each] = span
        self._end(one.place, span)


def _summed(spans: Sequence[Span], end: float) -> Played:
    devices: dict[int, list[tuple[float, float]]] = defaultdict(list)
    for span in spans:
        if span.kind == "compute":
            devices[span.device].append((span.start, span.end))
    compute = [interval for intervals in devices.values() for interval in intervals]
    talking = [(span.start, span.end) for span in spans if span.kind == "communicate"]
    busy = max(map(union, devices.values()), default=0.0)
    path: list[int] = []
    place = max(range(len(spans)), key=lambda n: spans[n].end, default=None)
    while place is not None:
        path.append(place)
        place = spans[place].cause
    return Played(
        seconds=end,
        compute=busy,
        exposed=max(end - busy, 0.0),
        overlapped=max(union(compute) + union(talking) - union([*compute, *talking]), 0.0),
        spans=tuple(spans),
        critical=tuple(path[::-1]),
    )


def union(intervals: Sequence[tuple[float, float]]) -> float:
    """Seconds that at least one of the intervals covers."""
    covered, reached = 0.0, float("-inf")
    for start, end in sorted(intervals):
        if end > reached:
            covered += end - max(start, reached)
            reached = end
    return covered
