"""Fits of costs to what was measured: shares that are not negative, by relative error, and few outliers do not
matter. Pure.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

ROUNDS = 20
"""Rows are weighed anew so many times, by how far off each is."""

ROUNDS_AGAIN = 8
FOLDS = 10
SWEEPS = 400
CLOSE = 1e-10
"""The fit ends when no column's share of a row moves by more than this."""

MIN_RATIO = 1e-3


@dataclass(frozen=True, slots=True)
class Fitted:
    """Factors of the columns, and by how much what was measured is above or below (0.9: a tenth below), 10 to 90 %."""

    factors: tuple[float, ...]
    low: float
    high: float


def fit(
    rows: Sequence[Sequence[float]],
    seconds: Sequence[float],
    *,
    priors: Sequence[float] | None = None,
    trust: float = 0.0,
    groups: Sequence[str] | None = None,
) -> Fitted:
    """Factors of the columns that add up to the seconds of each row, none below 0.

    ``priors`` are what the factors are believed to be before, ``trust`` how much that weighs against all the rows.
    The spread is that of rows that the fit did not see: all of one of the ``groups`` left out in turn, or without them
    a tenth. Raises ValueError without rows.
    """
    if not rows:
        raise ValueError("nothing was measured to fit to")
    before = [0.0] * len(rows[0]) if priors is None else list(priors)
    relative = [[value / second for value in row] for row, second in zip(rows, seconds, strict=True)]
    factors = _robust(relative, before, trust, before, ROUNDS)
    ratios = []
    folds = [str(place % FOLDS) for place in range(len(relative))] if groups is None else groups
    for fold in dict.fromkeys(folds):
        left = [row for row, own in zip(relative, folds, strict=True) if own == fold]
        others = [row for row, own in zip(relative, folds, strict=True) if own != fold]
        enough = len(others) >= len(before)
        fold_factors = _robust(others, before, trust, factors, ROUNDS_AGAIN) if enough else factors
        ratios += [1.0 / max(_dot(fold_factors, row), MIN_RATIO) for row in left]
    return Fitted(tuple(factors), quantile(ratios, 0.1), quantile(ratios, 0.9))


def quantile(values: Sequence[float], share: float) -> float:
    """The value below which a share of the values lies, between neighbours in proportion."""
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (place - below) * (ordered[above] - ordered[below])


def _robust(
    rows: Sequence[Sequence[float]], priors: Sequence[float], trust: float, start: Sequence[float], rounds: int
) -> list[float]:
    factors = list(start)
    weights = [1.0] * len(rows)
    for _ in range(rounds):
        factors = _least_squares(rows, weights, priors, trust, factors)
        weights = [_weight(_dot(factors, row)) for row in rows]
        scale = len(weights) / sum(weights)
        weights = [weight * scale for weight in weights]
    return factors


def _weight(ratio: float) -> float:
    """Of a row's square error, so that together they are the error of the logarithm: twice too much is as far off as
    half.
    """
    ratio = max(ratio, MIN_RATIO)
    off = abs(ratio - 1.0)
    return 1.0 / 0.02 if off < 0.02 else abs(math.log(ratio)) / off**2


def _least_squares(
    rows: Sequence[Sequence[float]],
    weights: Sequence[float],
    priors: Sequence[float],
    trust: float,
    start: Sequence[float],
) -> list[float]:
    """Factors not below 0 for which each row gives 1, by going down one column at a time."""
    count = len(priors)
    products = [
        [sum(w * row[i] * row[j] for w, row in zip(weights, rows, strict=True)) for j in range(count)]
        for i in range(count)
    ]
    wanted = [sum(w * row[i] for w, row in zip(weights, rows, strict=True)) for i in range(count)]
    # A prior counts as ``trust`` of what the rows themselves say of its column, whatever its unit.
    held = [trust * products[i][i] for i in range(count)]
    factors = [max(value, 0.0) for value in start]
    for _ in range(SWEEPS):
        moved = 0.0
        for i in range(count):
            own = products[i][i] + held[i]
            if own > 0:
                others = sum(products[i][j] * factors[j] for j in range(count) if j != i)
                new = max(0.0, (wanted[i] + held[i] * priors[i] - others) / own)
                moved = max(moved, abs(new - factors[i]) * math.sqrt(own / len(rows)))
                factors[i] = new
        if moved < CLOSE:
            break
    return factors


def _dot(left: Sequence[float], right: Sequence[float]) -> float:
    return sum(a * b for a, b in zip(left, right, strict=True))
