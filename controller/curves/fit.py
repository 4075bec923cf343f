"""Learning-curve fits: from a metric history to the iterations left until a share of convergence, with uncertainty.

A history is fitted by a weighted average of simple curves rather than by one (``controller.curves.candidates``). The
spread of the candidates and of each one's own parameters is the uncertainty. A prior says after which share of a run a
target typically comes: where a fit says little, it decides; and because curves are not bound to be of the families
that are fitted, it has a share of its own beside the fit. Of a run whose length is unknown every length up to 15 times
what was seen is as likely, on a logarithmic scale.

Beside the fit's own intervals, which hold for curves of any family, stands what runs like the recorded ones tell of
such a history (``controller.curves.prospects``): surer, and what ordering jobs goes by.

Deterministic: the same history gives the same fit. Many histories at once cost far less than one by one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import repeat
from math import isnan
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from controller.curves.candidates import FARTHEST, SAMPLES, Candidates, iteration_at, solve, value_at
from controller.curves.histories import BINS, MIN_POINTS, FitInput, Histories, History, read, running_median
from controller.curves.prospects import learned, outlook
from controller.curves.reports import Reports, joined
from controller.curves.shapes import shapes
from controller.model import Metric, Progress

__all__ = [
    "MIN_POINTS",
    "T90",
    "T95",
    "Estimate",
    "Fit",
    "FitInput",
    "History",
    "Reports",
    "Target",
    "TargetSpec",
    "fit",
    "fit_many",
    "joined",
    "running_median",
]

Array = NDArray[np.float64]
Ints = NDArray[np.int64]

INTERVAL = (0.1, 0.5, 0.9)
PRIOR_SHARE = 0.15
"""Weigh the prior alone by this share, and the fit by the rest."""
PRIOR_DRAWS = 20
LENGTHS = 5
"""Represent the possible lengths of a run of unknown length by this many."""
_TOGETHER = 64
"""Read and solve this many histories at once, so that their arrays stay in the processor's cache."""


@dataclass(frozen=True, slots=True)
class TargetSpec:
    """A target to predict: ``fraction`` is its share of convergence.

    The share of a run after which it comes has a log-normal prior: ``typical`` is its median, ``spread`` the standard
    deviation of its logarithm. ``learned`` says that trees learned from recorded runs predict this target.
    """

    fraction: float
    typical: float
    spread: float
    learned: bool = False

    def shares(self, n: int) -> Array:
        """Returns n equally likely shares of a run (at most 1)."""
        shares: Array = np.minimum(self.typical * np.exp(self.spread * ndtri((np.arange(n) + 0.5) / n)), 1.0)
        return shares

    def density(self, share: Array) -> Array:
        """Returns the prior density over the logarithm of the share, up to a constant factor."""
        with np.errstate(divide="ignore"):
            density: Array = np.exp(-0.5 * (np.log(share / self.typical) / self.spread) ** 2)
        return density


T90 = TargetSpec(0.90, typical=0.25, spread=0.6, learned=True)
T95 = TargetSpec(0.95, typical=0.35, spread=0.6, learned=True)


class Estimate(NamedTuple):
    """A median with its 80 % interval."""

    median: float
    low: float
    high: float


class Target(NamedTuple):
    """A share of convergence: the metric there, the iteration at which it is crossed, and how likely it was already.

    ``iteration`` counts from the job's start. ``crossed`` is a probability. These are the fit's own. ``rate`` is the
    best chance to reach the target per iteration spent on it, as recorded runs tell; where the run's length is not
    known, the fit's chance over its mean iterations.
    """

    fraction: float
    metric: float
    iteration: Estimate
    crossed: float
    rate: float


class Fit(NamedTuple):
    """A fitted history up to the iteration ``last``: the converged metric, and the targets in the order asked for."""

    points: int
    last: float
    converged: Estimate
    targets: tuple[Target, ...]


def fit(
    progress: Sequence[Progress],
    metric: Metric,
    total: float | None = None,
    specs: Sequence[TargetSpec] = (T90, T95),
) -> Fit | None:
    """Fit one history; see ``fit_many``."""
    return fit_many([History(progress, metric, total)], specs)[0]


def fit_many(histories: Sequence[History | FitInput], specs: Sequence[TargetSpec] = (T90, T95)) -> list[Fit | None]:
    """Returns the fits of histories, in their order; None for a history with fewer than 3 finite metric values.

    Where the iterations of the whole run are known, the converged metric is the curve's value in the middle of the last
    tenth of the run (whose median defines it), and no target lies beyond the run's end.
    """
    fits: list[Fit | None] = [None] * len(histories)
    for endless in (False, True):
        rows = [i for i, history in enumerate(histories) if (history.total is None or isnan(history.total)) == endless]
        for first in range(0, len(rows), _TOGETHER):
            rows_together = rows[first : first + _TOGETHER]
            positions, known = read([histories[i] for i in rows_together])
            for position, fitted in zip(
                positions.tolist(), _fit_some(known, specs) if len(positions) else (), strict=True
            ):
                fits[rows_together[position]] = fitted
    return fits


def _fit_some(histories: Histories, specs: Sequence[TargetSpec]) -> list[Fit]:
    """Fits of histories that all have a known end, or none of which has."""
    candidates = solve(histories)
    n = len(histories.last)
    endless = bool(np.isnan(histories.end).any())
    ends = _lengths(histories.last) if endless else histories.end[:, None]
    # Draws are (J, G, S, E), E for the ends that the run may have.
    x_end = value_at(0.95 * ends[:, None, None, :], candidates.scale[:, :, None, None])
    start = histories.start[:, None, None, None]
    limit = candidates.c0[..., None] + candidates.c1[..., None] * x_end
    converged = np.minimum(limit, start)
    likely = np.broadcast_to((candidates.weight / (SAMPLES * ends.shape[1]))[:, :, None, None], converged.shape)
    unit = (histories.sign * histories.size)[:, None]
    spread = np.sort(unit * _quantiles(*_sorted(converged.reshape(n, -1), likely.reshape(n, -1))), axis=1)
    # The shape is the same for every target.
    shape = None if endless or not any(spec.learned for spec in specs) else shapes(histories)
    targets = [
        _target(spec, histories, candidates, ends, converged=converged, likely=likely, shape=shape) for spec in specs
    ]
    zero = histories.start * unit[:, 0]
    levels = [zero + spec.fraction * (spread[:, 1] - zero) for spec in specs]
    of_each = zip(
        *(_targets(spec.fraction, level, *found) for spec, level, found in zip(specs, levels, targets, strict=True)),
        strict=True,
    )
    points, last = histories.points.tolist(), histories.last.tolist()
    return [Fit(*one) for one in zip(points, last, _estimates(spread), of_each if specs else repeat(()), strict=False)]


def _targets(fraction: float, level: Array, crossing: Array, crossed: Array, rate: Array) -> list[Target]:
    """One target of every history."""
    columns = zip(level.tolist(), _estimates(crossing), crossed.tolist(), rate.tolist(), strict=True)
    return [Target(fraction, *one) for one in columns]


def _target(
    spec: TargetSpec,
    histories: Histories,
    candidates: Candidates,
    ends: Array,
    *,
    converged: Array,
    likely: Array,
    shape: Array | None,
) -> tuple[Array, Array, Array]:
    """Quantiles of the crossing (J, 3), how likely it is behind (J,), and the best chance per iteration (J,).

    ``shape`` is the histories', where recorded runs can tell of them.
    """
    n = len(histories.last)
    last = histories.last[:, None]
    start = histories.start[:, None, None, None]
    level = start + spec.fraction * (converged - start)
    c1 = np.broadcast_to(candidates.c1[..., None], level.shape)
    # Where the curve is flat (c1 = 0) its target lies behind it: the ratio is then beyond the start's.
    ratio = np.divide(level - candidates.c0[..., None], c1, out=np.full_like(level, np.inf), where=c1 > 1e-12)
    crossing = iteration_at(ratio, candidates.scale[:, :, None, None])
    crossing = np.minimum(np.maximum(crossing, 0.0), ends[:, None, None, :])
    weight = _reweighted(likely.reshape(n, -1), spec.density(crossing / ends[:, None, None, :]).reshape(n, -1))
    crossing, behind = _as_seen(crossing.reshape(n, -1), level.reshape(n, -1), histories)
    prior = (ends[:, :, None] * _shares(spec)).reshape(n, -1)
    crossing = np.concatenate((crossing, prior), axis=1)
    weight = np.concatenate(((1 - PRIOR_SHARE) * weight, np.full(prior.shape, PRIOR_SHARE / prior.shape[1])), axis=1)
    behind = np.concatenate((behind, prior <= last), axis=1)
    ahead = np.where(behind, 0.0, weight)
    chance = np.minimum(np.maximum(np.add.reduce(ahead, axis=1), 0.0), 1.0)
    quantiles = _quantiles(*_sorted(crossing, weight))
    if spec.learned and shape is not None:
        rate = learned(spec.fraction).best(histories, shape, outlook(histories, quantiles, 1.0 - chance))
        return quantiles, 1.0 - chance, rate
    far = np.add.reduce(ahead * np.maximum(crossing - last, 0.0), axis=1)
    left = np.divide(far, chance, out=np.zeros(n), where=chance > 0)
    return quantiles, 1.0 - chance, chance / np.maximum(left, 1.0)


def _as_seen(crossing: Array, level: Array, histories: Histories) -> tuple[Array, NDArray[np.bool_]]:
    """Crossings (J, D) of levels that the reports show: where they do; not yet, where they do not. Which are behind."""
    # Bin by bin, so that what is added up lies side by side.
    above = np.ascontiguousarray(histories.reached.T)[:, :, None] > level
    unreached = np.add.reduce(above.view(np.uint8), axis=0, dtype=np.uint8)
    behind = unreached < BINS
    when = _taken(histories.iteration, np.minimum(unreached, BINS - 1).astype(np.int64))
    return np.where(behind, when, np.maximum(crossing, histories.last[:, None])), behind


@cache
def _shares(spec: TargetSpec) -> Array:
    return spec.shares(PRIOR_DRAWS)


def _lengths(last: Array) -> Array:
    """Ends (J, LENGTHS) that a run of unknown length may have, equally likely."""
    ends: Array = np.maximum(last, 1.0)[:, None] * FARTHEST ** ((np.arange(LENGTHS) + 0.5) / LENGTHS)
    return ends


def _reweighted(weight: Array, prior: Array) -> Array:
    """Rows of weights times a prior, to sum 1; a prior that denies everything is not heeded."""
    product = weight * prior
    total = np.add.reduce(product, axis=1, keepdims=True)
    heeded = (total > 1e-6 * np.maximum.reduce(prior, axis=1, keepdims=True)) & (total > 0)
    return np.where(heeded, np.divide(product, total, out=np.zeros_like(product), where=heeded), weight)


def _sorted(values: Array, weight: Array) -> tuple[Array, Array]:
    order = values.argsort(axis=1, kind="stable")
    return _taken(values, order), _taken(weight, order)


def _taken(rows: Array, column: Ints) -> Array:
    """Of each row the values in some columns (J, N)."""
    taken: Array = rows.take(column + (np.arange(len(rows)) * rows.shape[1])[:, None])
    return taken


def _quantiles(values: Array, weight: Array) -> Array:
    """The 10, 50 and 90 % quantiles (J, 3) of rows of ascending values with weights."""
    reached = weight.cumsum(axis=1)
    # The first that is reached: nothing falls on the way.
    at = np.stack([(reached >= share * reached[:, -1:]).argmax(axis=1) for share in INTERVAL], axis=1)
    return _taken(values, at)


def _estimates(quantiles: Array) -> list[Estimate]:
    """Of rows of low, median and high."""
    return [Estimate(median, low, high) for low, median, high in quantiles.tolist()]
