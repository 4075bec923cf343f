"""Rows of values with weights: sorted, their quantiles, and weights that a prior changes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Ints = NDArray[np.int64]

INTERVAL = (0.1, 0.5, 0.9)


class Estimate(NamedTuple):
    """A median with its 80 % interval."""

    median: float
    low: float
    high: float


def reweighted(weight: Array, prior: Array) -> Array:
    """Rows of weights times a prior, to sum 1; a prior that denies everything is not heeded."""
    product = weight * prior
    total = np.add.reduce(product, axis=1, keepdims=True)
    heeded = (total > 1e-6 * np.maximum.reduce(prior, axis=1, keepdims=True)) & (total > 0)
    return np.where(heeded, np.divide(product, total, out=np.zeros_like(product), where=heeded), weight)


def in_order(values: Array, weight: Array) -> tuple[Array, Array]:
    """Rows of values with their weights, each row in ascending order of its values."""
    order = values.argsort(axis=1, kind="stable")
    return taken(values, order), taken(weight, order)


def taken(rows: Array, column: Ints) -> Array:
    """Of each row the values in some columns (J, N)."""
    chosen: Array = rows.take(column + (np.arange(len(rows)) * rows.shape[1])[:, None])
    return chosen


def quantiles(values: Array, weight: Array) -> Array:
    """The 10, 50 and 90 % quantiles (J, 3) of rows of ascending values with weights."""
    reached = weight.cumsum(axis=1)
    # The first that is reached: nothing falls on the way.
    at = np.stack([(reached >= share * reached[:, -1:]).argmax(axis=1) for share in INTERVAL], axis=1)
    return taken(values, at)


def estimates(of_rows: Array) -> list[Estimate]:
    """Of rows of low, median and high."""
    return [Estimate(median, low, high) for low, median, high in of_rows.tolist()]
