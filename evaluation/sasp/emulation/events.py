"""What a parameter server does, one thing after the other, and how late workers' parameters are. Pure."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from sys import maxsize
from typing import Literal, NamedTuple, Protocol

from sasp.core.scheme import Scheme


class Event(NamedTuple):
    """The server takes in a worker's gradients of a chunk (``push``), or reads the chunk to answer them (``send``).

    ``at``: seconds by any clock, where it was recorded.
    """

    kind: Literal["push", "send"]
    worker: int
    chunk: int
    iteration: int
    at: float = 0.0


def even_events(scheme: Scheme, workers: int, chunks: int, iterations: range) -> Iterator[Event]:
    """Workers that are equally fast: under BSP all are answered together, else one after the other.

    So under SSP and ASP every other worker's gradients come in once while a worker computes.
    """
    for iteration in iterations:
        for worker in range(workers):
            yield from (Event("push", worker, chunk, iteration) for chunk in range(chunks))
            if not scheme.together:
                yield from (Event("send", worker, chunk, iteration) for chunk in range(chunks))
        if scheme.together:
            for worker in range(workers):
                yield from (Event("send", worker, chunk, iteration) for chunk in range(chunks))


class Lateness(Protocol):
    """How late parameters are. Layers are numbered front first, iterations count from 1."""

    def newest(self, worker: int, iteration: int, layer: int, start: int) -> int:
        """The newest iteration that a worker computes with: of the layer's chunk that begins with element ``start``."""


def taken(answers: Iterable[int], used: int, at_least: int, wanted: int) -> int:
    """Return the version of a chunk that a worker computes with: the newest of ``answers`` up to ``wanted``.

    If that is older than ``at_least``, which the scheme needs, it is the oldest answer that is not. That happens where
    a recording repeats: the server may have sent a newer version in the place of the one that was used.
    """
    newer = [version for version in answers if version > used]
    newest = max((version for version in newer if version <= wanted), default=used)
    if newest >= at_least:
        return newest
    return min((version for version in newer if version >= at_least), default=newest)


class EvenlyLate(NamedTuple):
    """Every layer always lacks as many iterations as its lead allows."""

    leads: Sequence[int]

    def newest(self, worker: int, iteration: int, layer: int, start: int) -> int:
        """All chunks of a layer are of the same iteration."""
        del worker, start
        return max(0, iteration - 1 - self.leads[layer])


class Used(NamedTuple):
    """A worker computes in ``iteration``, and from then on, with a chunk of a layer as it is after ``version``.

    ``start``: the chunk's first element; over all-reduce layers are whole.
    """

    worker: int
    iteration: int
    layer: int
    start: int
    version: int


class RecordedLateness:
    """Chunks are as late as they were."""

    def __init__(self, used: Iterable[Used]) -> None:
        self._versions: dict[tuple[int, int, int], list[tuple[int, int]]] = {}
        for one in sorted(used):
            place = one.worker, one.layer, one.start
            self._versions.setdefault(place, []).append((one.iteration, one.version))

    def newest(self, worker: int, iteration: int, layer: int, start: int) -> int:
        """The version that the chunk had got by this iteration."""
        versions = self._versions.get((worker, layer, start), [])
        place = bisect_right(versions, (iteration, maxsize))
        return versions[place - 1][1] if place else 0
