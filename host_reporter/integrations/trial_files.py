"""The progress files of a study's trials. For the agent each trial is a job with the name STUDY.TRIAL."""

from __future__ import annotations

import contextlib
import logging
import os
import threading
import time
from collections import deque

from host_reporter.integrations.meter import Folder
from host_reporter.training.launch import JOB_VARIABLE, job_name
from host_reporter.training.progress_file import ProgressFile

KEPT_SECONDS = 600.0
"""Remove the file of a trial this many seconds after its end; the agent has read it by then."""

log = logging.getLogger(__name__)


class TrialFiles:
    """Opens and closes the files of one study's trials. Any thread may call it, and no method raises.

    ``target``: the value of the metric that counts as done in each trial; None: what the study's job file says.
    """

    def __init__(
        self,
        study: str | None,
        directory: Folder = None,
        *,
        target: float | None = None,
        kept_seconds: float = KEPT_SECONDS,
    ) -> None:
        self._kept_seconds = kept_seconds
        self._target = target
        name = job_name(study or os.environ.get(JOB_VARIABLE, ""))
        if name is None:
            log.warning("no trial is reported: give the study a name, or set %s", JOB_VARIABLE)
        self.study = name
        self._directory = directory
        self._trials: dict[str, ProgressFile] = {}
        self._ended: deque[tuple[float, str]] = deque()
        self._lock = threading.Lock()

    def begin(self, trial: str) -> ProgressFile | None:
        """Returns the file of a trial, which is created if needed; None where the trial cannot be reported."""
        name = (job_name(trial) or "").replace(".", "-")
        if self.study is None or not name:
            return None
        with self._lock:
            file = self._trials.get(trial)
            if file is None:
                self._tidy()
                file = self._new_file(name)
                if file is not None:
                    self._trials[trial] = file
        return file

    def _new_file(self, name: str) -> ProgressFile | None:
        try:
            file = ProgressFile(f"{self.study}.{name}", self._directory, every_rank=True)
            if self._target is not None:
                file.target(self._target)
            return file
        except Exception as error:
            log.debug("trial %s is not reported: %s", name, error)
            return None

    def end(self, trial: str) -> None:
        """Report the end of a trial."""
        with self._lock:
            file = self._trials.pop(trial, None)
        if file is not None:
            file.end()
            self._ended.append((time.monotonic(), file.path))

    def end_all(self) -> None:
        """Report the end of all trials."""
        for trial in list(self._trials):
            self.end(trial)

    def _tidy(self) -> None:
        while self._ended and time.monotonic() - self._ended[0][0] > self._kept_seconds:
            path = self._ended.popleft()[1]
            # A file that this process may not remove stays.
            with contextlib.suppress(OSError, ValueError):
                os.unlink(path)  # noqa: PTH108 - the two-line helper uses os too
