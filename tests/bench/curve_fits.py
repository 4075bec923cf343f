"""Curve fits on runs that tuned nothing: at 10, 20 and 40 % of a run, how well t90 is predicted, and how surely.

The claim half of the recorded curves, and with ``--data FOLDER`` every ``FOLDER/curves/*/validation-*.csv`` (columns
``iteration`` and ``metric``, an accuracy) of a family that tuned nothing. A history is told its run's length, or not.
"""

from __future__ import annotations

import csv
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from controller import curves as fits
from controller.model import Metric, Progress
from simulator.reports.statistics import mean_interval
from simulator.reports.targets import target_iteration
from simulator.workloads import curves
from tests.bench.figures import Bench, Figure

Array = NDArray[np.float64]

SEEN = (0.1, 0.2, 0.4)
TUNED_ON = frozenset({"cifar10"})
"""Families of ``--data`` on which the prior was set, beside the study half: never measured here."""
RECORDED = "recorded"
RESAMPLES = 2000
COVERAGE, COVERAGE_MISS = 0.8, 0.1
HISTORIES, REPORTS, ROUNDS = 1000, 200, 5


@dataclass(frozen=True, slots=True)
class Run:
    """A whole training run: the iterations that it reported and the accuracy then; ``t90`` is one of them."""

    family: str
    name: str
    iteration: tuple[float, ...]
    accuracy: tuple[float, ...]
    t90: float


def run(_folder: Path, data: Path | None) -> Bench:
    """Measure. Raises RuntimeError where a curve cannot be read."""
    runs = [made for made in (*_recorded(), *_given(data)) if made is not None]
    figures: list[Figure] = []
    rows = []
    for family in sorted({made.family for made in runs}):
        ours = [made for made in runs if made.family == family]
        for known in (True, False):
            for seen in SEEN:
                row, found = _measured(ours, seen, known)
                rows.append(row)
                figures += found
    return Bench(figures=(*figures, _speed()), details={"runs": [made.name for made in runs], "predictions": rows})


def _recorded() -> list[Run | None]:
    names = curves.names("claim")
    return [_run(RECORDED, name, range(1, len(curves.load(name)) + 1), curves.load(name)) for name in names]


def _given(data: Path | None) -> list[Run | None]:
    if data is None:
        return []
    found: list[Run | None] = []
    for path in sorted((data / "curves").glob("*/validation-*.csv")):
        if path.parent.name in TUNED_ON:
            continue
        try:
            with path.open(newline="") as file:
                rows = [(float(row["iteration"]), float(row["metric"])) for row in csv.DictReader(file)]
        except (OSError, KeyError, ValueError) as error:
            raise RuntimeError(f"{path}: not a curve: {error}") from None
        found.append(_run(path.parent.name, path.stem, [k for k, _ in rows], [value for _, value in rows]))
    return found


def _run(
    family: str, name: str, iteration: range | list[float], accuracy: tuple[float, ...] | list[float]
) -> Run | None:
    """None for a run that never gets to 90 %."""
    crossing = target_iteration(accuracy, fits.T90.fraction)
    if crossing is None:
        return None
    return Run(family, name, tuple(map(float, iteration)), tuple(accuracy), float(iteration[crossing - 1]))


def _measured(runs: list[Run], seen: float, known: bool) -> tuple[dict[str, Any], tuple[Figure, Figure]]:
    histories = []
    for made in runs:
        count = max(fits.MIN_POINTS, round(seen * len(made.iteration)))
        points = zip(made.iteration[:count], made.accuracy[:count], strict=True)
        progress = [Progress(k, 0.0, value) for k, value in points]
        histories.append(fits.History(progress, Metric(), made.iteration[-1] if known else None))
    found = [fitted.targets[0].iteration for fitted in fits.fit_many(histories) if fitted is not None]
    truth = np.array([made.t90 for made in runs])
    length = np.array([made.iteration[-1] for made in runs])
    median = np.array([estimate.median for estimate in found])
    low, high = (np.array([getattr(estimate, name) for estimate in found]) for name in ("low", "high"))
    inside = (low <= truth) & (truth <= high)
    width = (high - low) / length
    constant = _constant_width(truth, median, float(inside.mean())) * median / length
    error = np.abs(median - truth) / truth
    ahead = truth > np.array([history.progress[-1].iteration for history in histories])
    coverage = float(inside.mean())
    where = f"{runs[0].family}: at {seen:.0%} of {len(runs)} runs of {'known' if known else 'unknown'} length"
    row = {
        "family": runs[0].family,
        "length_known": known,
        "seen": seen,
        "runs": len(runs),
        "median_error": float(np.median(error)),
        "mean_error": float(error.mean()),
        "coverage": coverage,
        "mean_width": float(width.mean()),
        "mean_width_of_constant_multiple": float(constant.mean()),
        "runs_with_t90_ahead": int(ahead.sum()),
        "median_error_of_these": float(np.median(error[ahead])) if ahead.any() else None,
        "coverage_of_these": float(inside[ahead].mean()) if ahead.any() else None,
    }
    return row, (
        Figure(
            f"{where}, how far the 80 % interval of t90 is from covering 80 %",
            metric="t90_coverage",
            unit="share",
            value=abs(coverage - COVERAGE),
            baseline=coverage,
            baseline_name="what it covers",
            ci95=(float("nan"), float("nan")),
            limit=COVERAGE_MISS + 1e-9,
        ),
        Figure(
            f"{where}, the interval's width, in runs' lengths",
            metric="t90_interval_width",
            unit="runs",
            value=float(width.mean()),
            baseline=float(constant.mean()),
            baseline_name="a constant multiple of the prediction that covers as much",
            ci95=_bootstrap(width, truth, median, length, inside),
            limit=float(constant.mean()),
        ),
    )


def _constant_width(truth: Array, median: Array, coverage: float) -> float:
    """r - 1 / r of the least r such that the truth is within [median / r, median r] in that share of all runs."""
    away = np.abs(np.log(truth / np.maximum(median, 1.0)))
    ratio = float(np.exp(np.quantile(away, coverage, method="higher")))
    return ratio - 1 / ratio


def _bootstrap(
    width: Array, truth: Array, median: Array, length: Array, inside: NDArray[np.bool_]
) -> tuple[float, float]:
    """Of the reduction, over the runs; the constant multiple is found anew for each sample."""
    rng = np.random.default_rng(1)
    reductions = []
    for _ in range(RESAMPLES):
        rows = rng.integers(0, len(width), len(width))
        constant = _constant_width(truth[rows], median[rows], float(inside[rows].mean())) * median[rows] / length[rows]
        reductions.append(1 - width[rows].mean() / constant.mean() if constant.mean() > 0 else np.nan)
    low, high = np.nanquantile(reductions, (0.025, 0.975)).tolist()
    return low, high


def _speed() -> Figure:
    rng = np.random.default_rng(1)
    histories = []
    for scale in rng.uniform(5, REPORTS, HISTORIES):
        k = np.arange(1, REPORTS + 1)
        values = 0.9 - 0.8 / (1 + k / scale) + rng.normal(0, 0.01, REPORTS)
        progress = tuple(Progress(float(i), float(i), float(value)) for i, value in zip(k, values, strict=True))
        histories.append(fits.History(progress, Metric(), 5.0 * REPORTS))
    together, apart = [], []
    for _ in range(ROUNDS):
        begin = time.perf_counter()
        fits.fit_many(histories)
        middle = time.perf_counter()
        for history in histories[::10]:
            fits.fit(*history)
        together.append((middle - begin) * 1e3)
        apart.append((time.perf_counter() - middle) * 1e4)
    return Figure(
        f"Fit {HISTORIES} histories of {REPORTS} reports at once",
        metric="fit_many",
        unit="ms",
        value=float(np.median(together)),
        baseline=float(np.median(apart)),
        baseline_name="the same, one by one",
        ci95=mean_interval([1 - one / other for one, other in zip(together, apart, strict=True)]),
    )
