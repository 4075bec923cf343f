"""Learning-curve fits: from a metric history to the iterations left until a share of convergence, with uncertainty.

A history is fitted by a weighted average of simple curves rather than by one. With y the metric turned so that
it falls (accuracy negated), each candidate is y(k) = c0 + c1 x(k), c1 >= 0, with

* x(k) = 1 / (1 + k / s): the hyperbola 1 / (a k + b), the shape of SGD's convergence bounds, as Optimus fits it
  (Y. Peng, Y. Bao, Y. Chen, C. Wu, C. Guo: Optimus, EuroSys 2018, doi:10.1145/3190508.3190517);
* x(k) = exp(-k / s): runs that saturate faster than any hyperbola.

For a fixed scale s both are linear, so a grid of scales is solved in closed form, robustly (Huber weights, P. Huber,
1964, doi:10.1214/aoms/1177703732) and with recent points weighing more. The candidates are weighted by their
likelihood, tempered because the reports of one run are not independent; the spread of the candidates and of each
one's own parameters is the uncertainty. Deterministic: the same history gives the same fit. Cost O(n G) for n
points (thinned to 200) and G = 48 candidates: about a millisecond.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from controller.model import Metric, Progress

Array = NDArray[np.float64]

MIN_POINTS = 3
MAX_POINTS = 200
SCALES = 24
SAMPLES = 24
TEMPER = 0.05  # what one report is worth of an independent one; set on recorded runs (see docs/policies.md)
INTERVAL = (0.1, 0.5, 0.9)
HUBER = 1.5


@dataclass(frozen=True, slots=True)
class Asked:
    """A target to be predicted: a share of convergence, and after which share of a run it typically comes.

    The latter is a log-normal prior, its median and the standard deviation of its logarithm; it counts only where the
    run's length is known.
    """

    fraction: float
    typical: float
    spread: float

    def shares(self, n: int) -> Array:
        """n equally likely shares of a run (at most 1)."""
        shares: Array = np.minimum(self.typical * np.exp(self.spread * ndtri((np.arange(n) + 0.5) / n)), 1.0)
        return shares

    def density(self, share: Array) -> Array:
        """The prior over the logarithm of the share, up to a constant factor."""
        with np.errstate(divide="ignore"):
            density: Array = np.exp(-0.5 * (np.log(share / self.typical) / self.spread) ** 2)
        return density


T90 = Asked(0.90, typical=0.20, spread=0.4)
T95 = Asked(0.95, typical=0.30, spread=0.4)


@dataclass(frozen=True, slots=True)
class Estimate:
    """A median with its 80 % interval."""

    median: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, eq=False)
class Target:
    """A share of convergence: the metric there, the iteration at which it is crossed, and how likely it was already.

    ``iteration`` counts from the job's start. ``crossed`` is a probability. ``draws`` are possible
    iterations of the crossing and their weights (both (D,), the weights sum to 1); infinite: it lies behind already.
    """

    fraction: float
    metric: float
    iteration: Estimate
    crossed: float
    draws: tuple[Array, Array]


@dataclass(frozen=True, slots=True)
class Fit:
    """A fitted history: the converged metric and the targets asked for, in the order asked."""

    points: int
    converged: Estimate
    targets: tuple[Target, ...]


def running_median(values: Array) -> Array:
    """Median of each value and the two before it (fewer at the start), the smoothing by which t90 is defined."""
    if len(values) < 3:
        return np.array([np.median(values[: i + 1]) for i in range(len(values))])
    windows = np.lib.stride_tricks.sliding_window_view(values, 3)
    return np.concatenate(([values[0], float(np.median(values[:2]))], np.median(windows, axis=1)))


def fit(
    progress: Sequence[Progress],
    metric: Metric,
    total: float | None = None,
    asked: Sequence[Asked] = (T90, T95),
) -> Fit | None:
    """Fit a history; None with fewer than 3 finite metric values.

    ``total``: iterations of the whole run, where known; the converged metric is then the curve's value in the middle
    of the last tenth of the run (whose median defines it), else the curve's limit, and no target lies beyond it.
    """
    history = {p.iteration: p.metric for p in progress if p.metric is not None and np.isfinite(p.metric)}
    if len(history) < MIN_POINTS:
        return None
    iterations = np.array(sorted(history))
    sign = -1.0 if metric.direction == "max" else 1.0
    falling = sign * np.array([history[k] for k in iterations])
    start = 0.0 if metric.direction == "max" else float(falling[0])
    best_seen = float(running_median(falling).min())

    # Everything is scaled to the history's own size, so accuracies in percent and losses near 0 fit alike.
    size = float(np.ptp(falling)) or max(abs(float(falling[-1])), 1e-12)
    end = max(float(total), float(iterations[-1])) if total is not None else None
    floor = _natural_limit(falling, metric)
    keep = _thinned(len(iterations))
    scales = _scales(float(iterations[-1]), end)
    candidates = _solve(iterations[keep], falling[keep] / size, scales, floor / size)

    x_end = np.zeros(2 * SCALES) if end is None else _basis(np.array([0.95 * end]), scales)[:, 0]
    c0, c1, likely = candidates.sample()
    converged = c0 + c1 * x_end[:, None]
    converged = np.minimum(converged, start / size)
    gap = converged - start / size
    targets = []
    for ask in asked:
        level = start / size + ask.fraction * gap
        # Where the curve is flat (c1 = 0) its target lies behind it: the ratio is then beyond the start's.
        ratio = np.divide(level - c0, c1, out=np.full_like(c0, np.inf), where=c1 > 1e-12)
        crossing = _inverse(ratio, scales)
        crossing = np.clip(crossing, 0.0, end if end is not None else 1e3 * max(float(iterations[-1]), 1.0))
        weight = _reweighted(likely, ask.density(crossing / end)) if end is not None else likely
        behind = (level >= best_seen / size) | (crossing <= float(iterations[-1]))
        crossed = float(weight[behind].sum())
        targets.append(
            Target(
                fraction=ask.fraction,
                metric=sign * size * _quantiles(level, weight)[1],
                iteration=Estimate(*_median_first(_quantiles(crossing, weight))),
                crossed=min(crossed, 1.0),
                draws=(np.where(behind, np.inf, crossing).ravel(), weight.ravel()),
            )
        )
    low, median, high = sorted(sign * size * q for q in _quantiles(converged, likely))
    return Fit(points=len(iterations), converged=Estimate(median, low, high), targets=tuple(targets))


@dataclass(frozen=True, slots=True, eq=False)
class _Candidates:
    """The solved grid: mean (G, 2) and Cholesky factor (G, 2, 2) of (c0, c1), weight (G,), least c0."""

    mean: Array
    root: Array
    weight: Array
    floor: float

    def sample(self) -> tuple[Array, Array, Array]:
        """Deterministic draws of c0 and c1 (G, S) and their weights (G, S), which sum to 1."""
        normal = _normals(SAMPLES)
        draws = self.mean[:, None, :] + np.einsum("gij,sj->gsi", self.root, normal)
        c0 = np.maximum(draws[..., 0], self.floor)
        c1 = np.maximum(draws[..., 1], 0.0)
        return c0, c1, np.repeat(self.weight[:, None] / SAMPLES, SAMPLES, axis=1)


def _reweighted(weight: Array, prior: Array) -> Array:
    """Weights times a prior, to sum 1; a prior that denies everything is not heeded."""
    product = weight * prior
    total = float(product.sum())
    return product / total if total > 1e-6 * float(prior.max(initial=0.0)) and total > 0 else weight


def _natural_limit(falling: Array, metric: Metric) -> float:
    """The best value that the metric can have: 1 or 100 for shares, 0 for what was never negative, else none."""
    if metric.direction == "min":
        return 0.0 if falling.min() >= 0 else -np.inf
    best = -float(falling.min())
    if falling.max() > 0 or best > 100:
        return -np.inf
    return -1.0 if best <= 1 else -100.0


def _thinned(n: int) -> NDArray[np.int64]:
    """Positions of at most MAX_POINTS of n points, evenly, the last always in."""
    return np.unique(np.linspace(0, n - 1, min(n, MAX_POINTS)).round().astype(np.int64))


def _scales(last: float, end: float | None) -> Array:
    """The grid of s: from a fraction of what was seen to beyond the run's end."""
    widest = 2 * end if end is not None else 20 * max(last, 1.0)
    return np.geomspace(max(last, 1.0) / 50, max(widest, last), SCALES)


def _basis(k: Array, scales: Array) -> Array:
    """x(k) of every candidate: (2 * SCALES, len(k)); hyperbolas first."""
    ratio = k[None, :] / scales[:, None]
    return np.concatenate((1 / (1 + ratio), np.exp(-ratio)))


def _inverse(x: Array, scales: Array) -> Array:
    """The k at which each candidate has the value x (G, S); infinite where it never falls so low."""
    half = len(scales)
    out = np.full_like(x, np.inf)
    positive = x > 0
    s = np.broadcast_to(np.concatenate((scales, scales))[:, None], x.shape)
    with np.errstate(divide="ignore", invalid="ignore"):
        hyperbola = s * (1 / x - 1)
        exponential = -s * np.log(x)
    out[:half] = np.where(positive[:half], hyperbola[:half], np.inf)
    out[half:] = np.where(positive[half:], exponential[half:], np.inf)
    # A ratio of +inf is a flat curve, which was at its target from the start.
    return np.where(np.isposinf(x), 0.0, out)


def _solve(k: Array, y: Array, scales: Array, floor: float) -> _Candidates:
    """Robust weighted least squares of every candidate at once, c1 >= 0 and c0 >= floor."""
    x = _basis(k, scales)
    # A point's weight grows with its rank: the latest counts four times the first.
    recency = np.geomspace(0.25, 1.0, len(k))
    recency *= len(k) / recency.sum()
    w = np.broadcast_to(recency, x.shape)
    noise = _noise(y)
    for _ in range(4):
        mean, normal = _least_squares(x, y, w, floor)
        residual = y[None, :] - mean[:, :1] - mean[:, 1:] * x
        # The scale comes from each candidate's own residuals, but not below the history's own jitter.
        scale = np.maximum(1.4826 * np.median(np.abs(residual), axis=1, keepdims=True), noise)
        w = recency * np.minimum(1.0, HUBER * scale / np.maximum(np.abs(residual), 1e-12))
    spread = np.sqrt((w * residual**2).sum(axis=1) / len(k))
    variance = np.maximum(spread, noise) ** 2
    loglik = -0.5 * TEMPER * len(k) * np.log(variance)
    weight = np.exp(loglik - loglik.max())
    covariance = variance[:, None, None] / TEMPER * np.linalg.inv(normal)
    return _Candidates(mean, np.linalg.cholesky(covariance), weight / weight.sum(), floor)


def _noise(y: Array) -> float:
    """Jitter of a history: the robust spread of its second differences, with a floor so that exact curves solve."""
    if len(y) < 4:
        return 0.02
    second = y[2:] - 2 * y[1:-1] + y[:-2]
    return max(float(1.4826 * np.median(np.abs(second)) / np.sqrt(6)), 1e-3)


def _least_squares(x: Array, y: Array, w: Array, floor: float) -> tuple[Array, Array]:
    """(c0, c1) of every candidate (G, 2) under the bounds, and the normal matrices (G, 2, 2)."""
    s0, s1, s2 = w.sum(axis=1), (w * x).sum(axis=1), (w * x * x).sum(axis=1)
    t0, t1 = (w * y).sum(axis=1), (w * x * y).sum(axis=1)
    # A breath of ridge keeps candidates solvable whose x does not vary over the history.
    ridge = 1e-6 * s0
    determinant = (s0 + ridge) * (s2 + ridge) - s1**2
    c1 = ((s0 + ridge) * t1 - s1 * t0) / determinant
    c1 = np.maximum(c1, 0.0)
    c0 = (t0 - c1 * s1) / s0
    bounded = c0 < floor
    if bounded.any():
        c1 = np.where(bounded, np.maximum((t1 - floor * s1) / (s2 + ridge), 0.0), c1)
        c0 = np.where(bounded, floor, c0)
    normal = np.stack((np.stack((s0 + ridge, s1), axis=-1), np.stack((s1, s2 + ridge), axis=-1)), axis=-2)
    return np.stack((c0, c1), axis=-1), normal


@cache
def _normals(n: int) -> Array:
    """n points of the plane, spread like a standard normal: a rank-1 lattice through the normal's quantiles."""
    i = np.arange(n) + 0.5
    u = np.stack((i / n, (i * 0.6180339887498949) % 1.0), axis=-1)
    return np.asarray(ndtri(np.clip(u, 1e-3, 1 - 1e-3)), dtype=float)


def _quantiles(values: Array, weight: Array) -> tuple[float, float, float]:
    """The 10, 50 and 90 % quantiles of weighted draws."""
    flat, w = values.ravel(), weight.ravel()
    order = np.argsort(flat, kind="stable")
    cumulative = np.cumsum(w[order])
    at = np.searchsorted(cumulative, np.array(INTERVAL) * cumulative[-1])
    low, median, high = flat[order][np.minimum(at, len(flat) - 1)]
    return float(low), float(median), float(high)


def _median_first(quantiles: tuple[float, float, float]) -> tuple[float, float, float]:
    low, median, high = quantiles
    return median, low, high
