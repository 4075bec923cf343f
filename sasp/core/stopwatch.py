"""When, in an iteration, layers are needed and gradients are ready, with the waiting taken out. Pure; times come in."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import NamedTuple


class Measured(NamedTuple):
    """Medians over iterations, in seconds without waiting; ``iteration`` is with it.

    ``needed``, ``ready``: by layer, from the iteration's begin.
    """

    needed: tuple[float, ...]
    ready: tuple[float, ...]
    computing: float
    iteration: float


class _Row(NamedTuple):
    """One iteration."""

    needed: list[float]
    ready: list[float]
    computing: float
    whole: float


class Stopwatch:
    """Times of iterations that follow one another. A layer that an iteration did not use counts at its end."""

    def __init__(self, layers: int) -> None:
        self._layers = layers
        self._begin: float | None = None
        self._waited = 0.0
        self._needed: dict[int, float] = {}
        self._ready: dict[int, float] = {}
        self._rows: list[_Row] = []

    def begin(self, now: float) -> None:
        """Forget what was measured; an iteration begins now."""
        self._rows.clear()
        self._next(now)

    def stop(self) -> None:
        """Measure nothing until the next ``begin``."""
        self._rows.clear()
        self._begin = None

    def needed(self, layer: int, now: float, until: float) -> None:
        """A layer is needed now, and is waited for until then."""
        if self._begin is None:
            return
        self._needed.setdefault(layer, now - self._begin - self._waited)
        self._waited += until - now

    def ready(self, layer: int, now: float) -> None:
        """A layer's gradients are there."""
        if self._begin is not None:
            self._ready[layer] = now - self._begin - self._waited

    def end(self, now: float) -> None:
        """The iteration ends, and the next one begins."""
        if self._begin is None:
            return
        whole = now - self._begin
        computing = whole - self._waited
        needed = [self._needed.get(layer, computing) for layer in range(self._layers)]
        ready = [self._ready.get(layer, computing) for layer in range(self._layers)]
        self._rows.append(_Row(needed, ready, computing, whole))
        self._next(now)

    @property
    def iterations(self) -> int:
        """The iterations that were measured since ``begin``."""
        return len(self._rows)

    def measured(self) -> Measured:
        """Return the times of the iterations since ``begin``, of which there must be one."""
        return Measured(
            _medians([row.needed for row in self._rows]),
            _medians([row.ready for row in self._rows]),
            median(row.computing for row in self._rows),
            median(row.whole for row in self._rows),
        )

    def pace(self, together: int) -> float:
        """Return the seconds of an iteration: the median of the means of so many that follow one another.

        With late gradients a short iteration may follow a long one, but a median is better where one is held up.
        """
        whole = [row.whole for row in self._rows]
        together = min(together, len(whole))
        return median(sum(whole[i : i + together]) / together for i in range(len(whole) - together + 1))

    def _next(self, now: float) -> None:
        self._begin = now
        self._waited = 0.0
        self._needed.clear()
        self._ready.clear()


def _medians(rows: Sequence[Sequence[float]]) -> tuple[float, ...]:
    return tuple(median(column) for column in zip(*rows, strict=True))
