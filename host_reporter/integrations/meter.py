"""What the callbacks of all frameworks share: the choice of the rank that reports, and the rate of its reports."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import SupportsFloat

from host_reporter.training.launch import find
from host_reporter.training.progress_file import ProgressFile, Silent, progress

STEP_SECONDS = 0.1
"""Report iterations without a metric at most this often, because the agent itself reports only every few seconds."""

Folder = str | bytes | os.PathLike[str] | None


class Meter:
    """Reports the progress of one job from rank 0; in other processes it does nothing. No method raises.

    Where ``job`` is None, the environment names the job. A copy in another process is a new meter. Where ``reports`` is
    False, this process does not report.
    """

    def __init__(self, job: str | None = None, directory: Folder = None, *, reports: bool = True) -> None:
        self._arguments = (job, directory)
        launch = find(os.environ)
        self.reports = reports and launch.rank == 0
        self._may_restart = launch.may_restart
        self._file: ProgressFile = progress(job, directory) if self.reports else Silent()
        self._due = 0.0
        self._unreported: float | None = None

    def __reduce__(self) -> tuple[Callable[..., Meter], tuple[str | None, Folder]]:
        return (Meter, self._arguments)

    def step(self, iteration: float) -> None:
        """Report that ``iteration`` iterations are done."""
        now = time.monotonic()
        if now < self._due:
            self._unreported = iteration
            return
        self._due, self._unreported = now + STEP_SECONDS, None
        self._file.report(iteration=iteration)

    def measured(self, iteration: float, metric: SupportsFloat | None) -> None:
        """Report that ``iteration`` iterations are done, and the metric now."""
        self._unreported = None
        self._file.report_soon(iteration, metric)

    def end(self, *, failed: bool = False) -> None:
        """Report the end of the training. After a failure the job goes on if its launcher may start it again."""
        if self._unreported is not None:
            self._file.report(iteration=self._unreported)
            self._unreported = None
        if failed and self._may_restart:
            self._file.flush()
        else:
            self._file.end()
