"""Learns ``controller.curve_calibration`` from the recorded curves marked ``study``: what their runs correct in a fit.

Run from the top of the tree, by hand and seldom; prints the two constants (about a minute on one core):

    .venv/bin/python -m tests.calibrate_curves

Each curve is replayed over runs of a few lengths, and fitted anew at every iteration until thrice its crossing of 90 %.
All runs count alike. Both regressions are ridged, on standardised numbers.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression, PoissonRegressor

from controller import curves
from controller.curve_calibration import Calibration, signs
from controller.curve_histories import read
from controller.model import Metric, Progress
from simulator.reports.targets import target_iteration
from simulator.workloads import curves as recorded

Array = NDArray[np.float64]

LENGTHS = (50, 70, 100)
"""Iterations of the replayed runs, where a curve has as many rows."""
WATCHED = 3
"""A run counts until so many times its crossing of 90 %: what comes later is easily told, and often."""
FEWEST = 15
PENALTY = 3.0
"""Inverse strength of the logistic regression's ridge, a run's weights summing to 1."""
LEFT_PENALTY = 0.1
PERCENT = 100.0


@dataclass(frozen=True, slots=True, eq=False)
class Moments:
    """Moments of replayed runs: the four numbers after a 1 (M, 5), and what came (M,) of each.

    ``run``: whose moment; ``passed``: whether the target was; ``left``: the percent of the run left to it.
    """

    numbers: Array
    run: NDArray[np.int64]
    passed: NDArray[np.bool_]
    left: Array

    @property
    def weight(self) -> Array:
        """Weights that sum to 1 over the moments of every run."""
        weight: Array = 1.0 / np.bincount(self.run)[self.run]
        return weight


def replayed(names: Iterable[str]) -> Iterator[tuple[float, ...]]:
    """The accuracy by iteration of runs of a few lengths of these recorded curves."""
    for name in names:
        rows = recorded.load(name)
        for length in sorted({min(length, len(rows)) for length in LENGTHS}):
            yield recorded.replay(rows, length)


def moments(runs: Sequence[Sequence[float]], asked: curves.Asked) -> Moments:
    """Fits without calibration at the moments of ``runs``. A run that never reaches its target is left out."""
    plain = replace(asked, calibration=None)
    parts: list[tuple[Array, int, NDArray[np.bool_], Array]] = []
    for run in runs:
        target, first = target_iteration(run, asked.fraction), target_iteration(run, curves.T90.fraction)
        if target is None or first is None:
            continue
        progress = [Progress(float(i), float(i), metric) for i, metric in enumerate(run, start=1)]
        seen = np.arange(curves.MIN_POINTS, min(len(run), max(WATCHED * first, FEWEST)) + 1)
        histories = [curves.History(progress[:k], Metric(), float(len(run))) for k in seen.tolist()]
        fitted = [fit.targets[0] for fit in curves.fit_many(histories, [plain]) if fit is not None]
        chance, ahead = (np.array([getattr(found, name) for found in fitted]) for name in ("ahead", "left"))
        numbers = signs(read(histories)[1], chance, ahead)
        parts.append((numbers, len(seen), seen >= target, PERCENT * (target - seen) / len(run)))
    return Moments(
        numbers=np.concatenate([part[0] for part in parts]),
        run=np.repeat(np.arange(len(parts)), [part[1] for part in parts]),
        passed=np.concatenate([part[2] for part in parts]),
        left=np.concatenate([part[3] for part in parts]),
    )


def learn(known: Moments) -> Calibration:
    """Both regressions."""
    mean, spread = known.numbers[:, 1:].mean(axis=0), known.numbers[:, 1:].std(axis=0)
    standard = (known.numbers[:, 1:] - mean) / spread
    logistic = LogisticRegression(C=PENALTY, max_iter=3000).fit(standard, known.passed, sample_weight=known.weight)
    ahead = ~known.passed
    poisson = PoissonRegressor(alpha=LEFT_PENALTY, max_iter=3000)
    poisson.fit(standard[ahead], known.left[ahead], sample_weight=known.weight[ahead])

    def unstandardised(slopes: Array, intercept: float) -> tuple[float, float, float, float, float]:
        slopes = slopes / spread
        a, b, c, d = slopes.tolist()
        return float(intercept - slopes @ mean), a, b, c, d

    return Calibration(
        passed=unstandardised(logistic.coef_[0], logistic.intercept_[0]),
        left=unstandardised(poisson.coef_, poisson.intercept_ - np.log(PERCENT)),
    )


def main() -> int:
    """Print the constants."""
    runs = list(replayed(recorded.names("study")))
    for asked in (curves.T90, curves.T95):
        learned = learn(moments(runs, asked))
        sys.stdout.write(f"CALIBRATION_{asked.fraction:.0%} = Calibration(\n".replace("%", ""))
        for name in ("passed", "left"):
            numbers = ", ".join(f"{number:.3f}" for number in getattr(learned, name))
            sys.stdout.write(f"    {name}=({numbers}),\n")
        sys.stdout.write(")\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
