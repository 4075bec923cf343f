"""Corrects a roofline's predictions by the operators of its family that were just measured. Pure.

[ours] A roofline errs alike for operators of a kind in one model: all of them may take a third longer than it says, be
it that their shapes are unlike those of the calibration, be it that the machine is slower today. So where some were
measured, the rest is corrected by how far these were off, the more so the more they are of the same length.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable

from deepprophet.costs.calibration import Roofline

PRIOR_WEIGHT = 1.0
"""The assumption that a roofline is right weighs as much as one measured operator of the same length."""

MAX_LOG_ERROR = math.log(4.0)
"""An error counts as a factor of four at most, because larger ones say nothing about other operators."""


class FamilyCorrection:
    """Corrections of rooflines, from pairs of what they say of an operator and what was measured of it, in seconds."""

    def __init__(self, measured: Iterable[tuple[Roofline, str, float, float]] = ()) -> None:
        """``measured``: a roofline, the type of number that it was asked for, and the two."""
        self._off: dict[tuple[str, str, str], list[tuple[float, float]]] = defaultdict(list)
        for roofline, dtype, predicted, seconds in measured:
            if predicted > 0 and seconds > 0:
                off = math.log(seconds / predicted)
                self._off[_kind(roofline, dtype)].append((predicted, max(-MAX_LOG_ERROR, min(off, MAX_LOG_ERROR))))

    def factor(self, roofline: Roofline, dtype: str, predicted: float) -> float:
        """Return the factor by which an operator takes longer than a roofline predicts."""
        known = self._off.get(_kind(roofline, dtype))
        if not known or predicted <= 0:
            return 1.0
        weights = [min(predicted, other) / max(predicted, other) for other, _ in known]
        off = sum(weight * by for weight, (_, by) in zip(weights, known, strict=True))
        return math.exp(off / (sum(weights) + PRIOR_WEIGHT))


def _kind(roofline: Roofline, dtype: str) -> tuple[str, str, str]:
    return roofline.family, roofline.name, dtype
