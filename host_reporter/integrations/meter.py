"""What the callbacks of all frameworks share: the choice of the rank that reports, and the rate of its reports."""

from __future__ import annotations

import logging
import math
import os
import time
from collections.abc import Callable
from typing import SupportsFloat

from host_reporter.training.launch import find
from host_reporter.training.progress_file import ProgressFile, Silent, progress

STEP_SECONDS = 0.1
"""Report iterations without a metric at most this often, because the agent itself reports only every few seconds."""

log = logging.getLogger(__name__)
Folder = str | bytes | os.PathLike[str] | None


class Meter:
    """Reports the progress of one job from rank 0; in other processes it does nothing. No method raises.

    Where ``job`` is None, the environment names the job. A copy in another process is a new meter. Where ``reports`` is
    False, this process does not report. ``target`` is the value of the metric that the user calls done. Where it is
    None, the job file may say it.
    """

    def __init__(
        self,
        job: str | None = None,
        directory: Folder = None,
        *,
        target: SupportsFloat | None = None,
        reports: bool = True,
    ) -> None:
        self._arguments = (job, directory, target)
        launch = find(os.environ)
        self.reports = reports and launch.rank == 0
        self._may_restart = launch.may_restart
        self._file: ProgressFile = progress(job, directory) if self.reports else Silent()
        self._due = 0.0
        self._unreported: float | None = None
        self._target = self._undeclared = target

    def __reduce__(self) -> tuple[Callable[..., Meter], tuple[str | None, Folder, SupportsFloat | None]]:
        return (_anew, self._arguments)

    def step(self, iteration: float, loss: SupportsFloat | None = None) -> None:
        """Report that ``iteration`` iterations are done.

        A ``loss`` that is no finite number says that the job has diverged. The loss is looked at only where the
        iteration is reported, and it may still be computed.
        """
        now = time.monotonic()
        if now < self._due:
            self._unreported = iteration
            return
        self._due, self._unreported = now + STEP_SECONDS, None
        self._declare()
        self._file.report_soon(iteration, None, seen_loss=loss)

    def measured(self, iteration: float, metric: SupportsFloat | None) -> None:
        """Report that ``iteration`` iterations are done, and the metric now."""
        self._unreported = None
        self._declare()
        self._file.report_soon(iteration, metric)

    def seen(self, loss: SupportsFloat | None) -> None:
        """Report that the job has diverged if a loss, which is not the metric, is no finite number."""
        try:
            if loss is not None and not math.isfinite(float(loss)):
                self._file.diverged()
        except Exception as error:
            log.debug("a loss is not looked at: %s", error)

    def end(self, *, failed: bool = False) -> None:
        """Report the end of the training. After a failure the job goes on if its launcher may start it again."""
        if self._unreported is not None:
            self._file.report(iteration=self._unreported)
            self._unreported = None
        if failed and self._may_restart:
            self._file.flush()
        else:
            self._file.end()
        # Each run declares its own target.
        self._undeclared = self._target

    def _declare(self) -> None:
        """Write the target before the first report of a run."""
        if self._undeclared is not None:
            self._file.target(self._undeclared)
            self._undeclared = None


def _anew(job: str | None, directory: Folder, target: SupportsFloat | None) -> Meter:
    return Meter(job, directory, target=target)
