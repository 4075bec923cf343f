"""Which found jobs have a job file already. Pure but for the reader of pid files, which is handed in.

A job file wins where it has the job's id, or the same plain name and user, or covers one of its processes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path, PurePosixPath

from host_reporter.jobs.found.group import Group
from host_reporter.jobs.job import Job
from host_reporter.launchers.processes import Seen

_MOUNTS = "/sys/fs/cgroup"
_MOST_PARENTS = 64


class Covered:
    """What the jobs of files cover. ``pid_of`` returns the process that a pid file names; None: it names none."""

    def __init__(self, jobs: Iterable[Job], pid_of: Callable[[Path], int | None]) -> None:
        self._users: dict[str, str | None] = {}
        self._cgroups: set[str] = set()
        self._pids: set[int] = set()
        for job in jobs:
            self._users[job.id] = job.spec.user if job.spec is not None else None
            processes = job.processes
            if processes is None:
                continue
            if processes.cgroup is not None:
                self._cgroups.add(processes.cgroup.rstrip("/"))
            pid = pid_of(processes.pidfile) if processes.pidfile is not None else processes.pid
            if pid is not None:
                self._pids.add(pid)

    def has_id(self, job: str) -> bool:
        """Returns whether a file has this very id."""
        return job in self._users

    def covers(self, group: Group, user: str | None, parent_of: Callable[[int], int]) -> bool:
        """Returns whether a found job has a file. ``user``: whose job it is; ``parent_of`` tells a process's parent."""
        if group.id in self._users:
            return True
        for name in {group.sighting.name, group.told(lambda sighting: sighting.helper)} - {None}:
            if name in self._users and self._users[str(name)] in (None, user):
                return True
        return any(self._has_process(seen, parent_of) for seen in group.members)

    def _has_process(self, seen: Seen, parent_of: Callable[[int], int]) -> bool:
        if self._cgroups and any(self._has_cgroup(path) for path in seen.cgroups):
            return True
        pid = seen.process.pid if self._pids else 0
        for _ in range(_MOST_PARENTS):
            if pid in self._pids:
                return True
            if pid <= 1:
                return False
            pid = parent_of(pid)
        return False

    def _has_cgroup(self, path: str) -> bool:
        """Returns whether a cgroup is one of a file's, or below it. A file may name it by its folder."""
        above = [str(part) for part in (PurePosixPath(path), *PurePosixPath(path).parents) if str(part) != "/"]
        if not self._cgroups.isdisjoint(above):
            return True
        return any(name.startswith(_MOUNTS) and name.endswith(tuple(above)) for name in self._cgroups)
