"""Studies on the emulated network, driven by Optuna: rungs that end, stages that the controller knows."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from simulator.workloads import curves
from topologies.experiments.experiment import Experiment, JobPlan
from topologies.experiments.study_plan import StudyPlan, TrialPlan
from topologies.lab.lab import run_arms
from topologies.lab.results import LabResult, load_result

RUNGS = (2, 6)
TRIALS = 3
pytestmark = pytest.mark.timeout(420)


def experiment() -> Experiment:
    """Two studies of three trials each on four hosts; of three one goes on."""
    choice = curves.names("claim")[:6]
    plans = tuple(
        StudyPlan(name=f"study{n}", arrival=float(n), trials=TRIALS, rungs=RUNGS, eta=3, configurations=choice, seed=n)
        for n in range(2)
    )
    jobs: list[JobPlan] = []
    for plan in plans:
        for number in range(TRIALS):
            hosts = [f"h{1 + (number + k) % 4}" for k in range(3)]
            for rung in range(len(RUNGS)):
                jobs.append(
                    JobPlan(id=f"{plan.name}.t{number}.r{rung}", arrival=0.0, architecture="ps", hosts=tuple(hosts),
                            port=5000 + len(jobs), model="equal", model_bytes=100_000, compute_seconds=0.3,
                            iterations=plan.length(rung), curve=choice[0],
                            trial=TrialPlan(study=plan.name, number=number, rung=rung))
                )  # fmt: skip
    return Experiment(
        name="tuned", hosts=4, link_bps=10e6, period_seconds=1.0, limit_seconds=120.0, jobs=tuple(jobs), studies=plans
    )


@pytest.fixture(scope="module")
def results_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("results")


@pytest.fixture
def result(alone: None, results_dir: Path) -> LabResult:
    stored = results_dir / "lab.json"
    if not stored.exists():
        run_arms(experiment(), ["fair", "beamer"], "kernel", results_dir=results_dir)
    return load_result(stored)


def test_studies_end_and_the_same_trials_go_on_under_every_policy(result: LabResult) -> None:
    assert [arm.policy for arm in result.arms] == ["fair", "beamer"]
    for arm in result.arms:
        assert len(arm.jobs) == 2 * (TRIALS + 1)
        assert not any(job.censored for job in arm.jobs.values())
        for study in arm.studies:
            first, last = study.stages
            assert len(first.jobs) == TRIALS
            assert last.jobs == (f"{study.study}.t{study.best_trial}.r1",)
            assert first.seconds is not None
            assert last.seconds is not None
            assert last.arrival >= first.arrival + first.seconds
            assert study.best_seconds == pytest.approx(last.arrival + last.seconds)
            assert study.tuner.startswith("optuna ")
        assert max(link.egress_share for link in arm.links) > 0.1, "the traffic crosses the network"
    fair, beamer = result.arms
    assert [study.best_trial for study in fair.studies] == [study.best_trial for study in beamer.studies]


def test_no_agent_is_refused_a_stage(result: LabResult, results_dir: Path) -> None:
    for arm in result.arms:
        logs = [path.read_text() for path in (results_dir / "tuned-0" / arm.policy / "reporters").iterdir()]
        assert len(logs) == 4
        assert not any(re.search(r"without stage|Traceback|not believed", log) for log in logs), logs
