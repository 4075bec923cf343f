"""An experiment whose job runs until it is stopped."""

from __future__ import annotations

from simulator.workloads import curves
from topologies.experiments.experiment import Experiment, JobPlan


def experiment() -> Experiment:
    """Return an experiment with one job, which runs longer than any test waits and has a cgroup of its own."""
    job = JobPlan(
        id="endless", arrival=0.0, architecture="ring", hosts=("h1", "h2"), port=5000, model="m", model_bytes=100_000,
        compute_seconds=0.2, iterations=1000, curve=curves.index()[0].name,
    )  # fmt: skip
    return Experiment(
        name="endless", hosts=2, link_bps=50e6, period_seconds=0.5, limit_seconds=120.0, processes="job", jobs=(job,)
    )
