"""The simulator and the testbed agree: the same two jobs on three hosts, under every policy, by each job's time."""

from __future__ import annotations

from pathlib import Path

import pytest

from controller.model import Host
from controller.policies.registry import available, make
from simulator.engine import Limits, simulate
from simulator.jobs import SimJob, Workload
from simulator.workloads import curves
from simulator.workloads.transfers import barrier_lane, tasks
from topologies.experiment import Experiment, JobPlan
from topologies.lab import run_arms
from topologies.lab_result import LabResult, load_result

ITERATIONS = 15
TOLERANCE = 0.10
PAYLOAD_SHARE = 1448 / 1514
"""Of what the link carries, TCP's bytes in a full Ethernet frame: 20 + 32 bytes of headers, and 14 of the frame."""


def experiment() -> Experiment:
    curve = next(curve.name for curve in curves.index() if curve.iterations >= ITERATIONS)
    common = {"model": "agreement", "curve": curve, "iterations": ITERATIONS}
    return Experiment(
        name="agreement",
        hosts=3,
        link_bps=25e6,
        period_seconds=0.5,
        limit_seconds=60.0,
        jobs=(
            JobPlan(id="ps", arrival=0.0, architecture="ps", hosts=("h1", "h2", "h3"), port=5000,
                    model_bytes=250_000, compute_seconds=0.05, **common),
            JobPlan(id="ring", arrival=0.5, architecture="ring", hosts=("h1", "h2", "h3"), port=5001,
                    model_bytes=500_000, compute_seconds=0.1, **common),
        ),
    )  # fmt: skip


def workload(asked: Experiment) -> Workload:
    rate = asked.link_bps * PAYLOAD_SHARE
    return Workload(
        name=asked.name,
        hosts={f"h{i}": Host(f"h{i}", rate, rate) for i in range(1, asked.hosts + 1)},
        jobs=tuple(
            SimJob(
                id=job.id,
                lanes=(barrier_lane(job.architecture, job.hosts, job.model_bytes, job.compute_seconds),),
                arrival=job.arrival,
                iterations=job.iterations,
                curve=curves.replay(curves.load(job.curve), job.iterations),
                tasks=tasks(job.architecture, job.hosts, job.port),
            )
            for job in asked.jobs
        ),
    )


@pytest.fixture(scope="module")
def results_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("agreement")


@pytest.fixture
def measured(alone: None, results_dir: Path) -> LabResult:
    stored = results_dir / "lab.json"
    if not stored.exists():
        run_arms(experiment(), list(available()), results_dir=results_dir)
    return load_result(stored)


@pytest.mark.timeout(900)  # the first waits for an arm of every policy
@pytest.mark.parametrize("policy", list(available()))
def test_a_job_takes_as_long_on_the_testbed_as_in_the_simulator(measured: LabResult, policy: str) -> None:
    asked = experiment()
    limits = Limits(classes=asked.queues - 1, period=asked.period_seconds)
    simulated = simulate(workload(asked), make(policy, {}), limits).jobs
    (arm,) = [arm for arm in measured.arms if arm.policy == policy]
    for job in asked.jobs:
        expected = simulated[job.id].end - simulated[job.id].arrival
        assert arm.jobs[job.id].jct_seconds == pytest.approx(expected, rel=TOLERANCE), (policy, job.id)
