"""What the earlier runs of its family say of a history, in a few numbers, free of units and of the run's length.

Runs of a family are alike in three things, of which a job's own history knows little: after which share of the run 90 %
came, to what the metric converged, and which level it had when. Where the job does not run as they did, the numbers
show that too.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from controller.curves.earlier import EarlierRuns
from controller.curves.histories import Histories
from controller.curves.target_spec import T90
from controller.curves.weighted import taken

Array = NDArray[np.float64]

NUMBERS = (
    *("runs", "spread of shares", "spread of converged"),
    *("left by share", "least left by share", "most left by share", "behind by share"),
    *("closed", "last closed", "since", "fit's gap"),
    *("left by level", "least left by level", "most left by level", "behind their level"),
)
MAX_CLOSED = 3.0
"""Cut shares of the family's gap at this value."""


def earlier_numbers(histories: Histories, earlier: Sequence[EarlierRuns], converged: Array) -> Array:
    """Returns ``NUMBERS`` (J, 15) of histories of known length.

    ``earlier``: the runs of each one's family. ``converged`` (J,): the metric to which each converges by its own fit.
    """
    end = np.maximum(histories.end, histories.last)
    done = histories.last / end
    unit = histories.sign / histories.size
    count = np.array([runs.count for runs in earlier])
    share = np.array([runs.share for runs in earlier]).T
    metric = np.array([runs.converged for runs in earlier]).T
    gap = histories.start - unit * metric[0]
    target = histories.start - T90.fraction * gap
    there = histories.reached <= target[:, None]
    when = np.where(there & (histories.weight > 0), histories.iteration, np.inf).min(axis=1)
    level, at, shares = _side_by_side(earlier, count)
    best = histories.reached[:, -1]
    left = shares - _share_at_level(level / histories.size[:, None, None], at, best)
    behind = np.add.reduce(shares <= done[:, None], axis=1) / count
    here = _ordered(_level_at_share(level / histories.size[:, None, None], at, done), count)[1]
    return np.stack(
        (
            count,
            share[3],
            _over(metric[1] / histories.size, np.abs(gap)),
            *(np.clip(share[i] - done, -1.0, 1.0) for i in (0, 1, 2)),
            behind,
            _over(histories.start - best, T90.fraction * gap),
            _over(histories.start - histories.value[:, -1], T90.fraction * gap),
            np.where(np.isfinite(when), (histories.last - np.where(np.isfinite(when), when, 0.0)) / end, -1.0),
            _over(histories.start - converged, gap),
            *(np.clip(value, -1.0, 1.0) for value in _ordered(left, count)),
            np.clip(_signed_over(best - here, gap), -MAX_CLOSED, MAX_CLOSED),
        ),
        axis=1,
    )


def _signed_over(value: Array, gap: Array) -> Array:
    share: Array = np.divide(value, gap, out=np.zeros(len(gap)), where=gap > 1e-12)
    return share


def _level_at_share(level: Array, at: Array, done: Array) -> Array:
    """Returns the level that each run (J, R) had after the share ``done`` (J,) of it; its first one before that."""
    passed = np.add.reduce(at <= done[:, None, None], axis=2)
    place = np.maximum(passed - 1, 0)
    found: Array = np.take_along_axis(level, place[:, :, None], axis=2)[:, :, 0]
    return found


def _side_by_side(earlier: Sequence[EarlierRuns], count: NDArray[np.int64]) -> tuple[Array, Array, Array]:
    """Returns levels, where they were, (J, R, P), and shares (J, R); R is the most runs, the missing ones infinite."""
    most, points = int(count.max()), earlier[0].level.shape[1]
    level = np.full((len(earlier), most, points), np.inf)
    at, shares = np.zeros_like(level), np.full(level.shape[:2], np.inf)
    for row, runs in enumerate(earlier):
        level[row, : runs.count], at[row, : runs.count], shares[row, : runs.count] = runs.level, runs.at, runs.shares
    return level, at, shares


def _share_at_level(level: Array, at: Array, reached: Array) -> Array:
    """Returns after which share of each run (J, R) it first had the level ``reached`` (J,), 1 where it never had."""
    above = np.add.reduce(level > reached[:, None, None], axis=2)
    place = np.minimum(above, level.shape[2] - 1)
    found = np.take_along_axis(at, place[:, :, None], axis=2)[:, :, 0]
    return np.where(above < level.shape[2], found, 1.0)


def _ordered(values: Array, count: NDArray[np.int64]) -> tuple[Array, Array, Array]:
    """Returns the lowest, the median and the highest of the first ``count`` (J,) values of each row (J, R)."""
    ascending = np.sort(values, axis=1)
    low, high = (taken(ascending, place[:, None])[:, 0] for place in ((count - 1) // 2, count // 2))
    return ascending[:, 0], (low + high) / 2, taken(ascending, count[:, None] - 1)[:, 0]


def _over(value: Array, gap: Array) -> Array:
    share = np.divide(value, gap, out=np.full(len(gap), MAX_CLOSED), where=gap > 1e-12)
    clipped: Array = np.clip(share, 0.0, MAX_CLOSED)
    return clipped
