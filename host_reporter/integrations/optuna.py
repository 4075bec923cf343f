"""Optuna: each trial of a study is a job, and the rungs of its successive halving are stages.

With SuccessiveHalvingPruner and HyperbandPruner the stage of a trial is its bracket and its rung: ``b0.r1``. Optuna
keeps the rungs that a trial has completed in the trial's attributes; the pruner gives the step at which the next rung
ends. This module reads both and changes neither. With other pruners trials are jobs without a stage.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, NamedTuple

import optuna

from host_reporter.integrations.meter import Folder
from host_reporter.integrations.trial_files import TrialFiles
from host_reporter.training.progress_file import ProgressFile

log = logging.getLogger(__name__)


class Rung(NamedTuple):
    """A trial's bracket and rung, the step at which the rung ends, and how many follow; None: it is not known."""

    name: str
    until: float | None
    left: int | None


def follow(
    study: optuna.Study,
    objective: Callable[[optuna.Trial], Any],
    *,
    name: str | None = None,
    directory: Folder = None,
    iterations_per_step: float = 1.0,
    target: float | None = None,
) -> Callable[[optuna.Trial], Any]:
    """Returns the objective with trials that report their progress: ``study.optimize(follow(study, objective))``.

    ``name`` is the study's id for the agent, by default its name in Optuna. ``iterations_per_step`` is the number of
    training iterations, as the job file's demand counts them, in one step of ``trial.report``. ``target`` is the value
    of the metric that you call done in each trial.
    """
    files = TrialFiles(name or study.study_name, directory, target=target)

    def followed(trial: optuna.Trial) -> Any:
        number = f"t{trial.number}"
        try:
            _attach(study, trial, files.begin(number), iterations_per_step)
            return objective(trial)
        finally:
            files.end(number)

    return followed


def stage_of(study: optuna.Study, trial: optuna.Trial) -> Rung | None:
    """Returns a trial's rung; None where the pruner has no rungs."""
    pruner, bracket = study.pruner, 0
    longest: float | None = None
    if isinstance(pruner, optuna.pruners.HyperbandPruner):
        if not pruner._pruners:
            # The pruner creates its brackets at its first decision.
            return None
        bracket = pruner._get_bracket_id(study, trial)
        longest = float(pruner._max_resource) if isinstance(pruner._max_resource, int) else None
        pruner = pruner._pruners[bracket]
    if not isinstance(pruner, optuna.pruners.SuccessiveHalvingPruner):
        return None
    completed = trial.storage.get_trial_system_attrs(trial._trial_id)
    rung = 0
    while f"completed_rung_{rung}" in completed:
        rung += 1
    until: float | None = None
    if pruner._min_resource is not None:
        until = float(pruner._min_resource * pruner._reduction_factor ** (pruner._min_early_stopping_rate + rung))
    return Rung(f"b{bracket}.r{rung}", until, _rungs_after(until, longest, pruner._reduction_factor))


def _rungs_after(until: float | None, longest: float | None, factor: int) -> int | None:
    """Returns how many rungs follow one that ends at a step, where trials train for ``longest`` steps at most."""
    if until is None or longest is None:
        return None
    rungs = 0
    while until < longest:
        until *= factor
        rungs += 1
    return rungs


def _attach(study: optuna.Study, trial: optuna.Trial, file: ProgressFile | None, scale: float) -> None:
    """Make the trial write its reports to ``file``, and its stage after each call of ``should_prune``."""
    if file is None:
        return
    report, should_prune = trial.report, trial.should_prune
    reported: Rung | None = None
    last = 0

    def write_stage() -> None:
        nonlocal reported
        try:
            stage = stage_of(study, trial)
            if stage is not None and stage != reported:
                reported = stage
                until = stage.until * scale if stage.until is not None else None
                file.stage(stage.name, until, stage.left)
        except Exception as error:
            # Another version of Optuna may keep its rungs elsewhere. The trial is then a job without a stage.
            log.debug("the stage of trial %s is not known: %s", trial.number, error)

    def write_report(value: float, step: int) -> None:
        nonlocal last
        last = step
        if reported is not None and reported.until is not None and step > reported.until:
            # A trial that reports seldom passes the end of its rung before the pruner decides, but is still in it.
            file.stage(reported.name, step * scale, reported.left)
        file.report(iteration=step * scale, metric=value)

    def report_and_write(value: float, step: int) -> None:
        report(value, step)
        try:
            # Optuna itself accepts whatever converts to a number.
            write_report(float(value), int(step))
        except Exception as error:
            log.debug("a report of trial %s is not passed on: %s", trial.number, error)

    def should_prune_and_write() -> bool:
        is_over: bool = should_prune()
        # A trial stays in its rung until that ends.
        if not is_over and (reported is None or reported.until is None or last >= reported.until):
            write_stage()
        return is_over

    # Only this trial is changed. The study and its pruner stay the same objects, which samplers read.
    trial.report = report_and_write
    trial.should_prune = should_prune_and_write
    write_stage()
