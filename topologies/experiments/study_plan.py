"""A hyper-parameter study as a part of an experiment: successive halving whose trials are jobs of the testbed.

K. Jamieson, A. Talwalkar: Non-stochastic best arm identification and hyperparameter optimization, AISTATS 2016. All
trials of a rung train at once; when the last has ended, the best of them, one of ``eta``, go on to the next.
Where a trial trains is part of the experiment, so that arms that are to be compared run the same; what it trains, and
who goes on, the study's tuner decides while the arm runs (``topologies.studies.tuner``). So there is a job for every
trial in every rung, and those that are not called never begin.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated

from pydantic import Field, model_validator

from controller.wire import Message, Name

BRACKET = "b0"
"""Stages are called as the tuners' callbacks call them: bracket and rung. Successive halving has one bracket."""

_Iterations = Annotated[int, Field(ge=1, le=10**7)]


class TrialPlan(Message):
    """Which part of a study a job is: trial ``number`` (from 0) in ``rung`` (from 0)."""

    study: Name
    number: Annotated[int, Field(ge=0, le=1000)]
    rung: Annotated[int, Field(ge=0, le=100)]


class StudyPlan(Message):
    """One study, which begins ``arrival`` seconds after the experiment.

    ``rungs[i]`` are the iterations that a trial has done when it leaves rung i. ``configurations`` are recorded runs,
    by the names of their curves: what the tuner may choose from for a trial, by ``seed``.
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
        """How many trials each rung has."""
        return tuple(max(1, self.trials // self.eta**rung) for rung in range(len(self.rungs)))

    def begin(self, rung: int) -> int:
        """The iterations that a trial has done when it enters a rung."""
        return self.rungs[rung - 1] if rung else 0

    def length(self, rung: int) -> int:
        """The iterations of a rung."""
        return self.rungs[rung] - self.begin(rung)


def stage_name(rung: int) -> str:
    """How a job's progress tells the stage of its study."""
    return f"{BRACKET}.r{rung}"


def promoted(metrics: Mapping[int, float], count: int) -> list[int]:
    """The ``count`` trials, by number, with the highest metrics; of equals the first."""
    return sorted(sorted(metrics, key=lambda number: (-metrics[number], number))[:count])


def fault(studies: Iterable[StudyPlan], jobs: Iterable[tuple[str, int, TrialPlan | None]]) -> str | None:
    """What keeps studies and their jobs (id, iterations, trial) from fitting together; None: nothing."""
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
