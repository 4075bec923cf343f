"""A job's progress as a set that only grows: what is merged twice, late or in another order gives the same.

Memory is bounded: beyond ``MAX_POINTS`` the iterations are cut into strides, doubled until they fit, and one
point a stride is kept. Which one depends on the points alone, never on the order in which they came; nested
strides keep that true while they grow. The first and the last point are always kept.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from controller.model import Progress

MAX_POINTS = 2000
FINEST_STRIDE = 2.0**-10
"""Start with this stride, in iterations, when there are too many points. Until then every iteration keeps its own."""


def _rank(point: Progress) -> tuple[bool, float, float, float]:
    """Returns what to compare points of one stride by; the greatest is kept.

    A point with a metric goes before one without, then the later iteration, then the earlier time.
    """
    return (point.metric is not None, point.iteration, -point.time, -(point.metric or 0.0))


class History:
    """The points of one run of a job. ``strides`` counts how often they were thinned."""

    __slots__ = ("_first", "_kept", "_last", "_measured", "_sorted", "_stride", "strides")

    def __init__(self, points: Iterable[Progress] = ()) -> None:
        self._kept: dict[float, Progress] = {}
        self._stride = 0.0
        self._first: Progress | None = None
        self._last: Progress | None = None
        self._measured: Progress | None = None
        self.strides = 0
        self._sorted: tuple[Progress, ...] | None = ()
        for point in points:
            self.add(point)

    def __len__(self) -> int:
        return len(self._kept)

    def add(self, point: Progress) -> bool:
        """Merge a point; returns whether anything is new."""
        changed = False
        if self._first is None or (-point.iteration, _rank(point)) > (-self._first.iteration, _rank(self._first)):
            self._first, changed = point, True
        if self._last is None or (point.iteration, _rank(point)) > (self._last.iteration, _rank(self._last)):
            self._last, changed = point, True
        if point.metric is not None and (self._measured is None or _rank(point) > _rank(self._measured)):
            self._measured, changed = point, True
        key = self._key(point)
        held = self._kept.get(key)
        if held is None or _rank(point) > _rank(held):
            self._kept[key] = point
            changed = True
            if len(self._kept) > MAX_POINTS:
                self._thin()
        if changed:
            self._sorted = None
        return changed

    def points(self) -> tuple[Progress, ...]:
        """Returns all points that are kept, by iteration."""
        if self._sorted is None:
            ends = {point for point in (self._first, self._last) if point is not None}
            # One point an iteration: an end may also stand, as the better witness, in its stride.
            by_iteration: dict[float, Progress] = {}
            for point in (*ends, *self._kept.values()):
                held = by_iteration.get(point.iteration)
                if held is None or _rank(point) > _rank(held):
                    by_iteration[point.iteration] = point
            self._sorted = tuple(by_iteration[iteration] for iteration in sorted(by_iteration))
        return self._sorted

    @property
    def iterations_done(self) -> float:
        """The highest iteration that was reported; 0 before any."""
        return self._last.iteration if self._last is not None else 0.0

    @property
    def last_measured(self) -> Progress | None:
        """The latest point that has a metric."""
        return self._measured

    def _key(self, point: Progress) -> float:
        return point.iteration if self._stride == 0.0 else math.floor(point.iteration / self._stride)

    def _thin(self) -> None:
        while len(self._kept) > MAX_POINTS:
            self._stride = max(self._stride * 2, FINEST_STRIDE)
            self.strides += 1
            merged: dict[float, Progress] = {}
            for point in self._kept.values():
                key = self._key(point)
                held = merged.get(key)
                if held is None or _rank(point) > _rank(held):
                    merged[key] = point
            self._kept = merged
