"""Metric histories as arrays: read, cleaned, turned so that they fall, scaled to their own size, and put into bins.

Many at once, because a plan needs those of all jobs: everything here is a few passes over flat arrays.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from controller.curves.earlier import EarlierRuns
from controller.curves.reports import Reports, joined
from controller.model import Metric, Progress

Array = NDArray[np.float64]
Ints = NDArray[np.int64]

MIN_POINTS = 3
BINS = 32
"""Average a longer history in at most this many bins with equally many reports each."""
FIRST_WEIGHT = 0.25
"""Weigh the first report by this, the last by 1, and those between linearly by rank."""
LEAST_NOISE = 1e-3
"""Take at least this noise, as a share of a history's size, so that exact curves can be solved."""
SHORT_NOISE = 0.02
"""Take this noise, as a share of a history's size, where the history is too short to measure it."""

LEAST_SIZE = 1e-100
"""Treat a metric that has changed by less as constant: in such units its natural limits would be infinite."""


class History(NamedTuple):
    """What a job reported, its metric, and where known the iterations of its whole run, its declared target, and the
    earlier runs of its family."""

    progress: Sequence[Progress]
    metric: Metric
    total: float | None = None
    target: float | None = None
    earlier: EarlierRuns | None = None


class FitInput(NamedTuple):
    """A history whose reports have been read into arrays already."""

    reports: Reports
    metric: Metric
    total: float | None = None
    target: float | None = None
    earlier: EarlierRuns | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Histories:
    """J histories of metrics that fall, in units of ``size``. Bins are at the right; those at the left have no weight.

    ``sign`` (J,): -1 for a metric that rises; ``start``: where its gap starts; ``least``: the best that the metric can
    be, or -inf; ``best``: the best single report; ``noise``: its jitter; ``points``: how many reports. ``iteration``,
    ``value`` and ``weight`` are (J, BINS); weights sum to ``bins`` (J,), the number of those in use. ``reached`` (J,
    BINS): the best running median of three so far. ``last``: the latest report's iteration; ``end``: the run's last,
    nan: unknown. ``target``: the declared value, nan: none is declared; ``crossed``: the iteration of the first report
    at which the median of it and the two before is there, inf: none is.
    """

    sign: Array
    size: Array
    start: Array
    least: Array
    best: Array
    noise: Array
    points: Ints
    last: Array
    end: Array
    target: Array
    crossed: Array
    bins: Array
    iteration: Array
    value: Array
    weight: Array
    reached: Array


def read(histories: Sequence[History | FitInput]) -> tuple[Ints, Histories]:
    """Returns the positions of the histories with at least ``MIN_POINTS`` finite values, and these histories."""
    reports = [
        history.reports if isinstance(history, FitInput) else Reports.of(history.progress) for history in histories
    ]
    owner = np.repeat(np.arange(len(reports)), [len(history) for history in reports])
    iteration = joined([history.iterations for history in reports])
    owner, iteration, value = _in_order(owner, iteration, joined([history.metrics for history in reports]))
    count = np.bincount(owner, minlength=len(histories))
    positions = np.flatnonzero(count >= MIN_POINTS)
    kept = count[owner] >= MIN_POINTS
    iteration, value, count = iteration[kept], value[kept], count[positions]
    owner = np.repeat(np.arange(len(positions)), count)
    known = [histories[position] for position in positions.tolist()]
    total = np.array([np.nan if history.total is None else history.total for history in known], dtype=np.float64)
    rising = np.array([history.metric.direction == "max" for history in known], dtype=bool)
    target = np.array([np.nan if history.target is None else history.target for history in known], dtype=np.float64)
    return positions, _made(owner, iteration, value, count, total=total, rising=rising, target=target)


def running_median(values: Array) -> Array:
    """Median of each value and the two before it (fewer at the start), the smoothing by which t90 is defined."""
    smooth = np.array(values, dtype=np.float64)
    smooth[1:2] = smooth[:2].mean() if len(smooth) > 1 else smooth[1:2]
    smooth[2:] = _middle(values[:-2], values[1:-1], values[2:])
    return smooth


def _in_order(owner: Ints, iteration: Array, value: Array) -> tuple[Ints, Array, Array]:
    """Finite values only, by iteration; of several for one iteration the last that was given."""
    fine = np.isfinite(value)
    if not fine.all():
        owner, iteration, value = owner[fine], iteration[fine], value[fine]
    same = owner[1:] == owner[:-1]
    if (iteration[1:] > iteration[:-1])[same].all():
        return owner, iteration, value
    order = np.lexsort((iteration, owner))
    owner, iteration, value = owner[order], iteration[order], value[order]
    last = np.append((owner[1:] != owner[:-1]) | (iteration[1:] > iteration[:-1]), True)
    return owner[last], iteration[last], value[last]


def _made(
    owner: Ints,
    iteration: Array,
    value: Array,
    count: Ints,
    *,
    total: Array,
    rising: NDArray[np.bool_],
    target: Array,
) -> Histories:
    end = np.cumsum(count)
    first = end - count
    sign = np.where(rising, -1.0, 1.0)
    falling = sign[owner] * value
    if not len(falling):
        least = greatest = np.zeros(0)
    else:
        least, greatest = np.minimum.reduceat(falling, first), np.maximum.reduceat(falling, first)
    size = greatest - least
    size = np.where(size > LEAST_SIZE, size, np.maximum(np.abs(falling[end - 1]), 1e-12))
    scaled = falling / size[owner]
    smooth, medians = _smoothed(scaled, owner, first, end)
    last = iteration[end - 1]
    target = sign * target / size
    bins, places, weight = _bins(owner, count)
    shape = (len(count), BINS)
    sums = [np.bincount(places, amount, shape[0] * BINS).reshape(shape) for amount in (iteration, smooth)]
    held = np.bincount(places, minlength=shape[0] * BINS).reshape(shape)
    binned = [np.divide(total_of, held, out=np.zeros(shape), where=held > 0) for total_of in sums]
    return Histories(
        sign=sign,
        size=size,
        start=np.where(rising, 0.0, scaled[first]),
        least=_natural_limit(least, greatest, rising) / size,
        best=least / size,
        noise=_noise(binned[1], bins),
        points=count,
        last=last,
        end=np.maximum(total, last),
        target=target,
        crossed=_crossed(medians, target, iteration, owner, first),
        bins=bins.astype(np.float64),
        iteration=binned[0],
        value=binned[1],
        weight=weight * held / (weight * held).sum(axis=1, keepdims=True) * bins[:, None],
        reached=_reached(medians, places, shape),
    )


def _smoothed(value: Array, owner: Ints, first: Ints, end: Ints) -> tuple[Array, Array]:
    """Values of long histories without what stands out alone, and all running medians of three."""
    middle = value.copy()
    if len(value) > MIN_POINTS - 1:
        middle[1:-1] = _middle(value[:-2], value[1:-1], value[2:])
    middle[first], middle[end - 1] = value[first], value[end - 1]
    # A report's running median is the middle one of it and the two before; the first two have fewer.
    medians = np.append(value[:1], middle[:-1])
    medians[first] = value[first]
    medians[first + 1] = (value[first] + value[first + 1]) / 2
    long = (end - first > BINS)[owner]
    return np.where(long, middle, value), medians


def _crossed(medians: Array, target: Array, iteration: Array, owner: Ints, first: Ints) -> Array:
    """The iteration (J,) of the first report at which the median of three is at the target; inf: there is none."""
    if np.isnan(target).all():
        return np.full(len(target), np.inf)
    is_there = (medians <= target[owner]) & (np.arange(len(owner)) - first[owner] >= MIN_POINTS - 1)
    crossed: Array = np.minimum.reduceat(np.where(is_there, iteration, np.inf), first)
    return crossed


def _reached(medians: Array, places: Ints, shape: tuple[int, int]) -> Array:
    best = np.full(shape[0] * shape[1], np.inf)
    if len(places):
        first = np.flatnonzero(np.append(True, places[1:] != places[:-1]))
        best[places[first]] = np.minimum.reduceat(medians, first)
    reached: Array = np.minimum.accumulate(best.reshape(shape), axis=1)
    return reached


def _middle(a: Array, b: Array, c: Array) -> Array:
    middle: Array = np.maximum(np.minimum(a, b), np.minimum(np.maximum(a, b), c))
    return middle


def _bins(owner: Ints, count: Ints) -> tuple[Ints, Ints, Array]:
    """How many bins each history has, the bin of each report (row x BINS + column), and a bin's weight a report."""
    width = -(-count // BINS)
    bins = -(-count // width)
    from_end = np.cumsum(count)[owner] - 1 - np.arange(len(owner))
    places = owner * BINS + BINS - 1 - from_end // width[owner]
    rank = np.arange(BINS) - (BINS - bins)[:, None]
    weight = FIRST_WEIGHT ** (1 - rank / np.maximum(bins - 1, 1)[:, None])
    return bins, places, np.where(rank >= 0, weight, 0.0)


def _noise(value: Array, bins: Ints) -> Array:
    """Jitter of each history: the robust spread of its second differences."""
    if not len(value):
        return np.zeros(0)
    second = np.abs(value[:, 2:] - 2 * value[:, 1:-1] + value[:, :-2])
    there = bins - 2
    second[np.arange(BINS - 2) < (BINS - 2 - there)[:, None]] = np.inf
    second.sort(axis=1)
    middle = np.take_along_axis(second, (there // 2)[:, None], axis=1)[:, 0]
    return np.where(bins < MIN_POINTS + 1, SHORT_NOISE, np.maximum(1.4826 * middle / np.sqrt(6), LEAST_NOISE))


def _natural_limit(least: Array, greatest: Array, rising: NDArray[np.bool_]) -> Array:
    """The best value that the metric can have: 1 or 100 for shares, 0 for what was never negative, else none."""
    share = np.where((greatest > 0) | (least < -100), -np.inf, np.where(least >= -1, -1.0, -100.0))
    return np.where(rising, share, np.where(least >= 0, 0.0, -np.inf))
