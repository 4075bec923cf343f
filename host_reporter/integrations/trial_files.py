"""The progress files of a study's trials, as tuners need them: each trial is a job of its own, STUDY.TRIAL."""

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
"""Remove the file of a trial that ended this long ago; the agent has read it."""

log = logging.getLogger(__name__)


class TrialFiles:
    """Begins, finds and ends the trials of one study. For any thread; no method raises."""

    def __init__(self, study: str | None, directory: Folder = None, *, kept_seconds: float = KEPT_SECONDS) -> None:
        self._kept_seconds = kept_seconds
        name = job_name(study or os.environ.get(JOB_VARIABLE, ""))
        if name is None:
            log.warning("no trial is reported: give the study a name, or set %s", JOB_VARIABLE)
        self.study = name
        self._directory = directory
        self._trials: dict[str, ProgressFile] = {}
        self._ended: deque[tuple[float, str]] = deque()
        self._lock = threading.Lock()

    def begin(self, trial: str) -> ProgressFile | None:
        """A trial's file, anew if it is not there; None: nothing can be reported."""
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
            return ProgressFile(f"{self.study}.{name}", self._directory)
        except Exception as error:
            log.debug("trial %s is not reported: %s", name, error)
            return None

    def end(self, trial: str) -> None:
        """A trial is over."""
        with self._lock:
            file = self._trials.pop(trial, None)
        if file is not None:
            file.end()
            self._ended.append((time.monotonic(), file.path))

    def end_all(self) -> None:
        """The study is over."""
        for trial in list(self._trials):
            self.end(trial)

    def _tidy(self) -> None:
        while self._ended and time.monotonic() - self._ended[0][0] > self._kept_seconds:
            path = self._ended.popleft()[1]
            # Where it may not be removed, it stays.
            with contextlib.suppress(OSError, ValueError):
                os.unlink(path)  # noqa: PTH108 - as in the helper
