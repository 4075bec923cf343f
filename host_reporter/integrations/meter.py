"""What the callbacks of all frameworks share: which rank speaks, and how often."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import SupportsFloat

from host_reporter.training.launch import find
from host_reporter.training.progress_file import ProgressFile, Silent, progress

STEP_SECONDS = 0.1
"""Report iterations without a metric at most this often; the agent reports them once in seconds."""

Folder = str | bytes | os.PathLike[str] | None


class Meter:
    """Tells the progress of one job from the process that speaks for it; elsewhere it does nothing. No method raises.

    ``job`` of None: that of the environment. Made where it is used: a copy in another process begins anew.
    """

    def __init__(self, job: str | None = None, directory: Folder = None, *, speaks: bool = True) -> None:
        self._arguments = (job, directory)
        launch = find(os.environ)
        self.speaks = speaks and launch.rank == 0
        self._may_restart = launch.may_restart
        self._file: ProgressFile = progress(job, directory) if self.speaks else Silent()
        self._due = 0.0
        self._untold: float | None = None

    def __reduce__(self) -> tuple[Callable[..., Meter], tuple[str | None, Folder]]:
        return (Meter, self._arguments)

    def step(self, iteration: float) -> None:
        """So many iterations are done."""
        now = time.monotonic()
        if now < self._due:
            self._untold = iteration
            return
        self._due, self._untold = now + STEP_SECONDS, None
        self._file.report(iteration=iteration)

    def measured(self, iteration: float, metric: SupportsFloat | None) -> None:
        """So many iterations are done, and this is the metric now."""
        self._untold = None
        self._file.report_soon(iteration, metric)

    def end(self, *, failed: bool = False) -> None:
        """The training is over; after a fault it may be started again by who launched it, and then is not."""
        if self._untold is not None:
            self._file.report(iteration=self._untold)
            self._untold = None
        if failed and self._may_restart:
            self._file.flush()
        else:
            self._file.end()
