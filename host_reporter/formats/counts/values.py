"""The values of a run's metric: which are news, which can be reported, and which step each belongs to. Pure."""

from __future__ import annotations

import math

from host_reporter.formats import names
from host_reporter.formats.events import MAX_METRIC
from host_reporter.formats.reading import Reading


def diverges(reading: Reading, value: float | None) -> bool:
    """Returns whether a reading, with this value of the run's metric, says that the run has diverged."""
    if reading.diverged or (value is not None and not math.isfinite(value)):
        return True
    return any(not math.isfinite(number) and names.is_loss(name) for name, number in reading.metrics.items())


def is_reportable(value: float) -> bool:
    """Returns whether a value is one that the controller takes."""
    return math.isfinite(value) and abs(value) <= MAX_METRIC


class Lasting:
    """Values of a validation that stay in the lines until the next one."""

    def __init__(self) -> None:
        self._last: float | None = None

    def news(self, value: float | None, *, is_validation: bool) -> float | None:
        """Returns a value unless it is that of the last validation."""
        is_old = value == self._last and is_validation
        self._last = value if value is not None else self._last
        return None if is_old else value


class Unplaced:
    """Values on lines without a counter.

    Such a value belongs to the step before it if steps came first in this output, and waits for the next step
    otherwise.
    """

    def __init__(self) -> None:
        self._waiting: float | None = None
        self._steps_come_first: bool | None = None

    def step(self) -> None:
        """A step has come."""
        if self._steps_come_first is None:
            self._steps_come_first = True

    def take(self) -> float | None:
        """Returns the value that waits for a step, once."""
        waiting, self._waiting = self._waiting, None
        return waiting

    def forget(self) -> None:
        """What waits is of a metric that is no longer the run's."""
        self._waiting = None

    def is_of_the_step_before(self, value: float) -> bool:
        """Returns whether a value belongs to the step before it; else it waits for the next one."""
        if self._steps_come_first:
            return True
        self._steps_come_first, self._waiting = False, value
        return False
