"""The little statistics that the reports need: paired intervals over seeds or jobs."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

Array = NDArray[np.float64]
RESAMPLES = 10_000
_AT_ONCE = 4_000_000
"""Resampling holds at most so many values in memory at a time."""


def mean_interval(values: Sequence[float]) -> tuple[float, float]:
    """95 % interval of a mean by Student's t; both ends NaN with fewer than 2 values."""
    data = np.asarray(values, dtype=float)
    if len(data) < 2:
        return (float("nan"), float("nan"))
    half = float(stdtrit(len(data) - 1, 0.975) * data.std(ddof=1) / np.sqrt(len(data)))
    return (float(data.mean()) - half, float(data.mean()) + half)


def paired_bootstrap(pairs: Sequence[tuple[float, float]], statistic: Callable[[Array], Array]) -> tuple[float, float]:
    """95 % percentile interval of a statistic of pairs, by resampling the pairs (fixed seed: repeatable).

    ``statistic`` takes (resamples, pairs, 2) and returns one value a resample. B. Efron, 1979,
    doi:10.1214/aos/1176344552.
    """
    data = np.asarray(pairs, dtype=float)
    if len(data) < 2:
        return (float("nan"), float("nan"))
    random = np.random.default_rng(0)
    rows = max(1, _AT_ONCE // len(data))
    with np.errstate(divide="ignore", invalid="ignore"):  # a resample of zeros alone has no ratio
        parts = [
            statistic(data[random.integers(0, len(data), size=(min(rows, RESAMPLES - done), len(data)))])
            for done in range(0, RESAMPLES, rows)
        ]
    values = np.concatenate(parts)
    low, high = np.quantile(values[np.isfinite(values)], (0.025, 0.975))
    return (float(low), float(high))


def reduction(baseline: Sequence[float], subject: Sequence[float]) -> float:
    """1 - mean(subject) / mean(baseline)."""
    return 1.0 - float(np.mean(subject)) / float(np.mean(baseline))


def reduction_interval(baseline: Sequence[float], subject: Sequence[float]) -> tuple[float, float]:
    """95 % interval of ``reduction`` over pairs such as seeds; both ends NaN with fewer than 2.

    Student's t on what each pair deviates from the common ratio, which is how a ratio of means varies to first order.
    W. G. Cochran, Sampling Techniques, 1977, chapter 6. Resampling would be too narrow for a handful of pairs.
    """
    before, after = np.asarray(baseline, dtype=float), np.asarray(subject, dtype=float)
    share = reduction(baseline, subject)
    low, high = mean_interval((((1.0 - share) * before - after) / before.mean()).tolist())
    return (share + low, share + high)


def reduction_interval_over_jobs(baseline: Sequence[float], subject: Sequence[float]) -> tuple[float, float]:
    """The spread of ``reduction`` over the jobs of one run: not a statement about other runs."""
    return paired_bootstrap(
        list(zip(baseline, subject, strict=True)), lambda d: 1.0 - d[..., 1].mean(axis=1) / d[..., 0].mean(axis=1)
    )
