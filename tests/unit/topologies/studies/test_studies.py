"""Studies as a part of an experiment: their plans, the calls of their jobs, and what their stages add up to."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from topologies.errors import LabError, LabInputError
from topologies.experiments.experiment import Experiment
from topologies.experiments.study_plan import StudyPlan, promoted
from topologies.frameworks import PYTHON_SETTING
from topologies.lab import lab
from topologies.lab.results import ArmResult, LabRequest, PolicyChoice
from topologies.studies import process
from topologies.studies.record import StudyRecord, TrialRecord, read_study, study_file
from topologies.trainer.calls import Call, Calls, call, call_file, read_call
from topologies.trainer.results import JobResult, done_file, write_whole
from topologies.trainer.transfers.task import HaltedError

CALL = Call(arrival=100.0, curve="digits-mlp-4", begin=2, total=6, stage="b0.r1", rungs_left=0)


def plan(**values: Any) -> dict[str, Any]:
    created = {"name": "s", "arrival": 1.0, "trials": 3, "rungs": [2, 6], "eta": 3, "configurations": ["digits-mlp-4"]}
    return created | values


def document(**values: Any) -> dict[str, Any]:
    """An experiment with a study, as JSON."""
    jobs = [
        {
            "id": f"s.t{number}.r{rung}", "arrival": 0.0, "architecture": "ps", "hosts": ["h1", "h2"],
            "port": 5000 + 2 * number + rung, "model": "m", "model_bytes": 100, "compute_seconds": 0.1,
            "iterations": (2, 4)[rung], "curve": "digits-mlp-4",
            "trial": {"study": "s", "number": number, "rung": rung},
        }
        for number in range(3)
        for rung in range(2)
    ]  # fmt: skip
    return {"name": "x", "hosts": 2, "jobs": jobs, "studies": [plan()], "limit_seconds": 50.0} | values


def experiment(**values: Any) -> Experiment:
    return Experiment.model_validate(document(**values))


def result(job: str, arrival: float, jct: float | None, metric: float = 0.5) -> JobResult:
    return JobResult(
        id=job, architecture="ps", model="m", curve="digits-mlp-4", iterations=2, arrival_epoch=arrival,
        history=((1.0, 2, metric),), jct=jct, censored=jct is None, capped=False, failed=None, ended=jct or 7.0,
    )  # fmt: skip


def test_a_study_says_how_large_and_how_long_its_rungs_are() -> None:
    study = StudyPlan.model_validate(plan(trials=9, rungs=[6, 18, 54]))
    assert study.sizes == (9, 3, 1)
    assert [study.length(rung) for rung in range(3)] == [6, 12, 36]
    assert [study.begin(rung) for rung in range(3)] == [0, 6, 18]
    assert StudyPlan.model_validate(plan(trials=2, rungs=[1, 2, 3])).sizes == (2, 1, 1), "one always goes on"
    with pytest.raises(ValidationError, match="more iterations than the one before"):
        StudyPlan.model_validate(plan(rungs=[6, 6]))


def test_the_best_go_on_and_of_equals_the_first() -> None:
    assert promoted({0: 0.5, 1: 0.9, 2: 0.7, 3: 0.9}, 2) == [1, 3]
    assert promoted({4: 0.5, 2: 0.5, 3: 0.5}, 1) == [2]
    assert promoted({4: 0.5}, 3) == [4], "the others have failed"
    assert promoted({}, 3) == []


def test_studies_and_jobs_of_an_experiment_fit_together() -> None:
    created = experiment()
    assert created.trained == 3 + 1
    assert Experiment.model_validate_json(created.model_dump_json()) == created
    jobs = document()["jobs"]
    for wrong, words in (
        (jobs[:-1], "study s: trial 2 has no job for rung 1"),
        ([*jobs, {**jobs[0], "id": "again", "port": 6000}], "job again: no such trial, or it has a job already"),
        ([*jobs[:-1], {**jobs[-1], "iterations": 6}], "job s.t2.r1: 6 iterations; rung 1 of s has 4"),
        ([*jobs[:-1], {**jobs[-1], "trial": {"study": "t", "number": 0, "rung": 0}}], "job s.t2.r1: no study t"),
    ):
        with pytest.raises(ValidationError, match=words):
            experiment(jobs=wrong)
    with pytest.raises(ValidationError, match="two studies are called the same"):
        experiment(studies=[plan(), plan()])


def test_a_call_reaches_the_tasks_that_wait_for_it_and_no_others(tmp_path: Path) -> None:
    calls = Calls(tmp_path)
    for job in ("a", "b"):
        calls.expect(job)
    heard: dict[str, Call | None] = {}

    def wait(job: str) -> None:
        try:
            heard[job] = calls.wait(job)
        except HaltedError:
            heard[job] = None

    threads = [threading.Thread(target=wait, args=(job,)) for job in ("a", "b")]
    for thread in threads:
        thread.start()
    calls.listen()
    call(tmp_path, "a", CALL)
    call(tmp_path, "stranger", CALL)
    threads[0].join(10)
    assert heard == {"a": CALL}
    calls.call_off()
    threads[1].join(10)
    assert heard == {"a": CALL, "b": None}


def test_a_call_that_is_none_names_its_file(tmp_path: Path) -> None:
    call_file(tmp_path, "a").parent.mkdir()
    call_file(tmp_path, "a").write_text('{"arrival": "soon"}')
    with pytest.raises(ValueError, match=r"calls/a.json: not a job's call"):
        read_call(call_file(tmp_path, "a"))
    study_file(tmp_path, "s").parent.mkdir()
    study_file(tmp_path, "s").write_text("[]")
    with pytest.raises(ValueError, match=r"studies/s.json: not a study's record"):
        read_study(study_file(tmp_path, "s"))


RECORD = StudyRecord(
    name="s", tuner="optuna 1", best=1, best_metric=0.9,
    trials=tuple(TrialRecord(number=n, configuration="c", metrics=(0.5,), state="pruned") for n in range(3)),
)  # fmt: skip


def leave(folder: Path, *results: JobResult, record: StudyRecord | None = RECORD) -> None:
    for result in results:
        write_whole(done_file(folder, result.id), result.model_dump_json())
        call(folder, result.id, CALL)
    if record is not None:
        write_whole(study_file(folder, record.name), record.model_dump_json())


def test_a_stage_lasts_from_its_first_arrival_to_its_last_end(tmp_path: Path) -> None:
    created = experiment()
    first = [result(f"s.t{number}.r0", 101.0, jct) for number, jct in enumerate((4.0, 6.0, 5.0))]
    leave(tmp_path, *first, result("s.t1.r1", 107.5, 10.0))
    assert process.arrived_jobs(created, tmp_path) == ["s.t0.r0", "s.t1.r0", "s.t1.r1", "s.t2.r0"]
    assert process.all_ended(created, tmp_path)
    (found,) = process.read_studies(created, tmp_path, 100.0)
    assert [(s.stage, s.arrival, s.seconds, s.watched_seconds) for s in found.stages] == [
        ("b0.r0", 0.0, 6.0, 6.0),
        ("b0.r1", 6.5, 10.0, 10.0),
    ]
    assert found.stages[1].jobs == ("s.t1.r1",)
    assert (found.best_seconds, found.best_trial, found.best_metric, found.tuner) == (16.5, 1, 0.9, "optuna 1")


def test_what_did_not_end_counts_as_long_as_it_was_watched(tmp_path: Path) -> None:
    created = experiment()
    leave(tmp_path, result("s.t0.r0", 101.0, 4.0), result("s.t1.r0", 101.0, None), record=None)
    assert not process.all_ended(created, tmp_path)
    (found,) = process.read_studies(created, tmp_path, 100.0)
    (stage,) = found.stages
    assert (stage.seconds, stage.watched_seconds) == (None, 49.0)
    assert (found.best_seconds, found.watched_seconds, found.rungs) == (None, 49.0, 2)
    leave(tmp_path, result("s.t1.r0", 101.0, 5.0), record=None)
    (found,) = process.read_studies(created, tmp_path, 100.0)
    assert found.stages[0].seconds is None, "one trial has left no result"


def test_a_result_that_is_damaged_is_one_line(tmp_path: Path) -> None:
    done_file(tmp_path, "s.t0.r0").parent.mkdir()
    done_file(tmp_path, "s.t0.r0").write_text("{")
    with pytest.raises(LabError, match=r"s.t0.r0.json: not a job's result"):
        process.read_studies(experiment(), tmp_path, 100.0)


def test_a_lab_without_optuna_or_with_studies_alone_starts_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(PYTHON_SETTING, str(tmp_path / "nothing"))
    request = LabRequest((experiment(),), (PolicyChoice("beamer"),))
    with pytest.raises(LabError, match="Optuna is not installed; scripts/setup --frameworks"):
        lab.run_lab(request, "uml", results_dir=tmp_path)
    with pytest.raises(LabInputError, match="cannot be measured alone"):
        lab.run_lab(LabRequest(request.experiments, request.policies, alone_iterations=2), "uml", results_dir=tmp_path)


def test_an_experiment_without_studies_has_no_tuner(tmp_path: Path) -> None:
    plain = experiment(studies=[], jobs=[{**document()["jobs"][0], "trial": None}])
    tuner = process.TunerProcess(tmp_path, plain)
    assert tuner.names == frozenset()
    tuner.check()
    tuner.stop()
    assert process.all_ended(plain, tmp_path)
    assert process.read_studies(plain, tmp_path, time.time()) == ()
    assert ArmResult.__dataclass_fields__["studies"].default == (), "arms of earlier versions can be read"
