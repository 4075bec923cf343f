"""Weighted samples, one row a history: sorted, their quantiles, and their weights under a prior."""

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
    """Returns rows of weights times a prior, each with sum 1. A prior that is almost 0 in a whole row is ignored."""
    product = weight * prior
    total = np.add.reduce(product, axis=1, keepdims=True)
    is_used = (total > 1e-6 * np.maximum.reduce(prior, axis=1, keepdims=True)) & (total > 0)
    return np.where(is_used, np.divide(product, total, out=np.zeros_like(product), where=is_used), weight)


def in_order(values: Array, weight: Array) -> tuple[Array, Array]:
    """Returns rows of values with their weights, each row in ascending order of its values."""
    order = values.argsort(axis=1, kind="stable")
    return taken(values, order), taken(weight, order)


def taken(rows: Array, column: Ints) -> Array:
    """Returns the values of each row in the given columns, both (J, N)."""
    chosen: Array = rows.take(column + (np.arange(len(rows)) * rows.shape[1])[:, None])
    return chosen


def quantiles(values: Array, weight: Array) -> Array:
    """Returns the 10, 50 and 90 % quantiles (J, 3) of rows of ascending values with weights."""
    reached = weight.cumsum(axis=1)
    # The cumulative weights never fall, so the first one that reaches the share is the quantile.
    at = np.stack([(reached >= share * reached[:, -1:]).argmax(axis=1) for share in INTERVAL], axis=1)
    return taken(values, at)


def estimates(of_rows: Array) -> list[Estimate]:
    """Returns an estimate for each row of low, median and high."""
    return [Estimate(median, low, high) for low, median, high in of_rows.tolist()]
