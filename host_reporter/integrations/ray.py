"""Ray Tune: each trial of an experiment is a job, and the rungs of its scheduler are stages.

The callback runs in the driver, so the driver's host tells of all trials. Of ASHAScheduler (AsyncHyperBandScheduler)
and HyperBandScheduler the stage of a trial is its bracket and its rung: ``b0.r1``. Both are read from the scheduler's
own books, which are never changed. With other schedulers trials are jobs without a stage.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from ray.tune import Callback
from ray.tune.schedulers import AsyncHyperBandScheduler, HyperBandScheduler, TrialScheduler

from host_reporter.integrations.meter import Folder
from host_reporter.integrations.trial_files import TrialFiles

log = logging.getLogger(__name__)
_COUNT = "training_iteration"


class Trials(Callback):
    """For ``RunConfig(callbacks=[Trials("study", scheduler, metric="accuracy")])``, with TuneConfig's own scheduler.

    ``iterations_per_step``: how many iterations of the training, as the job file's demand counts them, one unit of the
    scheduler's time_attr is (one call of ``tune.report``, if that is training_iteration).
    """

    def __init__(
        self,
        study: str | None = None,
        scheduler: TrialScheduler | None = None,
        *,
        metric: str | None = None,
        directory: Folder = None,
        iterations_per_step: float = 1.0,
    ) -> None:
        self._arguments = (study, directory)
        self._files = TrialFiles(study, directory)
        self._scheduler = scheduler
        self._metric = metric
        self._scale = iterations_per_step
        self._stages: dict[str, tuple[str, float | None]] = {}

    def __getstate__(self) -> dict[str, Any]:
        """Ray keeps a copy of its callbacks with the experiment; open files are not for that."""
        return self.__dict__ | {"_files": None, "_stages": {}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._files = TrialFiles(*self._arguments)

    def on_trial_start(self, iteration: int, trials: list[Any], trial: Any, **_: Any) -> None:
        """A trial begins, or goes on after a pause."""
        self._tell_stage(trial, trial.last_result or {})

    def on_trial_result(self, iteration: int, trials: list[Any], trial: Any, result: dict[str, Any], **_: Any) -> None:
        """A trial has reported, and its scheduler has seen it."""
        file = self._files.begin(trial.trial_id)
        if file is not None:
            # The rung first, for the report may be beyond the end of the one before.
            self._tell_stage(trial, result)
            metric = result.get(self._metric) if self._metric is not None else None
            done = _done(self._scheduler, result)
            if done is not None:
                file.report(iteration=done * self._scale, metric=metric)

    def on_trial_complete(self, iteration: int, trials: list[Any], trial: Any, **_: Any) -> None:
        """A trial is over: it has done all, or its scheduler has stopped it."""
        self._end(trial)

    def on_trial_error(self, iteration: int, trials: list[Any], trial: Any, **_: Any) -> None:
        """A trial has failed for good."""
        self._end(trial)

    def on_experiment_end(self, trials: list[Any], **_: Any) -> None:
        """All is over, also what was interrupted."""
        self._files.end_all()

    def _end(self, trial: Any) -> None:
        self._stages.pop(trial.trial_id, None)
        self._files.end(trial.trial_id)

    def _tell_stage(self, trial: Any, result: Mapping[str, Any]) -> None:
        try:
            stage = stage_of(self._scheduler, trial, result)
        except Exception as error:
            # Another version of Ray may keep its rungs elsewhere: the trial is then a job without a stage.
            log.debug("the stage of trial %s is not known: %s", trial.trial_id, error)
            return
        file = self._files.begin(trial.trial_id)
        if file is not None and stage is not None and self._stages.get(trial.trial_id) != stage:
            self._stages[trial.trial_id] = stage
            name, until = stage
            file.stage(name, until * self._scale if until is not None else None)


def stage_of(
    scheduler: TrialScheduler | None, trial: Any, result: Mapping[str, Any]
) -> tuple[str, float | None] | None:
    """Bracket and rung of a trial, and the time_attr at which the rung ends, if known; None: there are no rungs.

    ``result``: the trial's latest.
    """
    if isinstance(scheduler, AsyncHyperBandScheduler):
        return _asynchronous(scheduler, trial, result)
    if isinstance(scheduler, HyperBandScheduler):
        return _synchronous(scheduler, trial)
    return None


def _asynchronous(scheduler: Any, trial: Any, result: Mapping[str, Any]) -> tuple[str, float | None] | None:
    """Rungs end at milestones; a trial is in the one after the last milestone that it has passed."""
    bracket = scheduler._trial_info.get(trial.trial_id)
    if bracket is None:
        return None
    done = _done(scheduler, result) or 0.0
    milestones = sorted(float(milestone) for milestone, _ in bracket._rungs)
    passed = sum(milestone <= done for milestone in milestones)
    until = milestones[passed] if passed < len(milestones) else max(float(scheduler._max_t), done)
    return f"b{scheduler._brackets.index(bracket)}.r{passed}", until if _counts(scheduler) else None


def _synchronous(scheduler: Any, trial: Any) -> tuple[str, float | None] | None:
    """A bracket's rungs are counted by its halvings; a trial that has left its bracket is in none."""
    bracket, band = scheduler._trial_info.get(trial, (None, 0))
    if bracket is None:
        return None
    place = scheduler._hyperbands[band].index(bracket)
    number = band * scheduler._s_max_1 + place
    return f"b{number}.r{place - bracket._halves}", float(bracket._cumul_r) if _counts(scheduler) else None


def _counts(scheduler: Any) -> bool:
    """Returns whether the scheduler's time is a count of steps, not of seconds."""
    return bool(scheduler._time_attr != "time_total_s")


def _done(scheduler: Any, result: Mapping[str, Any]) -> float | None:
    name = getattr(scheduler, "_time_attr", _COUNT)
    value = result.get(name if name != "time_total_s" else _COUNT)
    return float(value) if isinstance(value, (int, float)) else None
