"""One iteration played through: a worker's operators one after the other, its gradients on the wire beside them. Pure.

All workers do the same at the same time; the one that is shown is the slowest. The device works in order. A bucket is
sent when its last gradient is whole and the buckets before it have gone; a transfer waits until the links that it
needs are free. Where a machine's cores are all busy, what the wire needs of them the operators lack.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from deepprophet.predict.exchange import Transfer

Kind = Literal["compute", "communicate"]


@dataclass(frozen=True, slots=True)
class Step:
    """A piece of a worker's own work: seconds, what it is, and the bucket that is whole at its end, if one is."""

    name: str
    seconds: float
    bucket: int | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """An iteration: transfers before it, steps until all gradients are there, each bucket's transfers, steps after."""

    before: tuple[Transfer, ...]
    steps: tuple[Step, ...]
    buckets: tuple[tuple[Transfer, ...], ...]
    after: tuple[Step, ...]
    stretch: float = 1.0
    crowded: bool = False


@dataclass(frozen=True, slots=True)
class Span:
    """Something that took from ``start`` to ``end``; ``cause``: the place of the span that it had to wait for."""

    name: str
    kind: Kind
    start: float
    end: float
    cause: int | None = None


@dataclass(frozen=True)
class Played:
    """What became of a plan: seconds in all, what was done when, and the places of the spans that decide how long it
    takes.

    ``exposed``: seconds in which the device waits for the wire; ``overlapped``: in which both work.
    """

    seconds: float
    compute: float
    exposed: float
    overlapped: float
    spans: tuple[Span, ...]
    critical: tuple[int, ...]


def play(plan: Plan) -> Played:
    """Play an iteration through."""
    return _Player(plan).played()


@dataclass
class _Player:
    plan: Plan
    spans: list[Span] = field(default_factory=list)
    _free: dict[tuple[str, bool], tuple[float, int]] = field(default_factory=dict)
    _sent: list[tuple[float, float, float]] = field(default_factory=list)

    def played(self) -> Played:
        now, before = 0.0, None
        for transfer in self.plan.before:
            now, before = self._send("buffers", transfer, now, before)
        now, before, last = self._all_steps(now, before)
        if last is not None and self.spans[last].end > now:
            now, before = self.spans[last].end, last
        for step in self.plan.after:
            now, before = self._step(step, now, before)
        return self._summed(now)

    def _all_steps(self, now: float, before: int | None) -> tuple[float, int | None, int | None]:
        """Until all gradients are there: when, after which span, and the last span on the wire."""
        whole: set[int] = set()
        next_bucket, last = 0, None
        for step in self.plan.steps:
            now, before = self._step(step, now, before)
            if step.bucket is not None:
                whole.add(step.bucket)
            # Buckets go in order, however they become whole.
            while next_bucket in whole:
                at, cause = now, before
                for transfer in self.plan.buckets[next_bucket]:
                    at, cause = self._send(f"bucket {next_bucket + 1}", transfer, at, cause)
                if self.plan.buckets[next_bucket] and (last is None or at >= self.spans[last].end):
                    last = cause
                next_bucket += 1
        return now, before, last

    def _step(self, step: Step, now: float, before: int | None) -> tuple[float, int | None]:
        """A step of the device's; with what is on the wire meanwhile."""
        left, at = step.seconds * self.plan.stretch, now
        while left > 0:
            speed, until = self._speed(at)
            if (until - at) * speed >= left:
                at += left / speed
                break
            left -= (until - at) * speed
            at = until
        return self._span(step.name, "compute", now, at, before) if at > now else (now, before)

    def _send(self, name: str, transfer: Transfer, requested: float, cause: int | None) -> tuple[float, int | None]:
        """A transfer starts when all of its links are free, in the order of asking."""
        start = requested
        for link in transfer.links:
            free, held = self._free.get(link, (0.0, 0))
            if free > start:
                start, cause = free, held
        if transfer.seconds <= 0:
            return start, cause
        self._sent.append((start, start + transfer.seconds, transfer.work / transfer.seconds))
        end, place = self._span(name, "communicate", start, start + transfer.seconds, cause)
        for link in transfer.links:
            self._free[link] = (end, place)
        return end, place

    def _span(self, name: str, kind: Kind, start: float, end: float, cause: int | None) -> tuple[float, int]:
        self.spans.append(Span(name, kind, start, end, cause))
        return end, len(self.spans) - 1

    def _speed(self, at: float) -> tuple[float, float]:
        """What is left of the device's speed at a moment, and until when."""
        until, taken = float("inf"), 0.0
        for start, end, work in self._sent:
            if start > at:
                until = min(until, start)
            elif end > at:
                until = min(until, end)
                taken += work
        return (1.0 / (1.0 + taken) if self.plan.crowded else 1.0), until

    def _summed(self, end: float) -> Played:
        compute = [(s.start, s.end) for s in self.spans if s.kind == "compute"]
        talking = [(s.start, s.end) for s in self.spans if s.kind == "communicate"]
        busy = union(compute)
        path: list[int] = []
        place = max(range(len(self.spans)), key=lambda n: self.spans[n].end, default=None)
        while place is not None:
            path.append(place)
            place = self.spans[place].cause
        return Played(
            seconds=end,
            compute=busy,
            exposed=max(end - busy, 0.0),
            overlapped=max(busy + union(talking) - union([*compute, *talking]), 0.0),
            spans=tuple(self.spans),
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
