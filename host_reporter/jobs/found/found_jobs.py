"""The jobs that are found on this host: which began, changed or ended since the last look."""

from __future__ import annotations

import logging
import pwd
import re
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from pathlib import Path

from controller.wire import NAME_PATTERN
from host_reporter.jobs.found.covered import Covered
from host_reporter.jobs.found.group import Group, groups_of
from host_reporter.jobs.found.job import FoundJob, Reader
from host_reporter.jobs.found.launch_state import LaunchState, part_of
from host_reporter.jobs.found.output import Outputs
from host_reporter.jobs.found.search import OutputSearch
from host_reporter.jobs.job import Job, JobFound, JobGone
from host_reporter.jobs.naming import user_name
from host_reporter.launchers.processes import Processes
from host_reporter.notices import Notices
from host_reporter.procfs import began_at

BEGIN_SECONDS = 1.0
"""Report a job whose processes have lasted this long, so that ``srun hostname`` is none."""

RESTART_SECONDS = 30.0
"""Wait this long for a launcher that starts a job's processes again."""

UPDATE_SECONDS = 2.0
"""Report a change of a job at most this often: its ranks begin and end one after the other."""

SETTLED_LOOKS = 2
"""After so many looks the jobs of the processes are known that were there at the first one."""

MAX_JOBS, MAX_JOBS_OF_USER = 512, 128
"""Follow at most so many found jobs, and so many of one user, because any user may begin some."""

log = logging.getLogger(__name__)
_NAME = re.compile(NAME_PATTERN)


class FoundJobs:
    """Looks for jobs. ``scan`` never raises.

    ``read`` makes the source of a job's output, and ``pid_of`` reads a pid file that a job file names.
    """

    def __init__(
        self,
        processes: Processes,
        outputs: Outputs,
        notices: Notices,
        *,
        read: Reader,
        pid_of: Callable[[Path], int | None],
        begin_seconds: float = BEGIN_SECONDS,
        restart_seconds: float = RESTART_SECONDS,
    ) -> None:
        self._processes = processes
        self._search = OutputSearch(outputs, notices)
        self._notices = notices
        self._read = read
        self._pid_of = pid_of
        self._begin_seconds = begin_seconds
        self._restart_seconds = restart_seconds
        self._states: dict[str, LaunchState] = {}
        self._version = -1
        self._groups: dict[str, Group] = {}
        self._covered: frozenset[str] = frozenset()
        self._files: tuple[Job, ...] = ()
        self._looks = 0
        self.is_settled = False
        """Whether all jobs are known whose processes were there when the agent began."""

    @property
    def claimed(self) -> set[str]:
        """The names of the helper's files that belong to found jobs, without their suffix."""
        locations = (state.location for state in self._states.values())
        return {place.path.name.removesuffix(".jsonl") for place in locations if place is not None}

    def scan(self, now: float, wall: float, files: Iterable[Job]) -> Iterator[JobFound | JobGone]:
        """Yields what has changed. ``files`` are the jobs of job files, which win.

        ``now`` is of a monotonic clock, ``wall`` in seconds since the epoch.
        """
        self._looks += 1
        try:
            self._processes.look()
        except OSError as error:
            self._notices.say("found jobs", f"jobs are not found: /proc cannot be read: {error.strerror}")
            return
        self._regroup(tuple(files))
        self._search.begin_look(self._groups, self._files, wall)
        for job, group in self._groups.items():
            if job in self._covered:
                yield from self._leave(job, tuple(files))
            elif (state := self._state(job, group, now)) is not None:
                yield from self._report(state, now, wall)
        for job in self._states.keys() - self._groups.keys():
            state = self._states[job]
            if now - state.last_seen >= (self._restart_seconds if state.group.may_restart else 0.0):
                yield from self._end(job)
        self.is_settled |= self._looks > SETTLED_LOOKS and self._processes.is_complete and self._are_told()

    def _are_told(self) -> bool:
        """Returns whether all jobs that are there were reported, as far as they are."""
        return all(state.told is not None or job in self._covered for job, state in self._states.items())

    def _regroup(self, files: tuple[Job, ...]) -> None:
        """Group the processes anew where any has come or gone, or a job file has."""
        if self._processes.version == self._version and files == self._files:
            return
        self._version, self._files = self._processes.version, files
        before, groups = self._groups, groups_of(self._processes.seen.values(), _unix_name)
        # A job that is as it was keeps its object, so that it is not gone through again.
        self._groups = {job: old if (old := before.get(job)) == group else group for job, group in groups.items()}
        covered = Covered(files, self._pid_of)
        parent_of = self._processes.parent_of
        self._covered = frozenset(
            job for job, group in self._groups.items() if covered.covers(group, _user_of(group), parent_of)
        )

    def _state(self, job: str, group: Group, now: float) -> LaunchState | None:
        """Returns what is remembered of a job; None: there are too many."""
        state = self._states.get(job)
        if state is None:
            if not self._has_room(job, group):
                return None
            state = self._states[job] = LaunchState(group, now, now)
            state.update(group, now)
        if state.group is not group:
            state.update(group, now)
        state.last_seen = now
        return state

    def _has_room(self, job: str, group: Group) -> bool:
        if not _NAME.fullmatch(job):
            return False
        same_user = sum(state.group.user == group.user for state in self._states.values())
        is_full = len(self._states) >= MAX_JOBS or same_user >= MAX_JOBS_OF_USER
        if is_full:
            self._notices.say(
                f"found jobs of {group.user}",
                f"user {_user_of(group) or 'root'} has more than {MAX_JOBS_OF_USER} jobs here, or there are more than "
                f"{MAX_JOBS} in all: the others are not followed",
            )
        return not is_full

    def _report(self, state: LaunchState, now: float, wall: float) -> Iterator[JobFound]:
        if now - state.since < self._begin_seconds:
            return
        self._search.look(state, now)
        if not state.is_news or (state.told is not None and now - state.told_at < UPDATE_SECONDS):
            return
        state.is_news = False
        arrival = state.told.spec.arrival if state.told is not None else None
        if arrival is None:
            arrival = began_at(state.group.members[0].process, wall)
        part = part_of(state, _user_of(state.group), arrival)
        job = FoundJob(state.group.id, part, state.group.processes, state.location, self._read)
        if job != state.told:
            if state.told is None:
                log.info("job %s: found, started by %s", job.id, part.launcher)
            state.told, state.told_at = job, now
            yield JobFound(job)

    def _leave(self, job: str, files: tuple[Job, ...]) -> Iterator[JobGone]:
        """Leave a job to its job file. One with the same id goes on by that."""
        state = self._states.pop(job, None)
        if state is not None:
            self._search.forget(job)
            if state.told is not None and all(file.id != job for file in files):
                yield JobGone(job)

    def _end(self, job: str) -> Iterator[JobGone]:
        state = self._states.pop(job)
        self._search.forget(job)
        if state.told is not None:
            yield JobGone(job)


def _user_of(group: Group) -> str | None:
    """Returns whose job it is: a namespace, or a Unix user."""
    return group.sighting.user or user_name(group.user)


@lru_cache(maxsize=1024)
def _unix_name(user: int) -> str | None:
    try:
        return pwd.getpwuid(user).pw_name
    except KeyError:  # such as a container's user, which this host does not know
        return None
