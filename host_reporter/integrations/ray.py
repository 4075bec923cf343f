"""Ray Tune: each trial of an experiment is a job, and the rungs of its scheduler are stages.

The callback runs in the driver, so the driver's host reports all trials. With ASHAScheduler (AsyncHyperBandScheduler)
and HyperBandScheduler the stage of a trial is its bracket and its rung: ``b0.r1``. Both are read from the scheduler's
own state, which is never changed. With other schedulers trials are jobs without a stage.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, NamedTuple

from ray.tune import Callback
from ray.tune.schedulers import AsyncHyperBandScheduler, HyperBandScheduler, TrialScheduler

from host_reporter.integrations.meter import Folder
from host_reporter.integrations.trial_files import TrialFiles

log = logging.getLogger(__name__)
_COUNT = "training_iteration"


class Rung(NamedTuple):
    """A trial's bracket and rung, the time_attr at which the rung ends, if known, and how many rungs follow it."""

    name: str
    until: float | None
    left: int


class Trials(Callback):
    """For ``RunConfig(callbacks=[Trials("study", scheduler, metric="accuracy")])``, with TuneConfig's own scheduler.

    ``iterations_per_step`` is the number of training iterations, as the job file's demand counts them, in one unit of
    the scheduler's time_attr (one call of ``tune.report``, if that is training_iteration). ``target`` is the value of
    the metric that you call done in each trial.
    """

    def __init__(
        self,
        study: str | None = None,
        scheduler: TrialScheduler | None = None,
        *,
        metric: str | None = None,
        directory: Folder = None,
        iterations_per_step: float = 1.0,
        target: float | None = None,
    ) -> None:
        self._arguments = (study, directory)
        self._target = target
        self._files = TrialFiles(study, directory, target=target)
        self._scheduler = scheduler
        self._metric = metric
        self._scale = iterations_per_step
        self._stages: dict[str, Rung] = {}

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the open files, because Ray stores a copy of its callbacks with the experiment."""
        return self.__dict__ | {"_files": None, "_stages": {}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._files = TrialFiles(*self._arguments, target=self._target)

    def on_trial_start(self, iteration: int, trials: list[Any], trial: Any, **_: Any) -> None:
        """Report the stage of a trial that begins, or that goes on after a pause."""
        self._report_stage(trial, trial.last_result or {})

    def on_trial_result(self, iteration: int, trials: list[Any], trial: Any, result: dict[str, Any], **_: Any) -> None:
        """Report a trial's result after its scheduler has seen it."""
        file = self._files.begin(trial.trial_id)
        if file is not None:
            # The rung comes first, because this result may be beyond the end of the rung before.
            self._report_stage(trial, result)
            metric = result.get(self._metric) if self._metric is not None else None
            done = _done(self._scheduler, result)
            if done is not None:
                file.report(iteration=done * self._scale, metric=metric)

    def on_trial_complete(self, iteration: int, trials: list[Any], trial: Any, **_: Any) -> None:
        """Report the end of a trial that is complete, or that its scheduler has stopped."""
        self._end(trial)

    def on_trial_error(self, iteration: int, trials: list[Any], trial: Any, **_: Any) -> None:
        """Report the end of a trial that has failed and is not tried again."""
        self._end(trial)

    def on_experiment_end(self, trials: list[Any], **_: Any) -> None:
        """Report the end of all trials, also of interrupted ones."""
        self._files.end_all()

    def _end(self, trial: Any) -> None:
        self._stages.pop(trial.trial_id, None)
        self._files.end(trial.trial_id)

    def _report_stage(self, trial: Any, result: Mapping[str, Any]) -> None:
        try:
            stage = stage_of(self._scheduler, trial, result)
        except Exception as error:
            # Another version of Ray may keep its rungs elsewhere. The trial is then a job without a stage.
            log.debug("the stage of trial %s is not known: %s", trial.trial_id, error)
            return
        file = self._files.begin(trial.trial_id)
        if file is not None and stage is not None and self._stages.get(trial.trial_id) != stage:
            self._stages[trial.trial_id] = stage
            file.stage(stage.name, stage.until * self._scale if stage.until is not None else None, stage.left)


def stage_of(scheduler: TrialScheduler | None, trial: Any, result: Mapping[str, Any]) -> Rung | None:
    """Returns a trial's rung; None where the scheduler has no rungs. ``result`` is the trial's latest result."""
    if isinstance(scheduler, AsyncHyperBandScheduler):
        return _asynchronous(scheduler, trial, result)
    if isinstance(scheduler, HyperBandScheduler):
        return _synchronous(scheduler, trial)
    return None


def _asynchronous(scheduler: Any, trial: Any, result: Mapping[str, Any]) -> Rung | None:
    """Returns the rung after the last milestone that the trial has passed; each rung ends at a milestone."""
    bracket = scheduler._trial_info.get(trial.trial_id)
    if bracket is None:
        return None
    done = _done(scheduler, result) or 0.0
    milestones = sorted(float(milestone) for milestone, _ in bracket._rungs)
    passed = sum(milestone <= done for milestone in milestones)
    until = milestones[passed] if passed < len(milestones) else max(float(scheduler._max_t), done)
    # A milestone at max_t ends the last rung, and no other begins there.
    left = sum(done < milestone < scheduler._max_t for milestone in milestones)
    return Rung(f"b{scheduler._brackets.index(bracket)}.r{passed}", until if _counts(scheduler) else None, left)


def _synchronous(scheduler: Any, trial: Any) -> Rung | None:
    """Returns the rung by the halvings of the trial's bracket; None for a trial that has left its bracket."""
    bracket, band = scheduler._trial_info.get(trial, (None, 0))
    if bracket is None:
        return None
    place = scheduler._hyperbands[band].index(bracket)
    number = band * scheduler._s_max_1 + place
    name, until = f"b{number}.r{place - bracket._halves}", float(bracket._cumul_r)
    return Rung(name, until if _counts(scheduler) else None, bracket._halves)


def _counts(scheduler: Any) -> bool:
    """Returns whether the scheduler's time is a count of steps, not of seconds."""
    return bool(scheduler._time_attr != "time_total_s")


def _done(scheduler: Any, result: Mapping[str, Any]) -> float | None:
    name = getattr(scheduler, "_time_attr", _COUNT)
    value = result.get(name if name != "time_total_s" else _COUNT)
    return float(value) if isinstance(value, (int, float)) else None
