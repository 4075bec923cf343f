"""Curve fits on runs that tuned nothing: at 10, 20 and 40 % of a run, how well t90 is predicted, and how surely.

The claim half of the recorded curves, and with ``--data FOLDER`` every ``FOLDER/curves/*/validation-*.csv`` (columns
``iteration`` and ``metric``, an accuracy) of a family that tuned nothing. A history is told its run's length, or not.
"""

from __future__ import annotations

import csv
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from controller.curves import fit as fits
from controller.model import Metric, Progress
from evaluation.bench.figures import Bench, Figure
from simulator.reports.statistics import mean_interval
from simulator.reports.targets import target_iteration
from simulator.workloads import curves

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
    """Measure. Raises RuntimeError where a curve cannot be read.

    What has to hold is held against all runs and moments together: in one family at one moment chance alone moves what
    an interval covers by more than the tenth that it may be off. What each covers is in the details.
    """
    runs = [made for made in (*_recorded(), *_given(data)) if made is not None]
    families = sorted({made.family for made in runs})
    figures: list[Figure] = []
    rows = []
    for known in (True, False):
        whole = _Predictions.of(runs, SEEN, known)
        figures += _figures(whole)
        for family in families:
            ours = [made for made in runs if made.family == family]
            rows += [_row(family, (seen,), _Predictions.of(ours, (seen,), known)) for seen in SEEN]
        rows.append(_row("all", SEEN, whole))
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


@dataclass(frozen=True, slots=True, eq=False)
class _Predictions:
    """t90 of R runs as predicted at M moments, (R, M) each, in shares of the run's length but for ``told``.

    ``truth``, and the 80 % interval with its median; ``told``: whether the length was known.
    """

    truth: Array
    low: Array
    median: Array
    high: Array
    seen: Array
    told: bool

    @classmethod
    def of(cls, runs: Sequence[Run], moments: Sequence[float], told: bool) -> _Predictions:
        found = np.array([[_predicted(made, seen, told) for seen in moments] for made in runs])
        low, median, high, seen = np.moveaxis(found, 2, 0)
        truth = np.array([made.t90 / made.iteration[-1] for made in runs])[:, None]
        return cls(np.broadcast_to(truth, low.shape), low, median, high, seen, told)

    def some(self, runs: NDArray[np.int64]) -> _Predictions:
        """Of some of the runs."""
        return _Predictions(
            self.truth[runs], self.low[runs], self.median[runs], self.high[runs], self.seen[runs], self.told
        )

    @property
    def inside(self) -> NDArray[np.bool_]:
        """Which intervals cover the truth."""
        return (self.low <= self.truth) & (self.truth <= self.high)

    @property
    def width(self) -> float:
        """The intervals' mean width."""
        return float((self.high - self.low).mean())

    def constant_width(self) -> float:
        """The mean of (r - 1 / r) median for the least r such that [median / r, median r] covers as often."""
        away = np.abs(np.log(self.truth / np.maximum(self.median, 1e-9)))
        ratio = float(np.exp(np.quantile(away, self.inside.mean(), method="higher")))
        return (ratio - 1 / ratio) * float(self.median.mean())


def _predicted(made: Run, seen: float, told: bool) -> tuple[float, float, float, float]:
    """Low, median and high of t90, and how much was seen, in shares of the run's length."""
    count = max(fits.MIN_POINTS, round(seen * len(made.iteration)))
    points = zip(made.iteration[:count], made.accuracy[:count], strict=True)
    end = made.iteration[-1]
    fitted = fits.fit([Progress(k, 0.0, value) for k, value in points], Metric(), end if told else None)
    if fitted is None:
        raise RuntimeError(f"{made.name}: too few reports to be fitted")
    at = fitted.targets[0].iteration
    return at.low / end, at.median / end, at.high / end, made.iteration[count - 1] / end


def _row(family: str, seen: Sequence[float], found: _Predictions) -> dict[str, Any]:
    error = np.abs(found.median / found.truth - 1)
    ahead = found.truth > found.seen
    return {
        "family": family,
        "length_known": found.told,
        "seen": list(seen),
        "runs": len(found.truth),
        "predictions": found.truth.size,
        "median_error": float(np.median(error)),
        "mean_error": float(error.mean()),
        "coverage": float(found.inside.mean()),
        "mean_width": found.width,
        "mean_width_of_constant_multiple": found.constant_width(),
        "with_t90_ahead": int(ahead.sum()),
        "median_error_of_these": float(np.median(error[ahead])) if ahead.any() else None,
        "coverage_of_these": float(found.inside[ahead].mean()) if ahead.any() else None,
    }


def _figures(found: _Predictions) -> tuple[Figure, Figure]:
    coverage, constant = float(found.inside.mean()), found.constant_width()
    moments = ", ".join(f"{seen:.0%}" for seen in SEEN)
    where = f"At {moments} of {len(found.truth)} runs of {'known' if found.told else 'unknown'} length"
    return (
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
            value=found.width,
            baseline=constant,
            baseline_name="a constant multiple of the prediction that covers as much",
            ci95=_bootstrap(found),
            limit=constant,
        ),
    )


def _bootstrap(found: _Predictions) -> tuple[float, float]:
    """Of the width's reduction, over the runs; the constant multiple is found anew for each sample."""
    rng = np.random.default_rng(1)
    reductions = []
    for _ in range(RESAMPLES):
        some = found.some(rng.integers(0, len(found.truth), len(found.truth)))
        constant = some.constant_width()
        reductions.append(1 - some.width / constant if constant > 0 else np.nan)
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
            fits.fit_many([history])
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
