"""The simulator against the testbed: one small scenario under every policy, by each job's time."""

from __future__ import annotations

import math
from pathlib import Path
from statistics import fmean

from controller.policies.registry import available
from tests.agreement import TOLERANCE, choice, experiment, simulated_seconds
from tests.bench.figures import Bench, Figure
from topologies.lab import EXPECTED_ERRORS, run_arms


def run(folder: Path, _data: Path | None) -> Bench:
    """Measure. Raises RuntimeError where the lab could not run."""
    policies = sorted(available())
    try:
        choices = [choice(policy) for policy in policies]
        result = run_arms(experiment(), choices, results_dir=folder / "agreement")
    except EXPECTED_ERRORS as error:
        raise RuntimeError(str(error)) from error
    jobs: dict[str, dict[str, dict[str, float | None]]] = {}
    apart: list[float] = []
    for arm in result.arms:
        expected = simulated_seconds(arm.policy)
        jobs[arm.policy] = {
            name: {"simulated_seconds": expected[name], "measured_seconds": job.jct_seconds}
            for name, job in arm.jobs.items()
        }
        apart += [
            float("inf") if job.jct_seconds is None else abs(job.jct_seconds / expected[name] - 1)
            for name, job in arm.jobs.items()
        ]
    worst, mean = 100 * max(apart), 100 * fmean(apart)
    return Bench(
        figures=(
            Figure(
                f"A job's time on the testbed is the simulator's, under each of {len(policies)} policies",
                metric="worst_difference",
                unit="%",
                value=worst,
                baseline=mean,
                baseline_name="mean difference",
                ci95=(math.nan, math.nan),  # one run
                limit=100 * TOLERANCE,
            ),
        ),
        datapath=result.datapath,
        details={"jobs": jobs},
    )
