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
from simulator.reports.targets import target_iteration
from simulator.workloads import curves
from tests.bench.figures import Bench, Figure

Array = NDArray[np.float64]

SEEN = (0.1, 0.2, 0.4)
TUNED_ON = frozenset({"cifar10"})
"""Families of ``--data`` on which the prior was set, beside the study half: never measured here."""
RESAMPLES = 2000
HISTORIES, REPORTS, ROUNDS = 1000, 200, 5


@dataclass(frozen=True, slots=True)
class Run:
    """A whole training run: the iterations that it reported and the accuracy then; ``t90`` is one of them."""

    name: str
    iteration: tuple[float, ...]
    accuracy: tuple[float, ...]
    t90: float


def run(_folder: Path, data: Path | None) -> Bench:
    """Measure. Raises RuntimeError where a curve cannot be read."""
    runs = [made for made in (*_recorded(), *_given(data)) if made is not None]
    figures, rows = [], []
    for known in (True, False):
        for seen in SEEN:
            row, figure = _measured(runs, seen, known)
            rows.append(row)
            figures.append(figure)
    return Bench(figures=(*figures, _speed()), details={"runs": [made.name for made in runs], "predictions": rows})


def _recorded() -> list[Run | None]:
    return [_run(name, range(1, len(curves.load(name)) + 1), curves.load(name)) for name in curves.names("claim")]


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
        found.append(_run(f"{path.parent.name}/{path.stem}", [k for k, _ in rows], [value for _, value in rows]))
    return found


def _run(name: str, iteration: range | list[float], accuracy: tuple[float, ...] | list[float]) -> Run | None:
    """None for a run that never gets to 90 %."""
    crossing = target_iteration(accuracy, fits.T90.fraction)
    if crossing is None:
        return None
    return Run(name, tuple(map(float, iteration)), tuple(accuracy), float(iteration[crossing - 1]))


def _measured(runs: list[Run], seen: float, known: bool) -> tuple[dict[str, Any], Figure]:
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
    row = {
        "length_known": known,
        "seen": seen,
        "runs": len(runs),
        "median_error": float(np.median(error)),
        "mean_error": float(error.mean()),
        "coverage": float(inside.mean()),
        "mean_width": float(width.mean()),
        "mean_width_of_constant_multiple": float(constant.mean()),
    }
    figure = Figure(
        f"The 80 % interval of t90 at {seen:.0%} of a run of {'known' if known else 'unknown'} length, in lengths "
        f"(covers {inside.mean():.0%})",
        metric="t90_interval_width",
        unit="runs",
        value=float(width.mean()),
        baseline=float(constant.mean()),
        baseline_name="a constant multiple of the prediction that covers as much",
        ci95=_bootstrap(width, constant),
    )
    return row, figure


def _constant_width(truth: Array, median: Array, coverage: float) -> float:
    """r - 1 / r of the least r such that the truth is within [median / r, median r] in that share of all runs."""
    away = np.abs(np.log(truth / np.maximum(median, 1.0)))
    ratio = float(np.exp(np.quantile(away, coverage, method="higher")))
    return ratio - 1 / ratio


def _bootstrap(value: Array, baseline: Array) -> tuple[float, float]:
    rng = np.random.default_rng(1)
    rows = rng.integers(0, len(value), (RESAMPLES, len(value)))
    reduction = 1 - value[rows].mean(axis=1) / baseline[rows].mean(axis=1)
    low, high = np.quantile(reduction, (0.025, 0.975)).tolist()
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
    reductions = np.quantile([1 - one / other for one, other in zip(together, apart, strict=True)], (0.025, 0.975))
    return Figure(
        f"Fit {HISTORIES} histories of {REPORTS} reports at once",
        metric="fit_many",
        unit="ms",
        value=float(np.median(together)),
        baseline=float(np.median(apart)),
        baseline_name="the same, one by one",
        ci95=(float(reductions[0]), float(reductions[1])),
    )
