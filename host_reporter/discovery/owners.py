"""Whose a socket is: by the cgroup that it was made in where the kernel tells it, else by who holds it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from host_reporter import procfs
from host_reporter.discovery import cgroups, pid_files, processes
from host_reporter.discovery.pid_files import Named, PidFileError
from host_reporter.discovery.processes import Held, Tree
from host_reporter.discovery.sockets.sock_diag import Socket
from host_reporter.discovery.sockets.table import Verdict
from host_reporter.discovery.written_at import Stamp, WrittenAt, is_younger, stamp_of
from host_reporter.jobs.job import JobProcesses
from host_reporter.notices import Notices
from host_reporter.procfs import Process

MAX_DESCRIPTORS = 50_000
"""One look reads at most so many descriptors of jobs' processes; the rest has its turn at the next look."""

NAMESPACE_SECONDS = 5.0
"""Look again after this time at the network namespace of a known process."""

_NO_STAMP: Stamp = (0, 0, 0, 0)


@dataclass
class _Job:
    """What is declared or was found of a job's processes, and what is there now.

    ``ids`` are those of its cgroups; ``tree`` is that of a job without a cgroup. ``brought``: sockets that its
    processes had opened before they were in its cgroup, by inode.
    """

    declared: JobProcesses
    group: cgroups.Cgroup | None = None
    ids: set[int] = field(default_factory=set)
    tree: Tree | None = None
    pids: frozenset[int] = frozenset()
    holds: dict[int, Held] = field(default_factory=dict)
    brought: set[int] = field(default_factory=set)


class Owners:
    """The jobs' processes and groups. ``look`` once before each look at sockets; no method raises. For one thread."""

    def __init__(self, notices: Notices, written: WrittenAt | None = None) -> None:
        self._notices = notices
        self._jobs: dict[str, _Job] = {}
        self._roots: frozenset[Process] = frozenset()
        self._mounted: tuple[cgroups.Hierarchy, ...] = ()
        self._by_group: dict[int, str] = {}
        self._foreign: set[int] = set()
        self._names_groups = True
        self._is_fresh = False
        self._turn = 0
        self._joined: dict[int, str] = {}
        """The sockets of processes that have come into a job's cgroup since the look before: inode to job."""
        self._namespaces: dict[int, tuple[int, float]] = {}
        self._written = written or WrittenAt()

    def set_jobs(self, declared: Mapping[str, JobProcesses]) -> None:
        """The jobs that are followed from now on."""
        for job in self._jobs.keys() - declared.keys():
            for what in ("processes", "fd"):
                self._notices.clear(f"{what} {job}")
        before, self._jobs = self._jobs, {}
        for name, place in declared.items():
            known = before.get(name)
            if known is None or not place.continues(known.declared):
                known = _Job(place)
            known.declared = place
            self._jobs[name] = known
        self._roots = frozenset[Process]().union(*(place.roots for place in declared.values()))
        self._foreign.clear()
        self._mounted = cgroups.hierarchies()

    def look(self) -> None:
        """See which processes and groups there are now."""
        self._is_fresh = False
        self._joined = {}
        for name, job in self._jobs.items():
            trouble = self._find(name, job)
            if trouble is None:
                self._notices.clear(f"processes {name}", f"job {name}: its processes are found")
            else:
                self._notices.say(f"processes {name}", f"job {name}: {trouble}")

    def group(self, job: str) -> cgroups.Cgroup | None:
        """A job's cgroup of the second version; None where it has none."""
        known = self._jobs.get(job)
        return known.group if known is not None and known.group is not None and known.group.id else None

    @property
    def joined(self) -> Collection[int]:
        """The sockets, by inode, of processes that have come into a job's cgroup since the look before."""
        return self._joined.keys()

    def brought(self, job: str) -> frozenset[int]:
        """Sockets, by inode, that no packet filter knows for the job's: made before their process was in its cgroup."""
        known = self._jobs.get(job)
        return frozenset(known.brought) if known is not None else frozenset()

    def judge(self, sockets: list[Socket]) -> Verdict:
        """Returns which jobs new sockets belong to."""
        if sockets and self._names_groups and not any(sock.cgroup for sock in sockets):
            self._without_groups()
        owners: dict[int, str] = {}
        rest: list[Socket] = []
        for sock in sockets:
            job = self._by_group.get(sock.cgroup) if sock.cgroup else None
            if job is None and sock.cgroup and sock.cgroup not in self._foreign:
                self._learn_groups()
                job = self._by_group.get(sock.cgroup)
                if job is None:
                    self._foreign.add(sock.cgroup)
            if job is not None:
                owners[sock.cookie] = job
            elif sock.inode in self._joined:
                owners[sock.cookie] = self._joined[sock.inode]
                self._jobs[self._joined[sock.inode]].brought.add(sock.inode)
            elif sock.inode:
                rest.append(sock)
        by_process = [(name, job) for name, job in self._jobs.items() if self._is_by_process(job)]
        if not by_process or not rest:
            return Verdict(owners)
        held, share = self._held(by_process, {sock.inode for sock in rest})
        owners |= {sock.cookie: held[sock.inode] for sock in rest if sock.inode in held}
        return Verdict(owners, frozenset(sock.cookie for sock in rest if sock.inode not in held), share)

    def holders(self, job: str, inodes: Iterable[int]) -> dict[int, Held]:
        """Returns where a job's processes hold these sockets, as far as the agent may look. Known places are kept."""
        known = self._jobs.get(job)
        if known is None:
            return {}
        wanted = set(inodes)
        known.holds = {inode: held for inode, held in known.holds.items() if inode in wanted}
        if wanted - known.holds.keys():
            known.holds |= {
                inode: held for inode, held in self._descriptors(job, known, MAX_DESCRIPTORS) if inode in wanted
            }
        return dict(known.holds)

    def namespaces(self, own: int, now: float) -> dict[int, int]:
        """Returns the network namespaces of jobs' processes without ``own``, each with a process in it."""
        by_inode: dict[int, int] = {}
        seen: dict[int, tuple[int, float]] = {}
        for job in self._jobs.values():
            for pid in job.pids:
                inode, checked = self._namespaces.get(pid, (0, 0.0))
                if not inode or now - checked > NAMESPACE_SECONDS:
                    inode, checked = processes.network_namespace(pid) or 0, now
                seen[pid] = (inode, checked)
                if inode not in (0, own):
                    by_inode.setdefault(inode, pid)
        self._namespaces = seen
        return by_inode

    # Inside --------------------------------------------------------------------------------------------------------

    def _find(self, name: str, job: _Job) -> str | None:
        """See which processes a job has. Returns what is wrong, if anything."""
        if job.declared.cgroup is not None:
            return self._find_group(name, job)
        return self._find_roots(job) if job.declared.roots else self._find_tree(job)

    def _find_roots(self, job: _Job) -> str | None:
        """See which processes descend from those that were found, without those of another found job among them."""
        if job.tree is None:
            job.tree = Tree()
        job.tree.grow(job.declared.roots)
        self._follow_tree(job, self._roots - job.declared.roots)
        return None

    def _find_group(self, own: str, job: _Job) -> str | None:
        name = str(job.declared.cgroup)
        if job.group is None or not _is_there(job.group):
            job.group, job.ids = cgroups.find(name, self._mounted), set()
            self._foreign.clear()
        if job.group is None:
            job.pids = frozenset()
            if not self._mounted:
                return "no cgroup hierarchy is mounted here; name the job's pid or pidfile instead"
            return f"there is no cgroup {name} now"
        before, job.pids = job.pids, frozenset(cgroups.pids(job.group))
        if not self._is_by_process(job):
            self._see_joined(own, job.pids - before)
        return None

    def _see_joined(self, own: str, pids: Iterable[int]) -> None:
        """What new processes of a job's cgroup hold: a socket is of the cgroup that it was made in."""
        for process in filter(None, map(procfs.identify, pids)):
            if len(self._joined) >= MAX_DESCRIPTORS:
                return
            # Without the right to look, what was made in the cgroup is found all the same.
            with contextlib.suppress(PermissionError):
                self._joined |= {inode: own for inode, _ in processes.sockets_of(process)}

    def _find_tree(self, job: _Job) -> str | None:
        try:
            named, written = self._named(job.declared)
        except PidFileError as error:
            self._follow_tree(job)
            return str(error)
        pid = named.pid
        if job.tree is None or all(root.pid != pid for root in job.tree.roots):
            root = procfs.identify(pid)
            if root is not None and (reason := _disbelief(job.declared, named, root, written)) is not None:
                self._follow_tree(job)
                return reason
            job.tree = Tree(root) if root is not None else None
        if self._follow_tree(job):
            return None
        if job.tree is not None and (other := procfs.identify(pid)) is not None:
            # A file may name the id again for a new process; an id that was written down is of the one that was meant.
            if job.declared.pidfile is not None and _disbelief(job.declared, named, other, written) is None:
                job.tree, job.pids = Tree(other), frozenset({pid})
                return None
            return f"its process {pid} has ended; the id is another process's now, which is left alone"
        return f"there is no process {pid}"

    def _named(self, declared: JobProcesses) -> tuple[Named, float]:
        """Returns the id that a job file declares, and when that was written, in seconds since the machine's start.

        Raises PidFileError.
        """
        if declared.pidfile is not None:
            named = pid_files.read(declared.pidfile)
            return named, self._written.note(declared.source, named.stamp)
        assert declared.pid is not None
        try:
            status = declared.source.stat()
        except OSError:
            # A job file that has gone a moment ago: what it named, it named.
            return Named(declared.pid, 0, _NO_STAMP), float("inf")
        stamp = stamp_of(status)
        # The folder of job files is the operator's, whoever's the file is.
        return Named(declared.pid, 0, stamp), self._written.note(declared.source, stamp)

    @staticmethod
    def _follow_tree(job: _Job, others: frozenset[Process] = frozenset()) -> bool:
        """See which processes there are, without ``others`` and theirs. Returns whether there is one."""
        alive = job.tree.look(others) if job.tree is not None else frozenset()
        job.pids = frozenset(process.pid for process in alive)
        return bool(alive)

    def _learn_groups(self) -> None:
        """Once a look: a new child of a job's group has an id that was not seen before."""
        if self._is_fresh:
            return
        self._is_fresh = True
        taken: dict[str, str] = {}
        self._by_group = {}
        # The innermost decides where one job's group is in another's.
        grouped = [(name, job) for name, job in self._jobs.items() if job.group is not None]
        for name, job in sorted(grouped, key=lambda item: (len(item[1].group.path if item[1].group else ""), item[0])):
            assert job.group is not None
            other = taken.setdefault(job.group.path, name)
            if other != name:
                self._notices.say(
                    f"processes {name}", f"job {name}: cgroup {job.group.path} is that of job {other} already"
                )
                continue
            job.ids = cgroups.ids(job.group)
            self._by_group |= dict.fromkeys(job.ids, name)

    def _without_groups(self) -> None:
        self._names_groups = False
        self._notices.say(
            "cgroup ids",
            "the kernel does not tell the cgroup of a socket: jobs' sockets are found by the files that their "
            "processes have open, which costs more",
        )

    def _is_by_process(self, job: _Job) -> bool:
        return job.declared.cgroup is None or not self._names_groups or (job.group is not None and not job.group.id)

    def _held(self, by_process: list[tuple[str, _Job]], wanted: set[int]) -> tuple[dict[int, str], float]:
        """Returns the job that holds each of these inodes, and the share of the jobs that were looked at."""
        owner_of: dict[int, str] = {}
        left = MAX_DESCRIPTORS
        count = len(by_process)
        start = self._turn % count
        for i in range(count):
            if left <= 0 or wanted <= owner_of.keys():
                self._turn = (start + i) % count
                return owner_of, i / count
            name, job = by_process[(start + i) % count]
            before = left
            for inode, held in self._descriptors(name, job, before):
                left -= 1
                if inode in wanted and inode not in owner_of:
                    owner_of[inode] = name
                    job.holds[inode] = held
        return owner_of, 1.0

    def _descriptors(self, name: str, job: _Job, most: int) -> Iterable[tuple[int, Held]]:
        count = 0
        refused: Process | None = None
        for pid in sorted(job.pids):
            process = procfs.identify(pid)
            if process is None:
                continue
            try:
                for inode, held in processes.sockets_of(process):
                    count += 1
                    yield inode, held
                    if count >= most:
                        return
            except PermissionError:
                refused = process
        if refused is not None:
            reason = f"what process {refused.pid} has open may not be looked at; the agent needs CAP_SYS_PTRACE"
            self._notices.say(f"fd {name}", f"job {name}: {reason}")
        else:
            self._notices.clear(f"fd {name}")


def _is_there(group: cgroups.Cgroup) -> bool:
    """Returns whether it still is the same group: another may have been made in its place."""
    try:
        inode = os.stat(group.folder).st_ino  # noqa: PTH116 - pathlib costs as much again, and this is done every second
    except OSError:
        return False
    return not group.id or inode == group.id


def _disbelief(declared: JobProcesses, named: Named, process: Process, written: float) -> str | None:
    """Why the process that has the id now is not the one that is meant, or may not be; None: it is."""
    if is_younger(process, written):
        return (
            f"process {process.pid} has begun after {declared.source} was written: it is another process; if it is the "
            "job's all the same, because the clock was set meanwhile, write the file anew"
        )
    return pid_files.distrust(declared.pidfile, named) if declared.pidfile is not None else None
