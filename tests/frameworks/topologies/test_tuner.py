"""The tuner of the claim ``beamer``: real Optuna, trainers on loopback, an agent and a controller that see stages."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import optuna
import pytest

from evaluation.bench.support.waiting import wait_until
from simulator.workloads import curves
from tests.support.frameworks.running_agent import Yard
from tests.support.paths import ROOT
from topologies.errors import LabError
from topologies.experiments.experiment import Experiment, JobPlan
from topologies.experiments.study_plan import StudyPlan, TrialPlan, promoted
from topologies.frameworks import PYTHON_SETTING
from topologies.studies import process
from topologies.studies.process import TunerProcess
from topologies.studies.record import read_study, study_file
from topologies.trainer.results import done_file, read_result
from topologies.trainer.start import Meeting

RUNGS = (4, 8, 16)
TRIALS, ETA = 4, 2
HOSTS = ("h1", "h2")
BASE = f"127.{1 + os.getpid() % 250}.77.0"


def experiment(*names: str, compute: float = 0.1, limit: float = 100.0) -> Experiment:
    """Studies whose trials train on the same two hosts, the chief on h1."""
    choice = curves.names("claim")[:6]
    plans = tuple(
        StudyPlan(name=name, arrival=0.3 * number, trials=TRIALS, rungs=RUNGS, eta=ETA, configurations=choice, seed=5)
        for number, name in enumerate(names)
    )
    jobs: list[JobPlan] = []
    for plan in plans:
        for number in range(TRIALS):
            for rung in range(len(RUNGS)):
                jobs.append(
                    JobPlan(id=f"{plan.name}.t{number}.r{rung}", arrival=0.0, architecture="ps", hosts=HOSTS,
                            port=23000 + len(jobs), model="small", model_bytes=20_000,
                            compute_seconds=compute * (1 + 0.2 * number), iterations=plan.length(rung),
                            curve=choice[0], trial=TrialPlan(study=plan.name, number=number, rung=rung))
                )  # fmt: skip
    return Experiment(name="tuned", hosts=2, jobs=tuple(jobs), limit_seconds=limit, studies=plans)


class Here:
    """What the tuner's process is started on: this machine."""

    def popen(self, host: str | None, command: list[str], **options: Any) -> subprocess.Popen[bytes]:
        assert host is None
        return subprocess.Popen(command, **options)


class Run:
    """Trainers and tuner of an experiment, started; they end with the test."""

    def __init__(self, folder: Path, made: Experiment) -> None:
        self.folder, self.experiment = folder, made
        self.file = folder / "experiment.json"
        self.file.write_text(made.model_dump_json())
        self.meeting = Meeting(folder / "meeting")
        self.meeting.folder.mkdir()
        self.trainers = [self._trainer(host) for host in HOSTS]
        self.tuner = TunerProcess(folder, made)
        self.tuner.start(Here(), self.file, self.meeting.folder)

    def _trainer(self, host: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "topologies.trainer", "--experiment", str(self.file), "--host", host]
        command += ["--dir", str(self.folder), "--meet", str(self.meeting.folder), "--address-base", BASE]
        with (self.folder / f"{host}.log").open("ab") as log:
            return subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=log)

    def begin(self) -> float:
        def all_are_ready() -> bool:
            self.tuner.check()
            return not self.meeting.missing(frozenset(HOSTS) | self.tuner.names)

        wait_until(all_are_ready, 60.0)
        start = time.time() + 1.0
        self.meeting.begin(start)
        return start

    def wait(self, seconds: float = 90.0) -> Iterator[None]:
        """Until the studies are over; may do something else at each turn."""
        deadline = time.monotonic() + seconds
        while not process.all_ended(self.experiment, self.folder):
            self.tuner.check()
            assert time.monotonic() < deadline, self.tuner.log.read_text()
            yield
            time.sleep(0.05)

    def end(self) -> list[int]:
        self.tuner.stop()
        for trainer in self.trainers:
            trainer.send_signal(signal.SIGTERM)
        try:
            return [trainer.wait(30) for trainer in self.trainers]
        finally:
            for trainer in self.trainers:
                trainer.kill()
                trainer.wait()


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Any]:
    monkeypatch.setenv(PYTHON_SETTING, sys.executable)
    started: list[Run] = []

    def start(made: Experiment, folder: Path | None = None) -> Run:
        started.append(Run(folder or tmp_path, made))
        return started[-1]

    yield start
    for run in started:
        run.end()


def test_rungs_end_with_their_last_trial_and_the_best_go_on(runs: Any, tmp_path: Path) -> None:
    made = experiment("one", "two")
    run = runs(made)
    start = run.begin()
    for _ in run.wait():
        pass
    assert run.end() == [0, 0]
    found = process.read_studies(made, tmp_path, start)
    assert [study.study for study in found] == ["one", "two"]
    for plan, study in zip(made.studies, found, strict=True):
        record = read_study(study_file(tmp_path, plan.name))
        assert record.tuner == f"optuna {optuna.__version__}"
        shown = {t.number: curves.replay(curves.load(t.configuration), RUNGS[-1]) for t in record.trials}
        alive = list(range(TRIALS))
        for rung, end in enumerate(RUNGS):
            assert study.stages[rung].stage == f"b0.r{rung}"
            assert study.stages[rung].jobs == tuple(f"{plan.name}.t{number}.r{rung}" for number in alive)
            for number in alive:
                assert record.trials[number].metrics[rung] == shown[number][end - 1]
            alive = promoted({number: shown[number][end - 1] for number in alive}, max(1, TRIALS // ETA ** (rung + 1)))
        (winner,) = (trial for trial in record.trials if trial.state == "complete")
        assert [winner.number] == alive
        assert (record.best, record.best_metric) == (winner.number, shown[winner.number][-1])
        assert sorted(len(trial.metrics) for trial in record.trials) == [1, 1, 2, 3]
        assert {trial.state for trial in record.trials if trial is not winner} == {"pruned"}
        check_times(study, tmp_path, start + plan.arrival)
    assert found[1].stages[0].arrival == pytest.approx(0.0, abs=0.01)
    came = process.arrived_jobs(made, tmp_path)
    assert len(came) == made.trained == 14
    assert {path.stem for path in (tmp_path / "done").iterdir()} == set(came), "who was not called left nothing"


def check_times(study: process.StudyResult, folder: Path, begin: float) -> None:
    """By the trainers' own clocks: nobody goes on before the last trial of a rung has ended."""
    before = begin
    for stage in study.stages:
        results = [read_result(done_file(folder, job)) for job in stage.jobs]
        ends = [result.arrival_epoch + (result.jct or 0.0) for result in results]
        assert len({result.arrival_epoch for result in results}) == 1, "the trials of a rung arrive together"
        assert results[0].arrival_epoch >= before - 0.01
        assert stage.seconds == pytest.approx(max(ends) - results[0].arrival_epoch)
        assert stage.arrival == pytest.approx(results[0].arrival_epoch - begin)
        before = max(ends)
    assert study.best_seconds == pytest.approx(before - begin)


def test_the_controller_sees_rungs_as_stages_through_the_agent(runs: Any, yard: Yard, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    for name, real in (("jobs.d", yard.agent.jobs), ("progress", yard.agent.progress)):
        (folder / name).mkdir(parents=True)
        (folder / name / "h1").symlink_to(real)
    made = experiment("seen", compute=0.4)
    run = runs(made, folder)
    run.begin()
    stages: dict[str, set[str | None]] = {}
    reasons: dict[str, str] = {}
    for _ in run.wait():
        for job, state in yard.jobs("seen.").items():
            stages.setdefault(job, set()).add(state["spec"].get("stage"))
            plan = made.studies[0]
            assert state["spec"]["iterations"] == plan.length(int(job[-1]))
        reasons |= yard.controller.call("GET", "/v1/plan").json()["reasons"]
    assert set(stages) == set(process.arrived_jobs(made, folder))
    assert all(told == {f"seen.b0.r{job[-1]}"} for job, told in stages.items()), stages
    for job in stages:
        assert f"stage seen.b0.r{job[-1]}" in reasons[job]
        yard.wait_ended(job)
    assert "not believed" not in yard.agent.said


def test_a_study_that_the_limit_stops_counts_as_long_as_it_was_watched(runs: Any, tmp_path: Path) -> None:
    made = experiment("short", compute=0.4, limit=4.0)
    run = runs(made)
    start = run.begin()
    wait_until(lambda: all(trainer.poll() is not None for trainer in run.trainers), 60.0)
    run.end()
    (found,) = process.read_studies(made, tmp_path, start)
    assert found.best_seconds is None
    assert found.watched_seconds == pytest.approx(4.0)
    last = found.stages[-1]
    assert last.seconds is None
    assert last.watched_seconds == pytest.approx(4.0 - last.arrival)


def test_a_tuner_that_fails_is_told_with_its_last_words(runs: Any, tmp_path: Path) -> None:
    tuner = TunerProcess(tmp_path, experiment("none"))
    tuner.start(Here(), tmp_path / "nothing.json", tmp_path)
    with pytest.raises(LabError, match=r"the tuner ended with status 1: .*nothing.json"):
        for _ in range(600):
            tuner.check()
            time.sleep(0.1)


def test_a_damaged_result_of_one_study_ends_the_tuner_while_others_run(runs: Any, tmp_path: Path) -> None:
    run = runs(experiment("one", "two", compute=5.0))
    run.begin()
    done_file(tmp_path, "two.t1.r0").parent.mkdir(exist_ok=True)
    done_file(tmp_path, "two.t1.r0").write_text("{")
    with pytest.raises(LabError, match=r"the tuner ended with status 1: .*two.t1.r0.json: not a job's result"):
        for _ in run.wait():
            pass


def test_optunas_own_halving_decides_one_by_one() -> None:
    """Why the rungs are driven here: whoever comes first goes on, however bad, and nothing waits for the last."""
    pruner = optuna.pruners.SuccessiveHalvingPruner(min_resource=1, reduction_factor=3)
    study = optuna.create_study(direction="maximize", pruner=pruner)
    pruned = []
    for value in (0.1, 0.2, 0.3):
        trial = study.ask()
        trial.report(value, 1)
        pruned.append(trial.should_prune())
    assert pruned == [False, False, False], "each is the best of those that came before it"
