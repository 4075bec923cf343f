"""Learning-curve fits: from a metric history to the iterations left until a share of convergence, with uncertainty.

A history is fitted by a weighted average of simple curves rather than by one (``controller.curves.candidates``). The
spread of the candidates and of each one's own parameters is the uncertainty. A prior says after which share of a run a
target typically comes: where a fit says little, it decides; and because curves are not bound to be of the families
that are fitted, it has a share of its own beside the fit. Of a run whose length is unknown every length up to 15 times
what was seen is as likely, on a logarithmic scale.

Beside the fit's own intervals, which hold for curves of any family, stands what runs like the recorded ones tell of
such a history (``controller.curves.prospects``): surer, and what ordering jobs goes by.

A target that the job declares is a level instead of a share of convergence. Whether it was crossed is seen, not
guessed, and it may lie where the run never gets.

Deterministic: the same history gives the same fit. Many histories at once cost far less than one by one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import repeat
from math import isnan
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from controller.curves.candidates import FARTHEST, SAMPLES, iteration_at, solve, value_at
from controller.curves.declared import Declared, DeclaredTargets, Draws
from controller.curves.earlier import EarlierRuns
from controller.curves.earlier_numbers import earlier_numbers
from controller.curves.histories import BINS, MIN_POINTS, FitInput, Histories, History, read, running_median
from controller.curves.prospects import learned, learned_with, outlook
from controller.curves.reports import Reports, joined
from controller.curves.shapes import shapes
from controller.curves.target_spec import PRIOR_SHARE, T90, T95, TargetSpec, prior_shares
from controller.curves.weighted import Estimate, estimates, in_order, quantiles, reweighted, taken
from controller.model import Metric, Progress

__all__ = [
    "MIN_POINTS",
    "T90",
    "T95",
    "Declared",
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

LENGTHS = 5
"""Represent the possible lengths of a run of unknown length by this many."""
_TOGETHER = 64
"""Read and solve this many histories at once, so that their arrays stay in the processor's cache."""


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
    """A fitted history up to the iteration ``last``: the converged metric, and the targets in the order asked for.

    ``start`` is the value at which the gap starts. ``declared`` is the job's own target; None: it declares none.
    ``by_family`` says that earlier runs of the job's family gave the best chance to reach 90 %, or the declared target.
    """

    points: int
    last: float
    converged: Estimate
    targets: tuple[Target, ...]
    start: float
    declared: Declared | None
    by_family: bool = False


def fit(
    progress: Sequence[Progress],
    metric: Metric,
    total: float | None = None,
    specs: Sequence[TargetSpec] = (T90, T95),
    *,
    target: float | None = None,
) -> Fit | None:
    """Fit one history; see ``fit_many``."""
    return fit_many([History(progress, metric, total, target)], specs)[0]


def fit_many(histories: Sequence[History | FitInput], specs: Sequence[TargetSpec] = (T90, T95)) -> list[Fit | None]:
    """Returns the fits of histories, in their order; None for a history with fewer than 3 finite metric values.

    Where the iterations of the whole run are known, the converged metric is the curve's value in the middle of the last
    tenth of the run (whose median defines it), and no target lies beyond the run's end.
    """
    fits: list[Fit | None] = [None] * len(histories)
    kinds = [_kind(history) for history in histories]
    for kind in sorted(set(kinds)):
        rows = [i for i, own in enumerate(kinds) if own == kind]
        for first in range(0, len(rows), _TOGETHER):
            rows_together = rows[first : first + _TOGETHER]
            positions, known = read([histories[i] for i in rows_together])
            earlier = [histories[rows_together[position]].earlier for position in positions.tolist()]
            for position, fitted in zip(
                positions.tolist(), _fit_some(known, specs, earlier) if len(positions) else (), strict=True
            ):
                fits[rows_together[position]] = fitted
    return fits


def _kind(history: History | FitInput) -> tuple[bool, bool, bool]:
    """Returns whether the end of the run is unknown, and whether a target and earlier runs are known.

    Earlier runs tell when a share of the run comes, so they tell nothing where its length is not known.
    """
    is_endless = history.total is None or isnan(history.total)
    return is_endless, history.target is not None, history.earlier is not None and not is_endless


def _fit_some(
    histories: Histories, specs: Sequence[TargetSpec], earlier: Sequence[EarlierRuns | None] = ()
) -> list[Fit]:
    """Fits of histories of one kind, see ``_kind``. ``earlier``: the earlier runs of each, where they are known."""
    draws = _draw(histories)
    start = histories.start
    converged = _converged(draws)
    unit = (histories.sign * histories.size)[:, None]
    spread = np.sort(unit * converged, axis=1)
    # The shape is the same for every target.
    is_endless = bool(np.isnan(histories.end).any())
    shape = None if is_endless or not any(spec.learned for spec in specs) else shapes(histories)
    targets = [_target(spec, histories, draws, shape=shape) for spec in specs]
    found = None if np.isnan(histories.target).any() else DeclaredTargets.of(histories, draws)
    runs = [one for one in earlier if one is not None and shape is not None]
    declared: Iterable[Declared | None] = repeat(None)
    if shape is not None and (found is not None or runs):
        # What is known beside the history tells better when 90 % comes.
        own = dict(zip(specs, targets, strict=True)).get(T90) or _target(T90, histories, draws, shape=None)
        numbers = _numbers(histories, found, runs, converged[:, 1], outlook(histories, *own[:2]))
        rate = learned_with(target=found is not None, family=bool(runs)).best(histories, shape, numbers)
        if found is None:
            targets = [(*own[:2], rate) if spec == T90 else of for spec, of in zip(specs, targets, strict=True)]
        else:
            declared = found.as_values(histories, rate)
    elif found is not None:
        declared = found.as_values(histories, found.rate)
    zero = start * unit[:, 0]
    levels = [zero + spec.fraction * (spread[:, 1] - zero) for spec in specs]
    of_each = zip(
        *(_targets(spec.fraction, level, *of) for spec, level, of in zip(specs, levels, targets, strict=True)),
        strict=True,
    )
    points, last = histories.points.tolist(), histories.last.tolist()
    by_family = repeat(bool(runs))
    columns = (points, last, estimates(spread), of_each if specs else repeat(()), zero.tolist(), declared, by_family)
    return [Fit(*one) for one in zip(*columns, strict=False)]


def _draw(histories: Histories) -> Draws:
    """Curves that may be those of histories that all have a known end, or none of which has."""
    candidates = solve(histories)
    ends = _lengths(histories.last) if np.isnan(histories.end).any() else histories.end[:, None]
    # Draws are (J, G, S, E), E for the ends that the run may have.
    x_end = value_at(0.95 * ends[:, None, None, :], candidates.scale[:, :, None, None])
    limit = candidates.c0[..., None] + candidates.c1[..., None] * x_end
    converged = np.minimum(limit, histories.start[:, None, None, None])
    likely = np.broadcast_to((candidates.weight / (SAMPLES * ends.shape[1]))[:, :, None, None], converged.shape)
    return Draws(candidates, ends, converged, likely)


def _converged(draws: Draws) -> Array:
    """Quantiles (J, 3) of the converged metric, turned and scaled as the histories are."""
    n = len(draws.ends)
    return quantiles(*in_order(draws.converged.reshape(n, -1), draws.likely.reshape(n, -1)))


def _numbers(
    histories: Histories,
    found: DeclaredTargets | None,
    runs: Sequence[EarlierRuns],
    converged: Array,
    own: Array,
) -> Array:
    """What the trees see beside the history's shape (J, 4 to 30), of declared targets and of earlier runs, if any.

    ``converged`` (J,) is the median by the fit, ``own`` (J, 4) the outlook on 90 % of it.
    """
    numbers = [own]
    if found is not None:
        numbers += [found.outlook(histories), found.numbers(histories, converged)]
    if runs:
        numbers.append(earlier_numbers(histories, runs, converged))
    return np.concatenate(numbers, axis=1)


def known_numbers(histories: Sequence[History | FitInput]) -> Array:
    """What the trees see (J, 25 to 51) of histories of one kind that have a known length and enough reports.

    All have a declared target, or none has; and the same of earlier runs.
    """
    rows = []
    for first in range(0, len(histories), _TOGETHER):
        together = histories[first : first + _TOGETHER]
        _, known = read(together)
        draws = _draw(known)
        own = outlook(known, *_target(T90, known, draws, shape=None)[:2])
        found = None if np.isnan(known.target).any() else DeclaredTargets.of(known, draws)
        runs = [history.earlier for history in together if history.earlier is not None]
        rows.append(np.concatenate((shapes(known), _numbers(known, found, runs, _converged(draws)[:, 1], own)), axis=1))
    return np.concatenate(rows)


def _targets(fraction: float, level: Array, crossing: Array, crossed: Array, rate: Array) -> list[Target]:
    """One target of every history."""
    columns = zip(level.tolist(), estimates(crossing), crossed.tolist(), rate.tolist(), strict=True)
    return [Target(fraction, *one) for one in columns]


def _target(spec: TargetSpec, histories: Histories, draws: Draws, *, shape: Array | None) -> tuple[Array, Array, Array]:
    """Quantiles of the crossing (J, 3), how likely it is behind (J,), and the best chance per iteration (J,).

    ``shape`` is the histories', where recorded runs can tell of them.
    """
    candidates, ends, converged, likely = draws
    n = len(histories.last)
    last = histories.last[:, None]
    start = histories.start[:, None, None, None]
    level = start + spec.fraction * (converged - start)
    c1 = np.broadcast_to(candidates.c1[..., None], level.shape)
    # Where the curve is flat (c1 = 0) its target lies behind it: the ratio is then beyond the start's.
    ratio = np.divide(level - candidates.c0[..., None], c1, out=np.full_like(level, np.inf), where=c1 > 1e-12)
    crossing = iteration_at(ratio, candidates.scale[:, :, None, None])
    crossing = np.minimum(np.maximum(crossing, 0.0), ends[:, None, None, :])
    weight = reweighted(likely.reshape(n, -1), spec.density(crossing / ends[:, None, None, :]).reshape(n, -1))
    crossing, behind = _as_seen(crossing.reshape(n, -1), level.reshape(n, -1), histories)
    prior = (ends[:, :, None] * prior_shares(spec)).reshape(n, -1)
    crossing = np.concatenate((crossing, prior), axis=1)
    weight = np.concatenate(((1 - PRIOR_SHARE) * weight, np.full(prior.shape, PRIOR_SHARE / prior.shape[1])), axis=1)
    behind = np.concatenate((behind, prior <= last), axis=1)
    ahead = np.where(behind, 0.0, weight)
    chance = np.minimum(np.maximum(np.add.reduce(ahead, axis=1), 0.0), 1.0)
    when = quantiles(*in_order(crossing, weight))
    if spec.learned and shape is not None:
        rate = learned(spec.fraction).best(histories, shape, outlook(histories, when, 1.0 - chance))
        return when, 1.0 - chance, rate
    far = np.add.reduce(ahead * np.maximum(crossing - last, 0.0), axis=1)
    left = np.divide(far, chance, out=np.zeros(n), where=chance > 0)
    return when, 1.0 - chance, chance / np.maximum(left, 1.0)


def _as_seen(crossing: Array, level: Array, histories: Histories) -> tuple[Array, NDArray[np.bool_]]:
    """Crossings (J, D) of levels that the reports show: where they do; not yet, where they do not. Which are behind."""
    # Bin by bin, so that what is added up lies side by side.
    above = np.ascontiguousarray(histories.reached.T)[:, :, None] > level
    unreached = np.add.reduce(above.view(np.uint8), axis=0, dtype=np.uint8)
    behind = unreached < BINS
    when = taken(histories.iteration, np.minimum(unreached, BINS - 1).astype(np.int64))
    return np.where(behind, when, np.maximum(crossing, histories.last[:, None])), behind


def _lengths(last: Array) -> Array:
    """Ends (J, LENGTHS) that a run of unknown length may have, equally likely."""
    ends: Array = np.maximum(last, 1.0)[:, None] * FARTHEST ** ((np.arange(LENGTHS) + 0.5) / LENGTHS)
    return ends
