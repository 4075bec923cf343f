"""Which jobs' sockets are marked now, and which are cleared of what others left on them."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Set
from functools import partial
from typing import NamedTuple

from controller.code_points import CodePoints
from host_reporter.discovery.owners import Owners
from host_reporter.discovery.sockets.marks import SocketMarks
from host_reporter.discovery.sockets.namespaces import Namespaces
from host_reporter.discovery.sockets.sock_diag import LISTEN, Socket
from host_reporter.discovery.sockets.table import UNDECIDED_LOOKS, SocketTable
from host_reporter.ip_addresses import is_ipv4
from host_reporter.notices import Notices

CLEARED_LOOKS = UNDECIDED_LOOKS
"""At the first so many looks at a job, remove from its sockets what a killed agent has left or what they inherited."""


class JobsToMark(NamedTuple):
    """The jobs of which no packet filter marks any packets, and those of which none marks packets of IPv6."""

    all: frozenset[str] = frozenset()
    over_ipv6: frozenset[str] = frozenset()

    def has(self, job: str, sock: Socket) -> bool:
        """Returns whether a job's socket is to be marked itself."""
        return job in self.all or (job in self.over_ipv6 and not is_ipv4(sock.local))

    def __bool__(self) -> bool:
        return bool(self.all or self.over_ipv6)


class JobMarks:
    """Marks the jobs' sockets in ``own``, the agent's network namespace, and in the other ``namespaces``.

    ``is_clearing`` of False: no socket is touched that is not marked here. For one thread.
    """

    def __init__(
        self, owners: Owners, own: SocketTable, namespaces: Namespaces, notices: Notices, *, is_clearing: bool
    ) -> None:
        self._owners = owners
        self._own = own
        self._namespaces = namespaces
        self._notices = notices
        self._is_clearing = is_clearing
        self._marks = SocketMarks()
        self._uncleared: dict[str, int] = {}
        """By job, how many more looks remove what others left on its sockets."""

    @property
    def points(self) -> CodePoints:
        """The DSCPs of the classes."""
        return self._marks.points

    def set_points(self, points: CodePoints, jobs: Iterable[str]) -> None:
        """Classes have these DSCPs from now on; what ``jobs`` have got from others is looked at anew."""
        if points != self._marks.points:
            self._marks.points = points
            self._uncleared = dict.fromkeys(jobs, CLEARED_LOOKS)

    def begin(self, job: str) -> None:
        """Note a job that is looked for from now on."""
        self._uncleared[job] = CLEARED_LOOKS

    def release(self) -> None:
        """Take all marks away."""
        for job in self._marks.jobs:
            self._marks.unmark(job)

    def mark(self, wanted: Mapping[str, int], everywhere: JobsToMark, jobs: Set[str]) -> None:
        """Mark sockets of ``jobs``, and give back those of jobs that are not to be marked any more.

        Those of the agent's own namespace are marked of the jobs of ``everywhere`` alone.
        """
        for job in self._marks.jobs - (wanted.keys() & jobs):
            self._marks.unmark(job)
            self._uncleared[job] = CLEARED_LOOKS
            self._notices.clear(f"marks {job}")
        elsewhere = self._namespaces.tables()
        if not wanted or not (everywhere or elsewhere or self._marks.jobs):
            return
        by_job: dict[str, list[Socket]] = {}
        for table in elsewhere:
            for job, sockets in table.by_job().items():
                by_job.setdefault(job, []).extend(sock for sock in sockets if sock.state != LISTEN)
        if everywhere:
            for job, sockets in self._own.by_job().items():
                by_job.setdefault(job, []).extend(sock for sock in sockets if everywhere.has(job, sock))
        for job in wanted.keys() & (by_job.keys() | self._marks.jobs):
            self._marks.mark(job, wanted[job], by_job.get(job, []), partial(self._owners.holders, job))
            trouble = self._marks.trouble.get(job)
            if trouble is not None:
                self._notices.say(f"marks {job}", f"job {job}: {trouble}")
            else:
                self._notices.clear(f"marks {job}", f"job {job}: its sockets are marked")

    def clear(self, jobs: Container[str]) -> None:
        """Take classes from jobs' sockets that nobody marks now: set by an agent before this one, or inherited."""
        if not self._uncleared:
            return
        by_job: dict[str, list[Socket]] = {}
        for table in (self._own, *self._namespaces.tables()) if self._is_clearing else ():
            for job, sockets in table.by_job().items():
                by_job.setdefault(job, []).extend(sockets)
        for job in self._uncleared.keys() & by_job.keys():
            self._marks.clear(by_job[job], partial(self._owners.holders, job))
        self._uncleared = {job: looks - 1 for job, looks in self._uncleared.items() if looks > 1 and job in jobs}
