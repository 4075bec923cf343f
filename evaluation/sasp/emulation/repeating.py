"""A long job out of a short recording: its middle iterations follow one another again and again. Pure.

Each worker's iterations repeat at its own pace, under a bound on staleness at the mean pace of all. Where a repetition
ends and the next begins, an order could come up that the real server would not have allowed; what is not allowed yet
waits there, by the server's own rules.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from heapq import heappop, heappush
from statistics import fmean

from evaluation.sasp.emulation.events import Event, Used
from sasp.core.errors import SaspError
from sasp.core.scheme import Scheme, Versions


def repeated_use(used: Iterable[Used], first: int, last: int, iterations: int) -> Iterator[Used]:
    """What workers compute with in ``iterations`` iterations, those from ``first`` to before ``last`` again and again.

    How much they lack is what they lacked.
    """
    length = last - first
    for one in used:
        if one.iteration < last:
            yield one
        if first <= one.iteration < last:
            for later in range(length, iterations - one.iteration + 1, length):
                yield one._replace(iteration=one.iteration + later, version=one.version + later)


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
    length, coming = last - first, list[tuple[float, int, Event]]()
    for place, event in enumerate(events):
        repetitions = range((iterations - event.iteration) // length + 1) if event.iteration >= first else range(1)
        for number in repetitions if event.iteration < last else ():
            later = event._replace(
                iteration=event.iteration + number * length, at=event.at + number * periods[event.worker]
            )
            heappush(coming, (later.at, place, later))
    return _allowed((heappop(coming)[2] for _ in range(len(coming))), scheme, workers, _chunks(events))


def _begin(events: Sequence[Event], worker: int, iteration: int) -> float:
    """When the first of a worker's gradients of an iteration came in. Raises SaspError."""
    times = [e.at for e in events if e.kind == "push" and e.worker == worker and e.iteration == iteration]
    if not times:
        raise SaspError(f"worker {worker} has no iteration {iteration} in this recording")
    return min(times)


def _chunks(events: Sequence[Event]) -> int:
    return 1 + max(event.chunk for event in events)


def _allowed(events: Iterable[Event], scheme: Scheme, workers: int, chunks: int) -> Iterator[Event]:
    """The events in an order that the server allows: what is not allowed yet waits for what allows it."""
    rules, waiting = _Rules(scheme, workers, chunks), list[Event]()
    for event in events:
        waiting.append(event)
        while (allowed := next((one for one in waiting if rules.allow(one)), None)) is not None:
            waiting.remove(allowed)
            rules.note(allowed)
            yield allowed
    if waiting:
        raise SaspError(f"the recording lacks what {waiting[0]} waits for")


class _Rules:
    """What a server may do now, which is what workers can have asked for."""

    def __init__(self, scheme: Scheme, workers: int, chunks: int) -> None:
        self._lead = scheme.lead
        self._versions = Versions(workers, chunks, scheme)
        self._chunks = chunks
        self._pushed = Counter[tuple[int, int]]()
        self._due = Counter[tuple[int, int]]()
        self._sent = Counter[tuple[int, int]]()

    def allow(self, event: Event) -> bool:
        """Whether it may be next."""
        place = event.worker, event.chunk
        if event.kind == "send":
            # An answer to what a newer one has answered already is never sent.
            return self._sent[place] < event.iteration <= self._due[place]
        return event.iteration == self._pushed[place] + 1 and all(
            self._sent[event.worker, chunk] >= event.iteration - 1 - self._lead for chunk in range(self._chunks)
        )

    def note(self, event: Event) -> None:
        """It was done."""
        place = event.worker, event.chunk
        if event.kind == "send":
            self._sent[place] = event.iteration
            return
        self._pushed[place] = event.iteration
        for worker, iteration in self._versions.push(event.worker, event.chunk, event.iteration):
            self._due[worker, event.chunk] = iteration
