"""Writes the files of a job's rank 0: the job file for the host's agent, an ordinary training log, and the result."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import TextIO

from host_reporter.training.progress_file import ProgressFile
from simulator.workloads import curves
from topologies.experiments.experiment import JobPlan
from topologies.trainer.calls import Call
from topologies.trainer.results import JobResult, Point, done_file, write_whole
from topologies.trainer.specs import job_spec

PATTERN = r"iteration (?P<iteration>\d+) accuracy (?P<metric>\S+)"
"""The job file gives this pattern to the agent, which finds progress in the log with it."""


class JobRecorder:
    """Records one job.

    A job of a study reports its progress as the trial of a tuner does: through a progress file, with its stage.
    """

    def __init__(self, job: JobPlan, *, iterations: int, curve: Sequence[float], directory: Path) -> None:
        self._job = job
        self._iterations = iterations
        self._curve = curve
        self._directory = directory.resolve()
        # Where a job fails before its arrival is known, its times count from now.
        self.expect(time.monotonic(), time.time())
        self._history: list[Point] = []
        self._log: TextIO | None = None
        self._curve_name = job.curve if isinstance(job.curve, str) else ""
        self._call: Call | None = None
        self._progress: ProgressFile | None = None

    @property
    def job_file(self) -> Path:
        """The job file that the agent on rank 0's host looks for."""
        return self._directory / "jobs.d" / self._job.hosts[0] / f"{self._job.id}.json"

    def expect(self, arrival: float, epoch: float) -> None:
        """Note the job's arrival: ``arrival`` by the monotonic clock, ``epoch`` in seconds since the epoch."""
        self._arrival = arrival
        self._epoch = epoch

    def called(self, call: Call) -> None:
        """Note the call of the study's tuner. Raises curves.CurveError."""
        run = curves.replay(curves.load(call.curve), call.total)
        self._curve = run[call.begin : call.begin + self._iterations]
        self._curve_name = call.curve
        self._call = call

    def begin(self) -> None:
        """Open the log of a job that has arrived, and write its job file. Raises OSError."""
        log = self._directory / "logs" / f"{self._job.id}.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        done_file(self._directory, self._job.id).unlink(missing_ok=True)
        self._log = log.open("w", buffering=1)
        self._log_line(f"training {self._job.model} on {len(self._job.hosts)} hosts ({self._job.architecture})")
        document = {
            "id": self._job.id,
            "spec": job_spec(self._job, self._epoch).model_dump(mode="json", exclude_none=True),
        }
        if self._job.trial is None:
            document["progress"] = {"log": str(log), "pattern": PATTERN}
        else:
            document["study"] = self._job.trial.study
            self._report_stage()
        write_whole(self.job_file, json.dumps(document, indent=1) + "\n")

    def finished(self, iteration: int) -> None:
        """Record that all hosts have done ``iteration`` (from 1). Raises OSError."""
        metric = self._curve[iteration - 1]
        self._history.append((time.monotonic() - self._arrival, iteration, metric))
        self._log_line(f"iteration {iteration} accuracy {metric!r}")
        if self._progress is not None:
            self._progress.report(iteration=iteration, metric=metric)

    def end(self, failed: str | None) -> JobResult:
        """Remove the job file, close the log, write the result and return it. Raises OSError."""
        done = len(self._history)
        result = JobResult(
            id=self._job.id,
            architecture=self._job.architecture,
            model=self._job.model,
            curve=self._curve_name,
            iterations=self._job.iterations,
            arrival_epoch=self._epoch,
            history=tuple(self._history),
            jct=self._history[-1][0] if done == self._job.iterations else None,
            censored=done < self._iterations,
            capped=self._iterations < self._job.iterations,
            failed=failed,
            ended=time.monotonic() - self._arrival,
        )
        if self._progress is not None:
            self._progress.end()
        self.job_file.unlink(missing_ok=True)
        if self._log is not None:
            self._log_line(
                f"ended after {done} of {self._job.iterations} iterations" + (f": {failed}" if failed else "")
            )
            self._log.close()
        write_whole(done_file(self._directory, self._job.id), result.model_dump_json() + "\n")
        return result

    def _report_stage(self) -> None:
        """Write the stage before the job file, so that the agent registers the job with its stage. Raises OSError."""
        assert self._call is not None
        folder = self._directory / "progress" / self._job.hosts[0]
        folder.mkdir(parents=True, exist_ok=True)
        self._progress = ProgressFile(self._job.id, folder)
        call = self._call
        self._progress.stage(call.stage, until=self._job.iterations, rungs_left=call.rungs_left)
        self._progress.flush()

    def _log_line(self, text: str) -> None:
        assert self._log is not None
        # Each line is one write, so that a reader hardly ever sees half a line.
        now = datetime.now()
        self._log.write(f"{now:%Y-%m-%d %H:%M:%S},{now.microsecond // 1000:03d} INFO {text}\n")
