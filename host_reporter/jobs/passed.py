"""When a run passed its iterations. Pure."""

from __future__ import annotations

from bisect import bisect_left

from controller.model import Progress
from host_reporter.readers.points import thin

MAX_KEPT = 500
"""Keep the times of at most so many iterations."""


class PassedIterations:
    """The times of a run's iterations, so that a metric that comes late has the time of its own iteration."""

    def __init__(self) -> None:
        self._passed: list[Progress] = []

    def time_of(self, iteration: float, wall: float) -> float:
        """Returns when an iteration was passed: now, ``wall``, unless a higher one was before."""
        if not self._passed or iteration > self._passed[-1].iteration:
            self._passed.append(Progress(iteration, wall, None))
            self._passed = thin(self._passed, MAX_KEPT)
            return wall
        if iteration == self._passed[-1].iteration:
            return wall
        place = bisect_left(self._passed, iteration, key=lambda point: point.iteration)
        return min(self._passed[place].time, wall)
