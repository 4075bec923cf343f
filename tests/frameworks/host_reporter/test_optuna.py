"""Optuna's studies: each trial a job, rungs and brackets stages, up to what the controller knows of them."""

from __future__ import annotations

import json
import threading
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy
import optuna
import pytest

from evaluation.bench.support.waiting import wait_until
from host_reporter.integrations.optuna import follow, stage_of
from tests.support.frameworks.running_agent import Yard
from tests.support.own_resources import open_below, threads_named

optuna.logging.set_verbosity(optuna.logging.WARNING)


def quality(trial: optuna.Trial) -> float:
    return float(trial.suggest_float("x", 0.0, 1.0))


def test_rungs_of_successive_halving_are_stages_while_they_last(yard: Yard) -> None:
    """One trial at a time, which the controller is asked about at each rung."""
    yard.study("halving")
    pruner = optuna.pruners.SuccessiveHalvingPruner(min_resource=2, reduction_factor=3)
    study = optuna.create_study(study_name="halving", direction="maximize", pruner=pruner)
    seen: list[list[tuple[str, float]]] = []

    def objective(trial: optuna.Trial) -> float:
        mine: list[tuple[str, float]] = []
        seen.append(mine)
        # The first is the best, so it goes through all rungs; the others are stopped at the first.
        value = 1.0 - 0.1 * trial.number
        for step in range(1, 19):
            spec = yard.wait(lambda step=step: told(yard, f"halving.t{trial.number}", step))
            if (spec["stage"], spec["iterations"]) not in mine:
                mine.append((spec["stage"], spec["iterations"]))
            trial.report(value, step)
            if trial.should_prune():
                raise optuna.TrialPruned
        return value

    study.optimize(follow(study, objective, directory=yard.progress), n_trials=3)
    rungs = [("halving.b0.r0", 2), ("halving.b0.r1", 6), ("halving.b0.r2", 18)]
    assert seen[0][:3] == rungs
    assert [mine[:1] for mine in seen[1:]] == [rungs[:1]] * 2
    assert [trial.state.name for trial in study.trials] == ["COMPLETE", "PRUNED", "PRUNED"]
    for number, done in enumerate((18, 2, 2)):
        state = yard.wait_ended(f"halving.t{number}")
        assert (state["iterations_done"], state["last_metric"]) == (done, pytest.approx(1.0 - 0.1 * number))
    for rung in rungs:
        assert yard.controller.call("DELETE", f"/v1/stages/{rung[0]}").status_code in (204, 404)


def told(yard: Yard, job: str, step: int) -> dict[str, Any] | None:
    """The job's spec once the controller has the rung that the step is in."""
    until = next(end for end in (2, 6, 18, 54) if step <= end)
    spec: dict[str, Any] = yard.state(job)["spec"]
    # At the step that ends a rung the trial is still in it: it is told when the pruner has let it go on.
    return spec if spec.get("stage") and spec.get("iterations") == until else None


def test_trials_side_by_side_share_their_stage(yard: Yard) -> None:
    """The plan of the stage-aware policy names it."""
    yard.study("together")
    pruner = optuna.pruners.SuccessiveHalvingPruner(min_resource=1, reduction_factor=2)
    study = optuna.create_study(study_name="together", direction="maximize", pruner=pruner)
    both = threading.Barrier(2)
    reasons: dict[int, str] = {}

    def objective(trial: optuna.Trial) -> float:
        job = f"together.t{trial.number}"
        both.wait(30)
        yard.wait(lambda: yard.state(job)["spec"].get("stage") == "together.b0.r0")
        both.wait(30)
        plan = yard.wait(lambda: (p := yard.controller.call("GET", "/v1/plan").json()) and job in p["reasons"] and p)
        reasons[trial.number] = plan["reasons"][job]
        both.wait(30)
        trial.report(quality(trial), 1)
        trial.should_prune()
        return 1.0

    study.optimize(follow(study, objective, directory=yard.progress), n_trials=2, n_jobs=2)
    assert all("stage together.b0.r0" in reason for reason in reasons.values()), reasons
    assert all("of 2" in reason.rpartition(";")[2] for reason in reasons.values()), reasons
    assert yard.controller.call("GET", "/v1/jobs").ok


def test_brackets_of_hyperband(yard: Yard) -> None:
    yard.study("hyper")
    pruner = optuna.pruners.HyperbandPruner(min_resource=1, max_resource=9, reduction_factor=3)
    sampler = optuna.samplers.TPESampler(seed=1)
    study = optuna.create_study(study_name="hyper", direction="maximize", pruner=pruner, sampler=sampler)
    expected: dict[str, set[str]] = {}

    def objective(trial: optuna.Trial) -> float:
        value = quality(trial)
        for step in range(1, 10):
            trial.report(value, step)
            if trial.should_prune():
                raise optuna.TrialPruned
            bracket = pruner._get_bracket_id(study, trial)
            # A bracket's first rung ends at 3^bracket, each next one at three times that.
            rung = sum(3 ** (bracket + k) <= step for k in range(5))
            expected.setdefault(f"hyper.t{trial.number}", set()).add(f"b{bracket}.r{rung}")
        return value

    study.optimize(follow(study, objective, directory=yard.progress), n_trials=12)
    assert study.pruner is pruner, "samplers ask which pruner it is"
    brackets = {stage.partition(".")[0] for stages in expected.values() for stage in stages}
    assert brackets == {"b0", "b1", "b2"}
    for job, stages in expected.items():
        lines = yard.progress / f"{job}.jsonl"
        assert stages <= set(stages_in(lines))
        # The rungs end at 1, 3 and 9, and bracket 1 leaves the first one out, bracket 2 the second as well. At the end
        # of the last a trial is, for a moment, in one that Optuna does not have.
        for stage, left in rungs_left_in(lines).items():
            assert left == max(0, 2 - int(stage[1]) - int(stage[-1]))
    for job in yard.jobs("hyper."):
        yard.wait_ended(job)


def rungs_left_in(path: Path) -> dict[str, int]:
    records = map(json.loads, path.read_text().splitlines())
    return {record["stage"]: record["rungs_left"] for record in records if "stage" in record}


def stages_in(path: Path) -> list[str]:
    return [record["stage"] for line in path.read_text().splitlines() if "stage" in (record := json.loads(line))]


def test_reports_that_come_seldom(yard: Yard) -> None:
    """Each is beyond the rung that the trial was in, and the controller believes it all the same."""
    yard.study("seldom")
    pruner = optuna.pruners.SuccessiveHalvingPruner(min_resource=1, reduction_factor=2)
    study = optuna.create_study(study_name="seldom", direction="maximize", pruner=pruner)

    def objective(trial: optuna.Trial) -> float:
        for step in (10, 50, 200):
            trial.report(0.5, step)
            yard.wait(lambda step=step: yard.state(f"seldom.t{trial.number}")["iterations_done"] == 2 * step)
            trial.should_prune()
        return 0.5

    study.optimize(follow(study, objective, directory=yard.progress, iterations_per_step=2.0, target=0.92), n_trials=1)
    assert yard.wait_ended("seldom.t0")["spec"]["target"] == 0.92
    assert "not believed" not in yard.agent.said


def test_whatever_optuna_takes_for_a_number_is_told_and_what_it_refuses_is_its_own_matter(yard: Yard) -> None:
    yard.study("numbers")
    pruner = optuna.pruners.SuccessiveHalvingPruner(min_resource=1, reduction_factor=2)
    study = optuna.create_study(study_name="numbers", direction="maximize", pruner=pruner)

    def objective(trial: optuna.Trial) -> float:
        for value, step in (
            (0.5, "3"),
            ("0.5", Decimal(5)),
            (numpy.float32(0.5), numpy.int64(9)),
            (Fraction(1, 2), 12.9),
        ):
            trial.report(value, step)  # type: ignore[arg-type]
            yard.wait(lambda step=step: yard.state("numbers.t0")["iterations_done"] == int(step))
            trial.should_prune()
        with pytest.raises(TypeError, match="supposed to be an int"):
            trial.report(0.5, "soon")  # type: ignore[arg-type]
        return 0.5

    study.optimize(follow(study, objective, directory=yard.progress), n_trials=1)
    assert study.trials[0].state.name == "COMPLETE"
    assert yard.wait_ended("numbers.t0")["iterations_done"] == 12


def test_an_objective_that_fails_ends_its_trial(yard: Yard) -> None:
    yard.study("failing")
    study = optuna.create_study(study_name="failing")

    def objective(trial: optuna.Trial) -> float:
        trial.report(0.5, 3)
        yard.wait(lambda: yard.state("failing.t0")["iterations_done"] == 3)
        raise RuntimeError("as the test wants")

    with pytest.raises(RuntimeError, match="as the test wants"):
        study.optimize(follow(study, objective, directory=yard.progress), n_trials=1)
    yard.wait_ended("failing.t0")


@pytest.mark.parametrize("pruner", [optuna.pruners.MedianPruner(), optuna.pruners.NopPruner()])
def test_other_pruners_have_no_stages(tmp_path: Path, pruner: optuna.pruners.BasePruner) -> None:
    study = optuna.create_study(study_name="plain", pruner=pruner)

    def objective(trial: optuna.Trial) -> float:
        assert stage_of(study, trial) is None
        trial.report(0.5, 1)
        trial.should_prune()
        return 0.5

    study.optimize(follow(study, objective, name="an odd/name", directory=tmp_path), n_trials=1)
    assert stages_in(tmp_path / "an-odd-name.t0.jsonl") == []


def test_a_thousand_trials_leave_no_threads_and_no_descriptors_behind(tmp_path: Path) -> None:
    study = optuna.create_study(study_name="many", sampler=optuna.samplers.RandomSampler(seed=1))

    def objective(trial: optuna.Trial) -> float:
        trial.report(0.5, 1)
        return 0.5

    earlier = set(threads_named("trainyard progress"))
    study.optimize(follow(study, objective, directory=tmp_path), n_trials=200)
    wait_until(lambda: not set(threads_named("trainyard progress")) - earlier)
    assert not open_below(tmp_path)
