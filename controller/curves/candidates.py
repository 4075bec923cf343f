"""Candidate curves for many histories at once, solved in closed form over a grid of scales.

With y the metric turned so that it falls, each candidate is y(k) = c0 + c1 x(k), c1 >= 0, with

* x(k) = 1 / (1 + k / s): the hyperbola 1 / (a k + b), the shape of SGD's convergence bounds, as Optimus fits it
  (Y. Peng, Y. Bao, Y. Chen, C. Wu, C. Guo: Optimus, EuroSys 2018, doi:10.1145/3190508.3190517);
* x(k) = exp(-k / s): runs that saturate faster than any hyperbola.

For a fixed scale s both are linear: weighted least squares, once more with Huber's weights (P. Huber, 1964,
doi:10.1214/aoms/1177703732). Candidates are weighted by their likelihood, tempered because the reports of one run are
not independent. J histories, G = 2 SCALES candidates, S draws of each one's parameters. Cost O(J G (BINS + S)).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from controller.curves.histories import Histories

Array = NDArray[np.float64]

SCALES = 12
SAMPLES = 6
TEMPER = 0.3  # what one bin is worth of an independent report; set on recorded runs (see docs/policies.md)
HUBER = 1.5
FARTHEST = 15.0
"""A run of unknown length is taken to be at most this many times as long as what it has reported."""
_MEAN_TO_DEVIATION = 1.2533  # of a normal distribution


@dataclass(frozen=True, slots=True, eq=False)
class Candidates:
    """``scale`` (J, G), half of them hyperbolas; draws ``c0``, ``c1`` (J, G, S); ``weight`` (J, G), rows of sum 1."""

    scale: Array
    c0: Array
    c1: Array
    weight: Array


def solve(histories: Histories) -> Candidates:
    """The candidates of every history."""
    scale = _scales(histories)
    y, weight, least = histories.value, histories.weight, histories.least[:, None]
    ratio = histories.iteration[:, None, :] / scale[:, :, None]
    x = np.concatenate((1 / (1 + ratio), np.exp(-ratio)), axis=1)
    w = np.broadcast_to(weight[:, None, :], x.shape)
    c0, c1, _ = _least_squares(x, y, w, least)
    residual = _residual(x, y, c0, c1)
    # The scale comes from each candidate's own residuals, but not below the history's own jitter.
    spread = _MEAN_TO_DEVIATION * np.einsum("jgb,jb->jg", residual, weight) / histories.bins[:, None]
    limit = HUBER * np.maximum(spread, histories.noise[:, None])
    w = np.maximum(residual, 1e-12, out=residual)
    np.divide(limit[:, :, None], w, out=w)
    np.minimum(w, 1.0, out=w)
    w *= weight[:, None, :]
    c0, c1, normal = _least_squares(x, y, w, least)
    residual = _residual(x, y, c0, c1)
    variance = np.einsum("jgb,jgb->jg", w * residual, residual) / histories.bins[:, None]
    variance = np.maximum(variance, histories.noise[:, None] ** 2)
    likelihood = -0.5 * TEMPER * histories.bins[:, None] * np.log(variance)
    chance = np.exp(likelihood - np.maximum.reduce(likelihood, axis=1, keepdims=True))
    drawn = _draws(c0, c1, variance / TEMPER, normal)
    return Candidates(
        scale=np.concatenate((scale, scale), axis=1),
        c0=np.maximum(drawn[0], least[:, :, None]),
        c1=np.maximum(drawn[1], 0.0),
        weight=chance / np.add.reduce(chance, axis=1, keepdims=True),
    )


def value_at(iteration: Array, scale: Array) -> Array:
    """x(k) of every candidate at ``iteration`` (J, 1, ...) with ``scale`` (J, G, ...)."""
    ratio = iteration / scale
    half = scale.shape[1] // 2
    return np.concatenate((1 / (1 + ratio[:, :half]), np.exp(-ratio[:, half:])), axis=1)


def iteration_at(x: Array, scale: Array) -> Array:
    """The k at which each candidate has the value x (J, G, ...): infinite where it never falls so low, 0 for inf."""
    half = scale.shape[1] // 2
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        iteration = np.concatenate(
            (scale[:, :half] * (1 / x[:, :half] - 1), -scale[:, half:] * np.log(x[:, half:])), axis=1
        )
    iteration = np.where(x > 0, iteration, np.inf)
    # A ratio of +inf is a flat curve, which was at its target from the start.
    return np.where(np.isposinf(x), 0.0, iteration)


def _scales(histories: Histories) -> Array:
    """The grid of s (J, SCALES): from a fraction of what was seen to beyond the run's end."""
    nearest = np.maximum(histories.last, 1.0) / 50
    farthest = np.where(np.isnan(histories.end), FARTHEST * np.maximum(histories.last, 1.0), 2 * histories.end)
    farthest = np.maximum(farthest, histories.last)
    grid: Array = nearest[:, None] * (farthest / nearest)[:, None] ** np.linspace(0, 1, SCALES)
    return grid


def _residual(x: Array, y: Array, c0: Array, c1: Array) -> Array:
    residual = c1[:, :, None] * x
    residual += c0[:, :, None]
    residual -= y[:, None, :]
    return np.abs(residual, out=residual)


def _least_squares(x: Array, y: Array, w: Array, least: Array) -> tuple[Array, Array, tuple[Array, Array, Array]]:
    """c0, c1 (J, G) under the bounds, and the normal matrices' three entries."""
    wx = w * x
    s0, s1, s2 = np.add.reduce(w, axis=2), np.add.reduce(wx, axis=2), np.einsum("jgb,jgb->jg", wx, x)
    t0, t1 = np.einsum("jgb,jb->jg", w, y), np.einsum("jgb,jb->jg", wx, y)
    # A breath of ridge keeps candidates solvable whose x does not vary over the history.
    ridge = 1e-6 * s0
    a, c = s0 + ridge, s2 + ridge
    c1 = np.maximum((a * t1 - s1 * t0) / (a * c - s1**2), 0.0)
    c0 = (t0 - c1 * s1) / s0
    bounded = c0 < least
    if bounded.any():
        floor = np.where(bounded, least, 0.0)
        c1 = np.where(bounded, np.maximum((t1 - floor * s1) / c, 0.0), c1)
        c0 = np.where(bounded, least, c0)
    return c0, c1, (a, s1, c)


def _draws(c0: Array, c1: Array, variance: Array, normal: tuple[Array, Array, Array]) -> tuple[Array, Array]:
    """Draws of c0 and c1 (J, G, S) from their joint normal distribution, by its Cholesky factor."""
    a, b, c = normal
    scaled = variance / (a * c - b**2)
    first = np.sqrt(scaled * c)
    below = -scaled * b / first
    second = np.sqrt(np.maximum(scaled * a - below**2, 0.0))
    z = _normals(SAMPLES)
    return (
        c0[:, :, None] + first[:, :, None] * z[:, 0],
        c1[:, :, None] + below[:, :, None] * z[:, 0] + second[:, :, None] * z[:, 1],
    )


@cache
def _normals(n: int) -> Array:
    """n points of the plane, spread like a standard normal: a rank-1 lattice through the normal's quantiles."""
    i = np.arange(n) + 0.5
    u = np.stack((i / n, (i * 0.6180339887498949) % 1.0), axis=-1)
    return np.asarray(ndtri(np.clip(u, 1e-3, 1 - 1e-3)), dtype=float)
