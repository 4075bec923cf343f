"""Sums of small decision trees.

Gradient boosting: J. Friedman, Annals of Statistics 29, 2001, doi:10.1214/aos/1013203451.
All trees are complete and of depth two, so that many rows go through all of them in a few array operations.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

NODES, LEAVES = 3, 4
"""A tree has these nodes, the root and its two children, and these leaves, from left to right."""


@dataclass(frozen=True, slots=True, eq=False)
class Trees:
    """T trees: ``start`` and what each adds; a ``Forest`` adds it up.

    A row goes right at a node where its number is above the threshold. ``number`` and ``threshold`` are (T, 3): root,
    left child, right child; ``leaf`` is (T, 4).
    """

    start: float
    number: NDArray[np.int64]
    threshold: Array
    leaf: Array

    @classmethod
    def read(cls, start: float, rows: Sequence[Sequence[float]]) -> Trees:
        """Returns the trees of rows, each with three indices of numbers, three thresholds and four leaves.

        Raises ValueError where a row is not so.
        """
        table = np.array(rows, dtype=np.float64).reshape(len(rows), 2 * NODES + LEAVES)
        return cls(start, table[:, :NODES].astype(np.int64), table[:, NODES : 2 * NODES], table[:, 2 * NODES :])


@dataclass(frozen=True, slots=True, eq=False)
class Forest:
    """K sums of trees, gone through at once: for few rows that takes hardly longer than one. ``each``: whose trees."""

    trees: Trees
    starts: tuple[float, ...]
    each: tuple[slice, ...]

    @classmethod
    def of(cls, several: Iterable[Trees]) -> Forest:
        """The sums, one after the other."""
        sums = tuple(several)
        ends = list(accumulate(len(trees.leaf) for trees in sums))
        together = Trees(
            0.0,
            np.concatenate([trees.number for trees in sums]),
            np.concatenate([trees.threshold for trees in sums]),
            np.concatenate([trees.leaf for trees in sums]),
        )
        each = tuple(slice(begin, end) for begin, end in zip([0, *ends], ends, strict=False))
        return cls(together, tuple(trees.start for trees in sums), each)

    def __call__(self, numbers: Array) -> list[Array]:
        """The sums, each (J,), for rows of numbers (J, N)."""
        # A tree after the other, so that what is looked at together, all rows' same number, lies side by side.
        by_number = np.ascontiguousarray(numbers.T)
        number, threshold, leaf = self.trees.number, self.trees.threshold, self.trees.leaf
        root, left, right = (by_number[number[:, node]] > threshold[:, node, None] for node in range(NODES))
        low, mid_low, mid_high, high = (leaf[:, end, None] for end in range(LEAVES))
        added = np.where(root, np.where(right, high, mid_high), np.where(left, mid_low, low))
        return [
            start + np.add.reduce(added[own_trees], axis=0)
            for start, own_trees in zip(self.starts, self.each, strict=True)
        ]
