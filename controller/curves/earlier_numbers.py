"""Features of a history that come from the earlier runs of its family. They have no units.

Runs of a family are alike in three things of which a job's own history shows little: after which share of the run 90 %
came, to what the metric converged, and which level it had at which time. The features also show where the job does not
behave like those runs.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from controller.curves.declared import LEAST_GAP, MAX_CLOSED, closed
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
    level /= histories.size[:, None, None]
    best = histories.reached[:, -1]
    left = shares - _share_at_level(level, at, best)
    behind = np.add.reduce(shares <= done[:, None], axis=1) / count
    usual = _ordered(_level_at_share(level, at, done), count)[1]
    return np.stack(
        (
            count,
            share[3],
            closed(metric[1] / histories.size, np.abs(gap)),
            *(np.clip(share[i] - done, -1.0, 1.0) for i in (0, 1, 2)),
            behind,
            closed(histories.start - best, T90.fraction * gap),
            closed(histories.start - histories.value[:, -1], T90.fraction * gap),
            np.where(np.isfinite(when), (histories.last - np.where(np.isfinite(when), when, 0.0)) / end, -1.0),
            closed(histories.start - converged, gap),
            *(np.clip(value, -1.0, 1.0) for value in _ordered(left, count)),
            np.clip(_ratio(best - usual, gap), -MAX_CLOSED, MAX_CLOSED),
        ),
        axis=1,
    )


def _ratio(distance: Array, gap: Array) -> Array:
    """Returns a distance of either sign (J,) over each gap (J,); 0 where there is no gap."""
    ratio: Array = np.divide(distance, gap, out=np.zeros(len(gap)), where=gap > LEAST_GAP)
    return ratio


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
