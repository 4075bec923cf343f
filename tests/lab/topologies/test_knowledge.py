"""Arms that know more of the same jobs: what ended before, what is declared, and a policy that is not installed."""

from __future__ import annotations

from pathlib import Path

import pytest

from simulator.reports.targets import target_iteration
from tests.support.controller.registry.family_runs import rising
from tests.support.lab import curious
from topologies.experiments.declaration import Declaration
from topologies.experiments.earlier import EarlierJob
from topologies.experiments.experiment import Experiment, JobPlan
from topologies.lab.lab import run_arms
from topologies.lab.results import LabResult, PolicyChoice

ITERATIONS = 30
CURVE = tuple(rising(ITERATIONS, end=0.9, scale=4.0))


def experiment() -> Experiment:
    common = {"model": "short", "model_bytes": 100_000, "compute_seconds": 0.05, "curve": CURVE}
    return Experiment(
        name="knowledge",
        hosts=3,
        link_bps=50e6,
        period_seconds=0.5,
        limit_seconds=90.0,
        jobs=(
            JobPlan(id="kin", arrival=0.0, architecture="ps", hosts=("h1", "h2"), port=5000, iterations=ITERATIONS,
                    family="resnet", **common),
            JobPlan(id="stranger", arrival=0.0, architecture="ring", hosts=("h2", "h3"), port=5001,
                    iterations=ITERATIONS, **common),
        ),
        earlier=tuple(
            EarlierJob(id=f"earlier-{i}", family="resnet", iterations=ITERATIONS, curve=CURVE) for i in range(2)
        ),
    )  # fmt: skip


@pytest.fixture
def result(alone: None, tmp_path: Path) -> LabResult:
    """Two arms of the same policy; in ``more`` the jobs declare what no curve ever shows."""
    plugins = str(curious.install(tmp_path / "plugins"))
    arms = [
        PolicyChoice("curious", {"record": str(tmp_path / label)}, label=label, declares=declares, plugins=plugins)
        for label, declares in (
            ("less", {}),
            ("more", {"kin": Declaration(target=2.0), "stranger": Declaration(target=3.0, family="resnet")}),
        )
    ]
    return run_arms(experiment(), arms, results_dir=tmp_path / "results")


def test_arms_know_what_they_should_and_are_measured_alike(result: LabResult, tmp_path: Path) -> None:
    def known(label: str, job: str) -> str:
        lines = (tmp_path / label).read_text().splitlines()
        return next(line.partition(": ")[2] for line in lines if line.startswith(f"{job}: "))

    assert known("less", "kin") == "resnet, 2 before, target None"
    assert known("less", "stranger") == "no family, target None"
    assert known("more", "kin") == "resnet, 2 before, target 2.0"
    assert known("more", "stranger") == "resnet, 2 before, target 3.0"
    reached = target_iteration(CURVE, 0.9)
    for arm in result.arms:
        for name, job in arm.jobs.items():
            assert not job.censored, (arm.policy, name)
            assert [metric for *_, metric in job.history] == list(CURVE)
            assert job.t90_seconds == job.history[reached - 1][0], "by the job's own curve, whatever it declares"
