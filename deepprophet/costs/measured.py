"""What was measured of one operator, and that it can be true. Pure."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

SMALL_BYTES = 128 * 1024
"""An operator on less finds its data in a core's own caches wherever its inputs were, and a clock's own time counts."""


class ImplausibleError(ValueError):
    """Seconds that no clock can have told; the message says which."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """Seconds of one call: ``near`` with its inputs in the caches, ``far`` with none; ``low`` to ``high``, of near.

    ``disturbed``: something else had the processor during all calls, so that they were shorter than this.
    """

    near: float
    far: float
    low: float
    high: float
    disturbed: bool = False


def seconds(value: float, what: str) -> float:
    """The value, if it is a time that something can have taken: finite and above 0. Raises ImplausibleError."""
    if not (math.isfinite(value) and value > 0):
        raise ImplausibleError(f"{what} took {value:g} s, which cannot be; it must be above 0")
    return value


def checked(measurement: Measurement, what: str) -> Measurement:
    """The measurement, if its seconds are times and in order: low, near, high, and far no less than near.

    Raises ImplausibleError.
    """
    for value in (measurement.near, measurement.far, measurement.low, measurement.high):
        seconds(value, what)
    if not (measurement.low <= measurement.near <= measurement.high and measurement.near <= measurement.far):
        raise ImplausibleError(
            f"{what} took {measurement.near:g} s near and {measurement.far:g} s far, "
            f"and {measurement.low:g} to {measurement.high:g} s near; these are not in order"
        )
    return measurement


def summary(near: Sequence[float], far: Sequence[float], what: str, *, disturbed: bool = False) -> Measurement:
    """What calls with near and with far inputs (seconds; maybe none) tell of an operator. Raises ImplausibleError.

    The quartiles lie between the samples, however few there are: those of a larger population would lie outside of
    them, and of two samples perhaps below 0.
    """
    middle = statistics.median(near)
    low, _, high = statistics.quantiles(near, n=4, method="inclusive") if len(near) > 1 else (middle, middle, middle)
    # What is read from memory cannot be sooner there than what is near: less is chance.
    return checked(Measurement(middle, max(statistics.median(far or near), middle), low, high, disturbed), what)
