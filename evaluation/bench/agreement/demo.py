"""The simulator against the testbed on the demo's jobs: mean t90 and JCT under fair sharing and JPAS, several runs."""

from __future__ import annotations

import math
from pathlib import Path
from statistics import fmean

from evaluation.bench.figures import Bench, Figure
from evaluation.demo_jobs import PERIOD_SECONDS, choices, demo_wave
from evaluation.jpas.simulation import means
from topologies.box.datapath import with_most_processors
from topologies.lab import comparison
from topologies.lab.comparison import Measure
from topologies.lab.lab import EXPECTED_ERRORS, run_arms

RUNS = 5
TOLERANCE = 0.05
_MEASURES: tuple[Measure, ...] = ("t90_seconds", "jct_seconds")


def run(folder: Path, _data: Path | None) -> Bench:
    """Measures the demo ``RUNS`` times. Raises RuntimeError where the lab could not run."""
    jobs = demo_wave(period_seconds=PERIOD_SECONDS)
    datapath = with_most_processors()
    results = []
    for number in range(1, RUNS + 1):
        try:
            results.append(run_arms(jobs.experiment, choices(jobs), datapath, results_dir=folder / f"demo-{number}"))
        except EXPECTED_ERRORS as error:
            raise RuntimeError(str(error)) from error
    figures, details = [], {}
    for choice in choices(jobs):
        simulated = means(jobs.experiment, choice)
        expected = {"t90_seconds": simulated.t90, "jct_seconds": simulated.jct}
        for measure in _MEASURES:
            measured = [
                comparison.mean(arm, measure) for result in results for arm in result.arms if arm.policy == choice.name
            ]
            name = f"{comparison.short(measure)} under {choice.name}"
            details[name] = {"simulated_seconds": expected[measure], "measured_seconds": measured}
            figures.append(difference(name, expected[measure], measured))
    return Bench(figures=tuple(figures), datapath=results[0].datapath, details=details)


def difference(name: str, expected: float, measured: list[float]) -> Figure:
    """Returns how far the mean of the runs is from the simulator's; it may be as far as a run is from their mean."""
    mean = fmean(measured)
    spread = max(abs(seconds / mean - 1) for seconds in measured)
    return Figure(
        f"Mean {name} of the demo's jobs on the testbed, {RUNS} runs, is the simulator's",
        metric=f"difference of {name}",
        unit="%",
        value=100 * abs(mean / expected - 1),
        baseline=100 * spread,
        baseline_name="how far one run is from the mean of the runs",
        ci95=(math.nan, math.nan),
        limit=100 * max(TOLERANCE, spread),
    )
