"""The simulator against the testbed: a small scenario for every policy, by each job's time."""

from __future__ import annotations

import math
from itertools import groupby
from pathlib import Path
from statistics import fmean

from controller.policies.registry import available
from evaluation.bench.agreement.scenario import TOLERANCE, choice, experiment, scenario, simulated_seconds, spread
from evaluation.bench.figures import Bench, Figure
from topologies.lab.lab import EXPECTED_ERRORS, run_arms


def run(folder: Path, _data: Path | None) -> Bench:
    """Measure. Raises RuntimeError where the lab could not run."""
    policies = sorted(available(), key=lambda policy: (scenario(policy).architecture, policy))
    jobs: dict[str, dict[str, dict[str, float | None]]] = {}
    spreads: dict[str, float] = {}
    apart: list[float] = []
    datapath = ""
    for _, some in groupby(policies, scenario):
        together = list(some)
        asked = experiment(scenario(together[0]))
        try:
            result = run_arms(asked, [choice(policy) for policy in together], results_dir=folder / asked.name)
        except EXPECTED_ERRORS as error:
            raise RuntimeError(str(error)) from error
        datapath = result.datapath
        for arm in result.arms:
            expected = simulated_seconds(arm.policy)
            spreads[arm.policy] = spread(arm.policy)
            jobs[arm.policy] = {
                name: {"simulated_seconds": expected[name], "measured_seconds": job.jct_seconds}
                for name, job in arm.jobs.items()
            }
            apart += [
                float("inf") if job.jct_seconds is None else abs(job.jct_seconds / expected[name] - 1)
                for name, job in arm.jobs.items()
            ]
    return Bench(
        figures=(
            Figure(
                f"A job's time on the testbed is the simulator's, under each of {len(policies)} policies",
                metric="worst_difference",
                unit="%",
                value=100 * max(apart),
                baseline=100 * max(spreads.values()),
                baseline_name="what the simulator's own differ by if all begins a little otherwise",
                ci95=(math.nan, math.nan),  # one run
                limit=100 * TOLERANCE,
            ),
        ),
        datapath=datapath,
        details={"jobs": jobs, "spread": spreads, "mean_difference": fmean(apart)},
    )
