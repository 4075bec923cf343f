"""The order of sending: one priority queue for each destination, and the slowest destinations first. Pure.

What is due first goes first: the bound on staleness waits for it. Of what is due at once the oldest iteration goes
first, and then front layers, because the next forward pass needs them first. A chunk that has begun is finished: the
order counts at chunk borders.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import Literal

Discipline = Literal["priority", "fifo"]

PATIENCE_SECONDS = 0.02
"""The sender waits this long for a straggler's full socket before the next destination gets a chunk, so that a link
that is slow for another reason does not leave the sender's own link idle."""


class ChunkQueue:
    """The chunks that wait for one destination.

    ``supersede``: contents are read when they are sent, so a chunk that waits already is not queued twice: it goes at
    its old place, with its new iteration.
    """

    def __init__(self, discipline: Discipline = "priority", *, supersede: bool = False) -> None:
        self._fifo = discipline == "fifo"
        self._supersede = supersede
        self._heap: list[tuple[int, int, int]] = []
        self._latest: dict[int, int] = {}
        self._turn = 0

    def put(self, chunk: int, iteration: int, due: int = 0) -> None:
        """Add ``chunk`` (numbered front first) of ``iteration`` to the queue.

        ``due``: the iteration whose end must see it there, if that is not its own (see ``Leads``).
        """
        if self._supersede:
            waits = chunk in self._latest
            self._latest[chunk] = max(self._latest.get(chunk, 0), iteration)
            if waits:
                return
        self._turn += 1
        heappush(self._heap, (self._turn if self._fifo else max(due, iteration), iteration, chunk))

    def dequeue(self) -> tuple[int, int] | None:
        """Remove and return the chunk to send now, with its iteration; None where nothing waits."""
        if not self._heap:
            return None
        _place, iteration, chunk = heappop(self._heap)
        return chunk, self._latest.pop(chunk) if self._supersede else iteration

    def __len__(self) -> int:
        return len(self._heap)


@dataclass
class Turns:
    """Decides which destination gets the next chunk; without ``stragglers_first`` all have it in turn."""

    stragglers_first: bool = True
    patience: float = PATIENCE_SECONDS
    _blocked_since: dict[int, float] = field(default_factory=dict)
    _last: int = -1

    def pick(
        self, waiting: Mapping[int, int], writable: Collection[int], now: float
    ) -> tuple[int | None, float | None]:
        """Return the destination to send to, or None and perhaps the seconds after which to call again.

        ``waiting``: the clock of each destination that something waits for; ``writable``: those that can take a chunk
        without blocking. The destination that is furthest behind is served alone while it can take chunks at all.
        """
        for gone in [
            destination for destination in self._blocked_since if destination not in waiting or destination in writable
        ]:
            del self._blocked_since[gone]
        if not self.stragglers_first:
            return self._in_turn([destination for destination in waiting if destination in writable]), None
        least = min(waiting.values(), default=0)
        behind = [destination for destination, clock in waiting.items() if clock == least]
        for destination in waiting:
            if destination not in writable:
                self._blocked_since.setdefault(destination, now)
        if ready := [destination for destination in behind if destination in writable]:
            return self._in_turn(ready), None
        until = min((self._blocked_since[destination] + self.patience for destination in behind), default=now)
        others = [destination for destination in waiting if destination in writable]
        if until > now:
            return None, (until - now if others else None)
        if others:
            for destination in behind:
                self._blocked_since[destination] = now
            nearest = min(waiting[destination] for destination in others)
            return self._in_turn([destination for destination in others if waiting[destination] == nearest]), None
        return None, None

    def _in_turn(self, ready: Sequence[int]) -> int | None:
        """The next after the last one served, by number."""
        if not ready:
            return None
        self._last = min(ready, key=lambda destination: (destination <= self._last, destination))
        return self._last
