"""What is followed, whatever it came from: a job file, a trial of a study, or processes that a launcher has started."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from controller.wire import JobSpec
from controller.wire.parts import PartSpec
from host_reporter.procfs import Process
from host_reporter.readers.log_source import ProgressSource

Spec = JobSpec | PartSpec
"""What is registered: a whole job, or what this host knows of one."""


@dataclass(frozen=True)
class JobProcesses:
    """The processes of a job on this host: those of a cgroup, or processes and their descendants.

    ``pid`` stands in the file ``source``, or is what that file holds (``pidfile``). ``roots`` were found.
    """

    source: Path
    cgroup: str | None = None
    pid: int | None = None
    pidfile: Path | None = None
    roots: frozenset[Process] = frozenset()

    def continues(self, before: JobProcesses | None) -> bool:
        """Returns whether the job is where it was. Processes that were found may come and go."""
        return before is not None and (self == before or bool(self.roots and before.roots))


class Job(Protocol):
    """A job to follow."""

    @property
    def id(self) -> str:
        """The name of the job."""

    @property
    def spec(self) -> Spec | None:
        """What is registered; None: somebody else registers the job."""

    @property
    def study(self) -> str | None:
        """The study whose stages the progress names; None: the job is of no study."""

    @property
    def processes(self) -> JobProcesses | None:
        """Where its processes are; None: it is not known."""

    @property
    def is_running(self) -> bool:
        """Whether its processes are there, whatever its progress says of an end."""

    @property
    def followed(self) -> Path | None:
        """The file or folder of its progress; None: it has no progress on this host."""

    @property
    def progress_key(self) -> Hashable:
        """What tells where its progress is read: with the same one, what was read goes on."""

    def source(self) -> ProgressSource:
        """Returns its progress, from the beginning."""


@dataclass(frozen=True)
class JobFound:
    """A job has begun to be there, or it is described otherwise now."""

    job: Job


@dataclass(frozen=True)
class JobGone:
    """A job is not there any more."""

    job_id: str
