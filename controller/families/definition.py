"""When a run is converged, and when it has reached a share of that: the definition of t90 and t95.

The metric closes 90 % (95 %) of the gap between its start (accuracy: 0; loss: its first value) and the median of
the last tenth of the full run. A target is reached at the first report at which the running median of the last
three reports is there.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Sequence
from typing import Literal

Direction = Literal["max", "min"]
REPORTS = 3
"""A running median is over so many reports."""


def start(curve: Sequence[float], direction: Direction = "max") -> float:
    """Returns where the gap starts: 0 for a metric that rises (accuracy), the first value for one that falls (loss).

    Raises ValueError for an empty curve.
    """
    _refuse_empty(curve)
    return 0.0 if direction == "max" else curve[0]


def converged(curve: Sequence[float]) -> float:
    """Returns the median of the last tenth of a full run (at least one row). Raises ValueError for an empty one."""
    _refuse_empty(curve)
    return statistics.median(curve[-math.ceil(len(curve) / 10) :])


def target_value(curve: Sequence[float], fraction: float, direction: Direction = "max") -> float:
    """Returns the metric at which ``fraction`` of the gap is closed. ``curve`` is the full run.

    Raises ValueError for an empty curve, and for a fraction outside (0, 1].
    """
    if not 0 < fraction <= 1:
        raise ValueError(f"a target's fraction must be in (0, 1], not {fraction}")
    begin = start(curve, direction)
    return begin + fraction * (converged(curve) - begin)


def running_medians(metrics: Sequence[float]) -> Iterator[float]:
    """Yields the median of each report and the two before it, from the third report on."""
    for first, second, third in zip(metrics, metrics[1:], metrics[2:], strict=False):
        yield max(min(first, second), min(max(first, second), third))


def crossing(metrics: Sequence[float], target: float, direction: Direction = "max") -> int | None:
    """Returns the index of the first report at which the running median is at ``target``; None if it never is."""
    for i, median in enumerate(running_medians(metrics), start=REPORTS - 1):
        if median >= target if direction == "max" else median <= target:
            return i
    return None


def _refuse_empty(curve: Sequence[float]) -> None:
    if not curve:
        raise ValueError("a run without any report has no target")
