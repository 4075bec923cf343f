"""A hyper-parameter study as a part of an experiment: successive halving whose trials are jobs of the testbed.

K. Jamieson, A. Talwalkar: Non-stochastic best arm identification and hyperparameter optimization, AISTATS 2016. All
trials of a rung train at once. When the last one has ended, the best of them (one in ``eta``) go on to the next rung.
The experiment says where each trial trains, so that all arms of a comparison have the same placement. While an arm
runs, the study's tuner (``topologies.studies.tuner``) decides what a trial trains, and which trials go on. So there is
a job for every trial in every rung, and jobs that are not called never begin.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated

from pydantic import Field, model_validator

from controller.wire import Message, Name

BRACKET = "b0"
"""A stage's name is its bracket and rung, as in the tuners' callbacks. Successive halving has one bracket."""

_Iterations = Annotated[int, Field(ge=1, le=10**7)]


class TrialPlan(Message):
    """A job's part of a study: trial ``number`` (from 0) in ``rung`` (from 0)."""

    study: Name
    number: Annotated[int, Field(ge=0, le=1000)]
    rung: Annotated[int, Field(ge=0, le=100)]


class StudyPlan(Message):
    """One study, which begins ``arrival`` seconds after the experiment.

    ``rungs[i]`` are the iterations that a trial has done when it leaves rung i. ``configurations`` are the recorded
    runs, by the names of their curves, from which the tuner chooses by ``seed``.
    """

    name: Name
    arrival: Annotated[float, Field(ge=0, le=1e6)]
    trials: Annotated[int, Field(ge=1, le=1000)]
    rungs: Annotated[tuple[_Iterations, ...], Field(min_length=1, max_length=20, strict=False)]
    eta: Annotated[int, Field(ge=2, le=100)]
    configurations: Annotated[tuple[str, ...], Field(min_length=1, max_length=1000, strict=False)]
    seed: int = 0

    @model_validator(mode="after")
    def _rungs_grow(self) -> StudyPlan:
        if any(after <= before for before, after in zip(self.rungs, self.rungs[1:], strict=False)):
            raise ValueError(f"rungs: {list(self.rungs)}; each must end after more iterations than the one before")
        return self

    @property
    def sizes(self) -> tuple[int, ...]:
        """The number of trials in each rung."""
        return tuple(max(1, self.trials // self.eta**rung) for rung in range(len(self.rungs)))

    def begin(self, rung: int) -> int:
        """Returns the iterations that a trial has done when it enters a rung."""
        return self.rungs[rung - 1] if rung else 0

    def length(self, rung: int) -> int:
        """Returns the number of iterations in a rung."""
        return self.rungs[rung] - self.begin(rung)


def stage_name(rung: int) -> str:
    """Returns the name of the stage of a rung, as jobs report it."""
    return f"{BRACKET}.r{rung}"


def promoted(metrics: Mapping[int, float], count: int) -> list[int]:
    """Returns the numbers of the ``count`` trials with the highest metrics; of equal trials the first go on."""
    return sorted(sorted(metrics, key=lambda number: (-metrics[number], number))[:count])


def fault(studies: Iterable[StudyPlan], jobs: Iterable[tuple[str, int, TrialPlan | None]]) -> str | None:
    """Returns why studies and their jobs (id, iterations, trial) do not fit together; None where they do."""
    plans = {study.name: study for study in studies}
    missing = {
        TrialPlan(study=study.name, number=number, rung=rung)
        for study in plans.values()
        for number in range(study.trials)
        for rung in range(len(study.rungs))
    }
    for job, iterations, trial in jobs:
        if trial is None:
            continue
        if trial not in missing:
            known = trial.study in plans
            return f"job {job}: {'no such trial, or it has a job already' if known else f'no study {trial.study}'}"
        missing.remove(trial)
        length = plans[trial.study].length(trial.rung)
        if iterations != length:
            return f"job {job}: {iterations} iterations; rung {trial.rung} of {trial.study} has {length}"
    for trial in sorted(missing, key=lambda trial_plan: (trial_plan.study, trial_plan.number, trial_plan.rung)):
        return f"study {trial.study}: trial {trial.number} has no job for rung {trial.rung}"
    return None
