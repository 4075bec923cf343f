"""``python -m topologies.studies.tuner``: Optuna's studies of an experiment, by successive halving, while it runs.

Optuna's own SuccessiveHalvingPruner is asynchronous: it decides on each trial when that comes to the end of its rung,
by those that came before, so the first always goes on, and nothing ever waits for a rung's last trial. Rungs with an
end, as in successive halving as published, are driven here, by Optuna's ask and tell: it chooses the configurations and
keeps the trials and what they report; here all trials of a rung are called at once, and when the last of their jobs has
ended the best go on, and the others are told to be pruned. What a job reports is what its trainer has written.

Exit status: 0 all studies are over; 1 something cannot be read or written.
"""

from __future__ import annotations

import argparse
import logging
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

import optuna

from topologies.experiments.experiment import Experiment
from topologies.experiments.study_plan import StudyPlan, promoted, stage_name
from topologies.studies.record import StudyRecord, TrialRecord, study_file
from topologies.trainer.calls import LEAD_SECONDS, Call, call
from topologies.trainer.results import JobResult, done_file, read_result, write_whole
from topologies.trainer.start import Meeting

NAME = "tuner"
"""The tuner has this name in the meeting's folder."""

POLL_SECONDS = 0.1
PARAMETER = "configuration"
_STATES = optuna.trial.TrialState

log = logging.getLogger("tuner")


class Tuning:
    """One study, from its start to its end. ``jobs`` has the job of each trial in each rung."""

    def __init__(self, plan: StudyPlan, jobs: Mapping[tuple[int, int], str], directory: Path) -> None:
        self._plan = plan
        self._jobs = jobs
        self._directory = directory
        self._study = optuna.create_study(
            study_name=plan.name,
            direction="maximize",
            sampler=optuna.samplers.RandomSampler(seed=plan.seed),
            pruner=optuna.pruners.NopPruner(),
        )
        self._trials = [self._study.ask() for _ in range(plan.trials)]
        self._chosen = [str(trial.suggest_categorical(PARAMETER, list(plan.configurations))) for trial in self._trials]
        self._metrics: list[list[float]] = [[] for _ in self._trials]

    def run(self, start: float) -> StudyRecord:
        """Run the study. ``start`` is the experiment's, in seconds since the epoch. Raises OSError, ValueError."""
        running: Sequence[int] = range(self._plan.trials)
        arrival = start + self._plan.arrival
        time.sleep(max(0.0, arrival - LEAD_SECONDS - time.time()))
        for rung in range(len(self._plan.rungs)):
            last = rung == len(self._plan.rungs) - 1
            metrics = self._train(running, rung, max(arrival, time.time()))
            going = [] if last else promoted(metrics, self._plan.sizes[rung + 1])
            log.info("%s: %s ended; %s go on", self._plan.name, stage_name(rung), going)
            for number in running:
                if number not in metrics:
                    self._study.tell(self._trials[number], state=_STATES.FAIL)
                elif last:
                    self._study.tell(self._trials[number], metrics[number])
                elif number not in going:
                    self._study.tell(self._trials[number], state=_STATES.PRUNED)
            running, arrival = going, time.time() + LEAD_SECONDS
        return self._record()

    def _train(self, running: Sequence[int], rung: int, arrival: float) -> dict[int, float]:
        """Train trials through a rung, all at once. Returns the metric of each trial that reached the rung's end."""
        plan = self._plan
        for number in running:
            what = Call(
                arrival=arrival, curve=self._chosen[number], begin=plan.begin(rung), total=plan.rungs[-1],
                stage=stage_name(rung), rungs_left=len(plan.rungs) - 1 - rung,
            )  # fmt: skip
            call(self._directory, self._jobs[number, rung], what)
        metrics = {}
        for number, result in self._ended(running, rung).items():
            if result.jct is None:
                log.warning("%s: trial %d ended before its rung: %s", plan.name, number, result.failed or "stopped")
                continue
            for _, iteration, metric in result.history:
                self._trials[number].report(metric, plan.begin(rung) + iteration)
            metrics[number] = result.history[-1][2]
            self._metrics[number].append(metrics[number])
        return metrics

    def _ended(self, running: Sequence[int], rung: int) -> dict[int, JobResult]:
        """Wait for the jobs' results, and return them by trial."""
        results: dict[int, JobResult] = {}
        while missing := [number for number in running if number not in results]:
            for number in missing:
                path = done_file(self._directory, self._jobs[number, rung])
                if path.exists():
                    results[number] = read_result(path)
            if len(results) < len(running):
                time.sleep(POLL_SECONDS)
        return results

    def _record(self) -> StudyRecord:
        kinds: dict[optuna.trial.TrialState, Literal["complete", "pruned"]] = {
            _STATES.COMPLETE: "complete",
            _STATES.PRUNED: "pruned",
        }
        is_complete = any(trial.state is _STATES.COMPLETE for trial in self._study.trials)
        best = self._study.best_trial if is_complete else None
        return StudyRecord(
            name=self._plan.name,
            tuner=f"optuna {optuna.__version__}",
            trials=tuple(
                TrialRecord(
                    number=trial.number,
                    configuration=self._chosen[trial.number],
                    metrics=tuple(self._metrics[trial.number]),
                    state=kinds.get(trial.state, "failed"),
                )
                for trial in self._study.trials
            ),
            best=None if best is None else best.number,
            best_metric=None if best is None else float(best.value),
        )


def run(experiment: Experiment, directory: Path, meeting: Meeting) -> bool:
    """Run all studies of an experiment side by side, from the start that the meeting announces.

    Returns whether all went well.
    """
    jobs: dict[str, dict[tuple[int, int], str]] = {study.name: {} for study in experiment.studies}
    for job in experiment.jobs:
        if job.trial is not None:
            jobs[job.trial.study][job.trial.number, job.trial.rung] = job.id
    tunings = {plan.name: Tuning(plan, jobs[plan.name], directory) for plan in experiment.studies}
    meeting.arrive(NAME)
    while (start := meeting.announced()) is None:
        time.sleep(POLL_SECONDS)
    failed = threading.Event()

    def tune(name: str, tuning: Tuning) -> None:
        try:
            write_whole(study_file(directory, name), tuning.run(start).model_dump_json(indent=1) + "\n")
        except (OSError, ValueError) as error:
            log.error("%s: %s", name, _one_line(error))
            failed.set()
        except Exception as error:
            log.exception("%s: fault: %r", name, error)
            failed.set()

    threads = [threading.Thread(target=tune, args=pair, daemon=True) for pair in tunings.items()]
    for thread in threads:
        thread.start()
    # One study that fails makes the whole arm worthless, so the lab must know at once.
    while any(thread.is_alive() for thread in threads) and not failed.is_set():
        time.sleep(POLL_SECONDS)
    return not failed.is_set()


def _one_line(error: Exception) -> str:
    """Return an error in one line, because the lab shows the last line of the tuner's log."""
    lines = [line.strip() for line in str(error).splitlines()]
    return "; ".join(line for line in lines if line and not line.startswith("For further information"))


def main() -> int:
    """Run the studies of an experiment. Returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m topologies.studies.tuner", description=__doc__)
    parser.add_argument("--experiment", type=Path, required=True, metavar="FILE", help="the experiment's file, JSON")
    parser.add_argument(
        "--dir", type=Path, required=True, help="the folder in which jobs are called and leave their results"
    )
    parser.add_argument(
        "--meet", type=Path, required=True, metavar="FOLDER", help="the folder in which the start is announced"
    )
    options = parser.parse_args()
    logging.basicConfig(level=logging.INFO, stream=sys.stderr, format="%(asctime)s tuner: %(levelname)s %(message)s")
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        experiment = Experiment.model_validate_json(options.experiment.read_bytes())
        went_well = run(experiment, options.dir, Meeting(options.meet))
    except (OSError, ValueError) as error:
        sys.stderr.write(f"{options.experiment}: {_one_line(error)}\n")
        return 1
    return 0 if went_well else 1


if __name__ == "__main__":
    sys.exit(main())
