"""ASHA: promotion without a barrier. Trials that were submitted together are a stage.

[known] L. Li, K. Jamieson, A. Rostamizadeh, E. Gonina, J. Ben-tzur, M. Hardt, B. Recht, A. Talwalkar: A system for
massively parallel hyperparameter tuning, MLSys 2020. A free worker takes, from the highest rung down, a trial that is
among the best 1 / eta of those that left its rung; else a new configuration.

[ours] The tuner submits in batches: a first one that fills all its slots, then one as soon as ``batch`` slots are free.
"""

from __future__ import annotations

from collections.abc import Sequence

from simulator.jobs import SimJob
from simulator.workloads.study import Config, Study, best


class Tuner:
    """One study under ASHA; ``slots`` trials run at most at once."""

    def __init__(self, study: Study, slots: int, batch: int) -> None:
        self._study, self._batch = study, batch
        self._free = slots
        self._waiting = list(reversed(study.configs))
        self._left: list[list[Config]] = [[] for _ in study.rungs]
        self._promoted: list[set[int]] = [set() for _ in study.rungs]
        self._running: dict[str, tuple[Config, int]] = {}
        self._batches = 0

    def start(self, arrival: float) -> list[SimJob]:
        """The first batch."""
        return self._submit(arrival)

    def ended(self, job: str, now: float) -> list[SimJob]:
        """A trial has left its rung; what is submitted now."""
        config, rung = self._running.pop(job)
        self._left[rung].append(config)
        self._free += 1
        return self._submit(now) if self._free >= self._batch else []

    def _submit(self, now: float) -> list[SimJob]:
        stage = f"{self._study.name}/batch{self._batches + 1}"
        trials: list[SimJob] = []
        while self._free > 0 and (chosen := self._next()) is not None:
            config, rung = chosen
            start = self._study.rungs[rung - 1] if rung > 0 else 0
            trial = self._study.trial(config, rung, stage, start=start, arrival=now)
            self._running[trial.id] = (config, rung)
            self._free -= 1
            trials.append(trial)
        self._batches += bool(trials)
        return trials

    def _next(self) -> tuple[Config, int] | None:
        for rung in range(len(self._study.rungs) - 2, -1, -1):
            left = self._left[rung]
            for config in best(left, self._study.rungs[rung], len(left) // self._study.eta):
                if config.number not in self._promoted[rung]:
                    self._promoted[rung].add(config.number)
                    return config, rung + 1
        return (self._waiting.pop(), 0) if self._waiting else None


class AshaFollower:
    """Several studies under ASHA in one simulation."""

    def __init__(self, tuners: Sequence[tuple[Tuner, float]]) -> None:
        self.first: list[SimJob] = []
        self.submitted: list[SimJob] = []
        self._owner: dict[str, Tuner] = {}
        for tuner, arrival in tuners:
            trials = tuner.start(arrival)
            self.first += trials
            self._own(tuner, trials)

    def __call__(self, job_id: str, end: float) -> Sequence[SimJob]:
        """What the study of ``job_id`` submits at its end."""
        tuner = self._owner[job_id]
        trials = tuner.ended(job_id, end)
        self.submitted += trials
        self._own(tuner, trials)
        return trials

    def _own(self, tuner: Tuner, trials: Sequence[SimJob]) -> None:
        self._owner.update((trial.id, tuner) for trial in trials)
