"""The demo in short: two jobs under two policies, real training traffic, everything collected."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from simulator.recorded.source import Recorded, reading
from simulator.workloads import curves
from topologies.experiments.experiment import Experiment, JobPlan
from topologies.lab.lab import run_arms
from topologies.lab.results import LabEvent, LabResult, load_result

ITERATIONS = 30


def experiment() -> Experiment:
    curve = next(curve.name for curve in curves.index() if curve.iterations >= ITERATIONS)
    common = {"model": "short", "compute_seconds": 0.05, "iterations": ITERATIONS, "curve": curve}
    return Experiment(
        name="short",
        hosts=4,
        link_bps=50e6,
        period_seconds=0.5,
        limit_seconds=90.0,
        jobs=(
            JobPlan(id="ps", arrival=0.0, architecture="ps", hosts=("h1", "h2", "h3"), port=5000,
                    model_bytes=200_000, **common),
            JobPlan(id="ring", arrival=1.0, architecture="ring", hosts=("h1", "h3", "h4"), port=5001,
                    model_bytes=200_000, **common),
        ),
    )  # fmt: skip


@pytest.fixture(scope="module")
def events() -> list[LabEvent]:
    return []


@pytest.fixture(scope="module")
def results_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("results")


@pytest.fixture
def result(alone: None, results_dir: Path, events: list[LabEvent]) -> LabResult:
    stored = results_dir / "lab.json"
    if not stored.exists():
        run_arms(
            experiment(), ["fair", "jpas"], progress=events.append, results_dir=results_dir, prove_queues=True,
            alone_iterations=5,
        )  # fmt: skip
    return load_result(stored)


def test_every_job_is_trained_under_every_policy(result: LabResult) -> None:
    assert [arm.policy for arm in result.arms] == ["fair", "jpas"]
    for arm in result.arms:
        for name, job in arm.jobs.items():
            assert not job.censored, (arm.policy, name)
            assert len(job.history) == ITERATIONS
            assert job.t90_seconds is not None
            assert job.t95_seconds is not None
            assert job.jct_seconds is not None
            assert 0 < job.t90_seconds <= job.t95_seconds <= job.jct_seconds


def test_the_control_loop_has_worked(result: LabResult) -> None:
    fair, jpas = result.arms
    for arm in (fair, jpas):
        # Of two ends one may be in the plan of the other, or on its way when all is over.
        assert arm.control.report_to_rule_count >= 1
        assert arm.control.report_to_rule_p99 is not None
        assert arm.control.plans > arm.control.report_to_rule_count
        assert arm.control.gate_renewals > 0
        assert 0 < arm.cpu_idle_share < 1
    # What a job sends before its rules are there is between hosts with jobs, which have the last class.
    assert fair.bytes_by_class[1:-2] == (0,) * 5, "fair sharing has one class"
    assert fair.bytes_by_class[-2] < 0.1 * fair.bytes_by_class[0]
    assert jpas.bytes_by_class[0] > 1e6
    assert jpas.bytes_by_class[1] > 1e6


def test_all_the_jobs_bytes_are_seen(result: LabResult) -> None:
    moved = sum(
        2 * (len(job.hosts) - 1) * job.model_bytes * job.iterations  # the same for both architectures
        for job in experiment().jobs
    )
    for arm in result.arms:
        assert moved < sum(arm.bytes_by_class) < 1.25 * moved, arm.policy
        # What a job sends before its rules are there is all other traffic: milliseconds, more on a busy machine.
        assert sum(arm.bytes_by_class[:-1]) > 0.85 * moved, arm.policy


def test_the_queues_are_proven_and_jobs_measured_alone(result: LabResult) -> None:
    assert result.queue_proof is not None
    assert result.queue_proof.ratio >= 20
    (alone,) = result.alone_seconds.values()
    for job in experiment().jobs:
        assert 0.08 < alone[job.id] < 0.6


def test_what_happened_is_recorded(result: LabResult, results_dir: Path) -> None:
    for arm in result.arms:
        (file,) = results_dir.glob(f"*/{arm.policy}/events.jsonl")
        events = [json.loads(line) for line in file.read_text().splitlines()]
        ids = [event["id"] for event in events]
        assert ids == list(range(ids[0], ids[0] + len(ids)))
        switches = [event["data"] for event in events if event["event"] == "switch"]
        assert any(data["ready"] for data in switches)
        jobs = [event for event in events if event["event"] == "job"]
        assert {event["data"]["id"] for event in jobs} == {"ps", "ring"}
        assert 0 < min(event["time"] for event in jobs) < max(event["time"] for event in jobs) < arm.seconds + 10
        assert max(event["data"]["progress"]["iterations_done"] for event in jobs) == ITERATIONS
        plans = [event["data"] for event in events if event["event"] == "plan"]
        assert {plan["policy"] for plan in plans} == {arm.policy}
        assert any(len(plan["classes"]) == 2 for plan in plans)
        facts = json.loads(file.with_name("facts.json").read_text())
        assert facts["title"] == arm.policy
        assert facts["seconds"] == pytest.approx(arm.seconds, abs=20)
        assert set(facts["jobs"]) == {"ps", "ring"}
        assert len(facts["network"]["hosts"]) == len(facts["status"]["hosts"]) > 0
        assert set(facts["history"]["jobs"]) <= {"ps", "ring"}
        told = [json.loads(line) for line in file.with_name("explanations.jsonl").read_text().splitlines()]
        assert {line["job"] for line in told} <= {"ps", "ring"}
        assert all(line["explanation"]["policy"] == arm.policy for line in told)


def test_a_recording_says_what_the_jobs_of_the_arm_did(result: LabResult, results_dir: Path) -> None:
    for arm in result.arms:
        (file,) = results_dir.glob(f"*/{arm.policy}/events.jsonl")
        recording, recorded = reading(Recorded(str(file), file.read_text(), 1.0))
        assert (recording.policy, recording.period, recorded.left_out) == (arm.policy, 0.5, {})
        assert recorded.unknown_rates == ()
        for job in experiment().jobs:
            found = recorded.estimated[job.id]
            assert (found.iterations, found.is_whole) == (ITERATIONS, True)
            assert found.compute_seconds <= job.compute_seconds
            measured = arm.jobs[job.id].jct_seconds
            assert measured is not None
            # An event comes up to a second late, and these jobs take a few.
            assert found.seconds == pytest.approx(measured, abs=2.5)


def test_progress_is_told(result: LabResult, events: list[LabEvent]) -> None:
    assert [event.done for event in events if event.policy == "jpas"][-1] == len(result.arms[0].jobs)
    assert {event.phase for event in events} == {"network", "proof", "alone", "arm"}
