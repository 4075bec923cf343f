"""What finds jobs on this machine, looked at step by step; only the jobs of the test count."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from evaluation.bench.support.waiting import wait_until
from host_reporter.jobs.found.found_jobs import FoundJobs
from host_reporter.jobs.found.job import FoundJob
from host_reporter.jobs.found.output import Outputs
from host_reporter.jobs.job import Job, JobFound
from host_reporter.launchers.pods import Pods
from host_reporter.launchers.processes import Processes
from host_reporter.launchers.registry import choose
from host_reporter.notices import Notices
from host_reporter.readers.auto import auto_source


class Finding:
    """``jobs`` are those that were found, by id. ``skip`` seconds pass for the jobs alone, not for the machine."""

    def __init__(self, folder: Path, host: str = "h1", **options: Any) -> None:
        self.progress = folder / "progress"
        self.progress.mkdir()
        self.progress.chmod(0o1777)
        self.pods = folder / "pods"
        self.docker = folder / "docker"
        notices = Notices(logging.getLogger("test"))
        self.processes = Processes(choose(None), host, notices, Pods(self.pods))
        self.outputs = Outputs(self.progress, self.processes, docker=self.docker, containers=folder / "containers")
        self.found = FoundJobs(
            self.processes, self.outputs, notices, read=auto_source, pid_of=lambda _: None, begin_seconds=0.0, **options
        )
        self.jobs: dict[str, FoundJob] = {}
        self.events: list[tuple[str, str]] = []
        self._skipped = 0.0

    def look(self, *files: Job, skip: float = 0.0) -> None:
        self._skipped += skip
        for change in self.found.scan(time.monotonic() + self._skipped, time.time(), files):
            if isinstance(change, JobFound):
                assert isinstance(change.job, FoundJob)
                self.jobs[change.job.id] = change.job
                self.events.append(("found", change.job.id))
            else:
                del self.jobs[change.job_id]
                self.events.append(("gone", change.job_id))

    def wait(self, condition: Callable[[], Any], *files: Job, skip: float = 3.0, what: str = "") -> None:
        """Look until something is so. Each look is ``skip`` seconds after the one before for the jobs."""

        def holds() -> Any:
            self.look(*files, skip=skip)
            return condition()

        wait_until(holds, 60, what=what or "it is found")

    def of(self, names: Iterable[str]) -> set[str]:
        """Returns the ids of found jobs that contain one of the names."""
        return {job for job in self.jobs if any(name in job for name in names)}
