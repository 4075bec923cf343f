"""A long job out of a short recording: its middle iterations follow one another again and again. Pure.

Each worker's iterations repeat at its own pace, under a bound on staleness at the mean pace of all. Where a repetition
ends and the next begins, an order could come up that the real server would not have allowed; what is not allowed yet
waits there, by the server's own rules.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from heapq import heapify, heappop, heapreplace
from itertools import count
from statistics import fmean
from sys import maxsize

from evaluation.sasp.emulation.events import Event, Used
from sasp.core.errors import SaspError
from sasp.core.scheme import Scheme, Versions


class RepeatedLateness:
    """Chunks are as late as they were in the iterations from ``first`` to before ``last``, which repeat for ever."""

    def __init__(self, used: Iterable[Used], first: int, last: int) -> None:
        self._first, self._last = first, last
        self._versions: dict[tuple[int, int, int], list[tuple[int, int]]] = {}
        for one in sorted(one for one in used if one.iteration < last):
            self._versions.setdefault((one.worker, one.layer, one.start), []).append((one.iteration, one.version))

    def newest(self, worker: int, iteration: int, layer: int, start: int) -> int:
        """The version that the chunk has got by this iteration."""
        versions, length, before = self._versions.get((worker, layer, start), []), self._last - self._first, 0
        if iteration >= self._last:
            before, inside = divmod(iteration - self._first, length)
            iteration = self._first + inside
        place = bisect_right(versions, (iteration, maxsize))
        if before and (not place or versions[place - 1][0] < self._first):
            # Nothing has come yet in this repetition, so the last of the one before it counts.
            place, before = len(versions), before - 1
        version = versions[place - 1] if place else (0, 0)
        return version[1] + (before * length if version[0] >= self._first else 0)


def repeated_events(
    events: Sequence[Event], scheme: Scheme, *, first: int, last: int, iterations: int
) -> Iterator[Event]:
    """What the server does in ``iterations`` iterations, those from ``first`` to before ``last`` again and again.

    Raises SaspError where the recording does not reach ``last``, or lacks something that all else waits for.
    """
    workers = 1 + max(event.worker for event in events)
    periods = [_begin(events, worker, last) - _begin(events, worker, first) for worker in range(workers)]
    if scheme.bound is not None:
        periods = [fmean(periods)] * workers
    coming = _in_time(events, periods, first=first, last=last, iterations=iterations)
    return _allowed(coming, _Rules(scheme, workers, _chunks(events), _answers(events, first, last)))


def _in_time(
    events: Sequence[Event], periods: Sequence[float], *, first: int, last: int, iterations: int
) -> Iterator[Event]:
    """The events and their repetitions, one after the other; ``periods``: seconds of a repetition, by worker."""
    length = last - first
    end = min(last, max(first, iterations + 1))
    coming = [(event.at, place, 0) for place, event in enumerate(events) if event.iteration < end]
    heapify(coming)
    while coming:
        at, place, number = coming[0]
        kind, worker, chunk, begun, begun_at = events[place]
        yield Event(kind, worker, chunk, begun + number * length, at)
        number += 1
        if begun >= first and begun + number * length <= iterations:
            heapreplace(coming, (begun_at + number * periods[worker], place, number))
        else:
            heappop(coming)


def _answers(events: Iterable[Event], first: int, last: int) -> Mapping[tuple[int, int], Iterator[int]]:
    """The iterations of which each worker gets each chunk; of others the server has sent a newer one instead."""
    answered: dict[tuple[int, int], list[int]] = {}
    for event in events:
        if event.kind == "send" and event.iteration < last:
            answered.setdefault((event.worker, event.chunk), []).append(event.iteration)
    return {place: _repeated(sorted(iterations), first, last - first) for place, iterations in answered.items()}


def _repeated(iterations: Sequence[int], first: int, length: int) -> Iterator[int]:
    yield from (iteration for iteration in iterations if iteration < first)
    again = [iteration for iteration in iterations if iteration >= first]
    for begin in count(0, length) if again else ():
        yield from (begin + iteration for iteration in again)


def _begin(events: Sequence[Event], worker: int, iteration: int) -> float:
    """When the first of a worker's gradients of an iteration came in. Raises SaspError."""
    times = [e.at for e in events if e.kind == "push" and e.worker == worker and e.iteration == iteration]
    if not times:
        raise SaspError(f"worker {worker} has no iteration {iteration} in this recording")
    return min(times)


def _chunks(events: Sequence[Event]) -> int:
    return 1 + max(event.chunk for event in events)


def _allowed(events: Iterable[Event], rules: _Rules) -> Iterator[Event]:
    """The events in an order that the server allows: what is not allowed yet waits for what allows it."""
    waiting = list[Event]()
    for event in events:
        waiting.append(event)
        while (allowed := next((one for one in waiting if rules.allow(one)), None)) is not None:
            waiting.remove(allowed)
            rules.note(allowed)
            yield allowed
    if waiting:
        raise SaspError(f"the recording lacks what {waiting[0]} waits for")


class _Rules:
    """What a server may do now: what workers can have asked for, and a worker's answers one after the other."""

    def __init__(
        self, scheme: Scheme, workers: int, chunks: int, answers: Mapping[tuple[int, int], Iterator[int]]
    ) -> None:
        self._lead = scheme.lead
        self._versions = Versions(workers, chunks, scheme)
        self._chunks = chunks
        self._pushed = Counter[tuple[int, int]]()
        self._due = Counter[tuple[int, int]]()
        self._sent = Counter[tuple[int, int]]()
        self._answers = answers
        self._next = {place: next(iterations) for place, iterations in answers.items()}

    def allow(self, event: Event) -> bool:
        """Whether it may be next."""
        place = event.worker, event.chunk
        if event.kind == "send":
            # A newer one that came first would leave this one unsent: it would answer both.
            return self._next[place] == event.iteration <= self._due[place]
        return event.iteration == self._pushed[place] + 1 and all(
            self._sent[event.worker, chunk] >= event.iteration - 1 - self._lead for chunk in range(self._chunks)
        )

    def note(self, event: Event) -> None:
        """It was done."""
        place = event.worker, event.chunk
        if event.kind == "send":
            self._sent[place] = event.iteration
            self._next[place] = next(self._answers[place], 0)
            return
        self._pushed[place] = event.iteration
        for worker, iteration in self._versions.push(event.worker, event.chunk, event.iteration):
            self._due[worker, event.chunk] = iteration
