"""An arm's studies: the tuner's process, and the times of their stages by the trainers' clocks.

The tuner runs outside the emulated hosts. It tells the trainers by files what to train, and sends no packet over the
measured network.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from topologies import checkout, frameworks
from topologies.errors import LabError
from topologies.experiments.experiment import Experiment
from topologies.experiments.study_plan import StudyPlan, stage_name
from topologies.studies.record import StudyRecord, read_study, study_file
from topologies.trainer.calls import call_file
from topologies.trainer.results import JobResult, done_file, read_result

TUNER = "tuner"
"""The tuner has this name in the meeting's folder and in the name of its log."""

_STOP_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class StageResult:
    """A rung of a study: ``seconds`` from its first job's arrival to its last job's end; None: not all jobs ended.

    ``arrival``: seconds since the study's start; ``watched_seconds``: to the end, or to the end of the experiment.
    """

    stage: str
    jobs: tuple[str, ...]
    arrival: float
    seconds: float | None
    watched_seconds: float


@dataclass(frozen=True, slots=True)
class StudyResult:
    """One study of an arm. ``best_seconds``: from its start until the best trial had its final accuracy, if one had.

    ``stages``: those that began; there should have been ``rungs``. ``tuner``: what drove it, with its version.
    """

    study: str
    rungs: int
    stages: tuple[StageResult, ...]
    best_seconds: float | None
    best_trial: int | None
    best_metric: float | None
    watched_seconds: float
    tuner: str = ""


class Network(Protocol):
    """The part of ``topologies.emulation.Emulation`` that starts a tuner."""

    def popen(self, host: str | None, command: Sequence[str], **options: Any) -> subprocess.Popen[Any]:
        """Start a process, outside of the hosts where ``host`` is None."""


class TunerProcess:
    """The tuner of an experiment's studies; without studies there is no process, and no method does anything."""

    def __init__(self, folder: Path, experiment: Experiment) -> None:
        self._folder = folder
        self._is_needed = bool(experiment.studies)
        self._process: subprocess.Popen[Any] | None = None
        self.log = folder / f"{TUNER}.log"

    @property
    def names(self) -> frozenset[str]:
        """Who has to come to the meeting besides the trainers."""
        return frozenset({TUNER} if self._is_needed else ())

    def start(self, network: Network, experiment_file: Path, meeting: Path) -> None:
        """Start it. Raises LabError where Optuna is not installed."""
        if not self._is_needed:
            return
        command = [frameworks.interpreter("Optuna"), "-m", "topologies.studies.tuner"]
        command += ["--experiment", str(experiment_file), "--dir", str(self._folder), "--meet", str(meeting)]
        with self.log.open("ab") as log:
            self._process = network.popen(
                None, command, stdout=log, stderr=log, cwd=checkout.ROOT, env=dict(os.environ)
            )

    def check(self) -> None:
        """Raise LabError where the tuner has failed."""
        if self._process is not None and self._process.poll() not in {None, 0}:
            lines = self.log.read_text(errors="replace").strip().splitlines() or ["(nothing)"]
            raise LabError(f"the tuner ended with status {self._process.returncode}: {lines[-1]}")

    def stop(self) -> None:
        """End the tuner, if it runs."""
        if self._process is None or self._process.poll() is not None:
            return
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def all_ended(experiment: Experiment, directory: Path) -> bool:
    """Returns whether every study has ended, so that no further job is called."""
    return all(study_file(directory, study.name).exists() for study in experiment.studies)


def arrived_jobs(experiment: Experiment, directory: Path) -> list[str]:
    """Return the jobs that arrived: all but those of studies that nobody called."""
    return [
        job.id
        for job in experiment.jobs
        if job.trial is None or call_file(directory, job.id).exists() or done_file(directory, job.id).exists()
    ]


def read_studies(experiment: Experiment, directory: Path, start: float) -> tuple[StudyResult, ...]:
    """Return the results of an arm's studies. The arm began ``start`` seconds after the epoch. Raises LabError."""
    try:
        jobs: dict[str, dict[int, dict[str, JobResult]]] = {}
        numbers: dict[str, int] = {}
        for job in experiment.jobs:
            path = done_file(directory, job.id)
            if job.trial is not None and path.exists():
                jobs.setdefault(job.trial.study, {}).setdefault(job.trial.rung, {})[job.id] = read_result(path)
                numbers[job.id] = job.trial.number
        results = []
        for plan in experiment.studies:
            path = study_file(directory, plan.name)
            record = read_study(path) if path.exists() else None
            watched = max(0.0, experiment.limit_seconds - plan.arrival)
            results.append(study_result(plan, jobs.get(plan.name, {}), numbers, record, start=start, watched=watched))
        return tuple(results)
    except (OSError, ValueError) as error:
        raise LabError(str(error)) from error


def study_result(
    plan: StudyPlan,
    rungs: Mapping[int, Mapping[str, JobResult]],
    numbers: Mapping[str, int],
    record: StudyRecord | None,
    *,
    start: float,
    watched: float,
) -> StudyResult:
    """Return the result of a study from its jobs by rung; ``numbers`` has the trial of each job. Pure.

    ``record`` is the tuner's, None where the study did not end; ``watched`` is in seconds from its start to the limit.
    """
    zero = start + plan.arrival
    stages = tuple(
        _stage(rung, jobs, zero, missing=len(jobs) < plan.sizes[rung], watched=watched)
        for rung, jobs in sorted(rungs.items())
    )
    best_seconds = None
    if record is not None and record.best is not None:
        for job, finished in rungs.get(len(plan.rungs) - 1, {}).items():
            if numbers[job] == record.best and finished.jct is not None:
                best_seconds = finished.arrival_epoch + finished.jct - zero
    return StudyResult(
        study=plan.name,
        rungs=len(plan.rungs),
        stages=stages,
        best_seconds=best_seconds,
        best_trial=record.best if record is not None else None,
        best_metric=record.best_metric if record is not None else None,
        watched_seconds=watched if best_seconds is None else best_seconds,
        tuner=record.tuner if record is not None else "",
    )


def _stage(rung: int, jobs: Mapping[str, JobResult], zero: float, *, missing: bool, watched: float) -> StageResult:
    arrival = min(job.arrival_epoch for job in jobs.values())
    ends = [job.arrival_epoch + job.jct for job in jobs.values() if job.jct is not None]
    seconds = max(ends) - arrival if len(ends) == len(jobs) and not missing else None
    lasted = max(0.0, watched - (arrival - zero)) if seconds is None else seconds
    return StageResult(stage_name(rung), tuple(sorted(jobs)), arrival - zero, seconds, lasted)
