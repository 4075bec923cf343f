"""A thread that looks at the jobs' processes and sockets once a period, and hands on what has changed.

The sender gets what is to be reported, and the enforcement where the jobs' packets come from. What no packet filter can
mark is marked here, on the sockets themselves.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol

from controller.code_points import CodePoints
from host_reporter.discovery.cgroups import CgroupId
from host_reporter.discovery.owners import Owners
from host_reporter.discovery.packet_sources import PacketSources
from host_reporter.discovery.processes import network_namespace
from host_reporter.discovery.reports import BYTES_SECONDS, Receiver, Reports
from host_reporter.discovery.sockets.job_links import JobLinks, pods
from host_reporter.discovery.sockets.job_marks import JobMarks, JobsToMark
from host_reporter.discovery.sockets.links import Link, Uses
from host_reporter.discovery.sockets.namespaces import Namespaces
from host_reporter.discovery.sockets.netlink import Diag, Looked
from host_reporter.discovery.sockets.sock_diag import LISTEN, DiagError
from host_reporter.discovery.sockets.table import Ends, SocketTable, Traffic
from host_reporter.discovery.traffic_report import FoundTraffic
from host_reporter.ip_addresses import packed
from host_reporter.jobs.job import JobProcesses
from host_reporter.notices import Notices
from host_reporter.worker import Worker

LOOK_SECONDS = 1.0
"""Look this often: a new connection is found within this time, and reported at once."""

GAP_SECONDS = 0.2
"""Wait at least this long between two looks."""

STOP_SECONDS = 5.0

_ENDED = "connections that ended: bytes of short ones may be missing from jobs' measured demand"


class Addresses(Protocol):
    """Knows the hosts' addresses; see ``uplink.peers.PeerBook``."""

    @property
    def addresses(self) -> Mapping[str, str] | None:
        """Hosts by address; None: not known yet."""

    @property
    def interfaces(self) -> Mapping[str, str]:
        """The interfaces of hosts that have several, by address."""

    def start(self) -> None:
        """They are needed from now on."""


class SocketWatcher(Protocol):
    """Is shown all sockets of each look, in the thread of the discovery; see ``unseen.observer.Observer``."""

    def looking(self) -> None:
        """The TCP sockets will be listed now."""

    def looked(self, namespaces: Sequence[Looked], *, is_whole: bool) -> None:
        """All TCP sockets were listed, by network namespace. ``is_whole`` of False: some of them are not known."""

    def idle(self) -> None:
        """No job is followed any more, so nobody looks."""


class Discovery:
    """Looks for the sockets of the jobs that it is told to ``follow``; idle without any. ``stop`` takes marks away.

    ``is_marking`` of False: no socket is touched, whoever has marked it. Bytes are reported every ``bytes_seconds``.
    ``watcher`` is shown all sockets that were listed, whosever they are.
    """

    def __init__(
        self,
        host: str,
        book: Addresses,
        receiver: Receiver,
        notices: Notices,
        *,
        sources_changed: Callable[[PacketSources], None],
        failed: Callable[[Exception], None],
        is_marking: bool = True,
        bytes_seconds: float = BYTES_SECONDS,
        watcher: SocketWatcher | None = None,
    ) -> None:
        self._host = host
        self._watcher = watcher
        self._book = book
        self._reports = Reports(host, receiver, notices, bytes_seconds=bytes_seconds)
        self._notices = notices
        self._sources_changed = sources_changed
        self._owners = Owners(notices)
        self._own = SocketTable()
        self._namespaces = Namespaces(notices, self._own)
        self._diag: Diag | None = None
        self._jobs: dict[str, JobLinks] = {}
        self._followed: Mapping[str, JobProcesses] = {}
        self._sources = PacketSources()
        self._known_addresses: Mapping[str, str] | None = None
        self._peers: frozenset[bytes] = frozenset()
        self._marks = JobMarks(self._owners, self._own, self._namespaces, notices, is_clearing=is_marking)
        self._worker = Worker("discovery", self._work, self._let_go, failed=failed)
        self._news = self._worker.news
        self._declared: Mapping[str, JobProcesses] = {}
        self._wanted: Mapping[str, int] = {}
        self._everywhere = JobsToMark()
        self._points = self._marks.points
        self._is_news = False
        self._began = float("-inf")

    # From any thread ----------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin."""
        self._worker.start()

    def stop(self) -> None:
        """Look a last time, for the bytes since the last report, and end; sockets are as before they were marked."""
        self._worker.stop(STOP_SECONDS)

    def follow(self, declared: Mapping[str, JobProcesses]) -> None:
        """The jobs whose sockets are to be found, and where their processes are."""
        with self._news:
            if dict(declared) != self._declared:
                self._declared = dict(declared)
                self._wake()

    def mark(
        self,
        dscps: Mapping[str, int],
        everywhere: Iterable[str],
        points: CodePoints | None,
        over_ipv6: Iterable[str] = (),
    ) -> None:
        """What jobs' packets are to be marked with, on their sockets: ``everywhere``, or where no filter sees them.

        ``points`` are the DSCPs of the classes; None: those that are known stay. ``over_ipv6`` are jobs whose sockets
        over IPv6 are marked everywhere.
        """
        with self._news:
            wanted = (dict(dscps), JobsToMark(frozenset(everywhere), frozenset(over_ipv6)), points or self._points)
            if wanted != (self._wanted, self._everywhere, self._points):
                self._wanted, self._everywhere, self._points = wanted
                self._wake()

    def look_soon(self) -> None:
        """Look again soon: something that matters to a look has changed."""
        with self._news:
            self._wake()

    def _wake(self) -> None:
        self._is_news = True
        self._news.notify()

    # The thread ----------------------------------------------------------------------------------------------------

    def _work(self) -> None:
        while self._wait():
            self._turn(time.monotonic())
        if self._jobs:
            self._reports.all_due()
            self._look(time.monotonic())

    def _let_go(self) -> None:
        """Take all marks away, and close what is open."""
        self._marks.release()
        self._namespaces.close()
        if self._diag is not None:
            self._diag.close()

    def _wait(self) -> bool:
        """Until there is something to look at; False: the end."""
        with self._news:
            # From the look's beginning: one that takes long must not make the next one late.
            due = self._began + LOOK_SECONDS - GAP_SECONDS
            while not self._is_news and not self._worker.is_stopping:
                left = due - time.monotonic() if self._declared else None
                if left is not None and left <= 0:
                    break
                self._news.wait(left)
            # What comes within it goes together.
            self._news.wait_for(lambda: self._worker.is_stopping, GAP_SECONDS)
            self._is_news = False
            self._began = time.monotonic()
            return not self._worker.is_stopping

    def _turn(self, now: float) -> None:
        with self._news:
            declared, wanted, everywhere, points = self._declared, self._wanted, self._everywhere, self._points
        self._marks.set_points(points, self._jobs)
        if declared != self._followed:
            self._set_jobs(declared)
        if declared or self._jobs:
            self._look(now)
        self._marks.mark(wanted, everywhere, self._jobs.keys())
        self._marks.clear(self._jobs)

    def _set_jobs(self, declared: Mapping[str, JobProcesses]) -> None:
        before, self._followed = self._followed, declared
        self._owners.set_jobs(declared)
        # A job whose processes are declared otherwise now begins anew.
        stay = {job for job, processes in declared.items() if processes.continues(before.get(job))}
        gone = [job for job in self._jobs if job not in stay]
        self._reports.end(gone)
        for job in gone:
            del self._jobs[job]
            self._notices.clear(f"marks {job}")
        for job in declared.keys() - self._jobs.keys():
            self._reports.begin(job)
            self._jobs[job] = JobLinks()
            self._marks.begin(job)
        for table in (self._own, *self._namespaces.tables()):
            table.drop(before.keys() - stay)
        if declared:
            self._book.start()
        elif self._diag is not None:
            # What ends while nobody looks would fill the room for it.
            self._diag.close()
            self._diag = None
        if not declared and self._watcher is not None:
            self._watcher.idle()

    def _look(self, now: float) -> None:
        self._owners.look()
        self._enter_namespaces(now)
        if joined := self._owners.joined:
            for table in (self._own, *self._namespaces.tables()):
                table.ask_again(joined)
        changed: set[str] = set()
        looked: list[tuple[int, SocketTable]] = []
        seen: list[Looked] = []
        is_whole = True
        if self._watcher is not None:
            self._watcher.looking()
        for number, (diag, table) in enumerate([(self._open(), self._own), *self._namespaces.each()]):
            try:
                if diag is None:
                    self._show([], is_whole=False)
                    return
                changed |= table.update(diag.sockets(), self._jobs, self._owners.judge)
                ended = diag.ended()
                table.settle(ended.sockets, self._peers, is_all=ended.is_all)
                looked.append((id(table) if number else 0, table))
            except DiagError as error:
                self._notices.say(f"sockets {number}", f"jobs' sockets are not found: {error}")
                is_whole = False
                continue
            seen.append(Looked(looked[-1][0], table.sockets, ended.sockets))
            is_whole &= ended.is_all
            self._notices.clear(f"sockets {number}", "jobs' sockets are found")
            if not ended.is_all:
                self._notices.say(f"ended {number}", f"the kernel did not tell of all {_ENDED}")
        self._show(seen, is_whole=is_whole)
        self._link(changed | self._reports.due(now), looked, now)
        if (addresses := self._book.addresses) is not None:
            traffic = {
                job: FoundTraffic(known.found, known.connections, self._traffic(job), self._missed(job))
                for job, known in self._jobs.items()
            }
            self._reports.report(traffic, addresses, now, self._book.interfaces)
        self._tell_sources()

    def _show(self, seen: Sequence[Looked], *, is_whole: bool) -> None:
        if self._watcher is not None:
            self._watcher.looked(seen, is_whole=is_whole)

    def _open(self) -> Diag | None:
        if self._diag is None:
            try:
                self._diag = Diag()
            except DiagError as error:
                self._notices.say("sockets 0", f"jobs' sockets are not found: {error}")
        return self._diag

    def _enter_namespaces(self, now: float) -> None:
        addresses = self._book.addresses
        if addresses is None:
            return
        if addresses != self._known_addresses:
            self._known_addresses = addresses
            self._namespaces.anew()
            self._reports.report_all_again()
        own = network_namespace("self") or 0
        self._peers = frozenset(
            address for text, name in addresses.items() if name != self._host and (address := packed(text)) is not None
        )
        self._namespaces.follow(self._owners.namespaces(own, now), self._peers)

    def _link(self, jobs: Iterable[str], looked: list[tuple[int, SocketTable]], now: float) -> None:
        """From the sockets of these jobs to their links."""
        jobs = set(jobs)
        if not jobs:
            return
        # On the wire containers that share an address are one host: what is used in one of them is used.
        uses = Uses(sock for _, table in looked for sock in table.sockets)
        owned = {number: table.by_job() for number, table in looked}
        for job in jobs:
            own = {number: by_job[job] for number, by_job in owned.items() if job in by_job}
            self._jobs[job].look(own, owned.keys(), uses, now)

    def _traffic(self, job: str) -> dict[Ends, Traffic]:
        total = self._own.traffic(job)
        for table in self._namespaces.tables():
            for ends, more in table.traffic(job).items():
                known = total.get(ends, Traffic(0, 0))
                total[ends] = Traffic(known.sent + more.sent, known.received + more.received)
        return total

    def _missed(self, job: str) -> int | None:
        """Bytes that may be missing from the job's; None: nobody knows how many."""
        total = 0
        for table in (self._own, *self._namespaces.tables()):
            missed = table.missed(job)
            if missed is None:
                return None
            total += missed
        return total

    def _tell_sources(self) -> None:
        groups = {job: group for job in self._jobs if (group := self._owners.group(job)) is not None}
        sources = PacketSources(
            jobs=frozenset(self._jobs),
            groups={job: CgroupId(group.path, group.id) for job, group in groups.items()},
            links={job: known.here for job, known in self._jobs.items()},
            brought=self._brought(),
            pods=pods(self._jobs, self._namespaces.addresses()),
        )
        if sources != self._sources:
            self._sources = sources
            self._sources_changed(sources)

    def _brought(self) -> dict[str, frozenset[Link]]:
        """Connections in the agent's own namespace that jobs' processes had before they were in their cgroups."""
        inodes = {job: inodes for job in self._jobs if (inodes := self._owners.brought(job))}
        return {
            job: frozenset(
                Link(sock.remote, sock.local_port, sock.remote_port)
                for sock in sockets
                if sock.inode in inodes[job] and sock.state != LISTEN
            )
            for job, sockets in (self._own.by_job().items() if inodes else ())
            if job in inodes
        }
