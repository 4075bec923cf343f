"""A thread that looks at the jobs' processes and sockets once a period, and hands on what has changed.

The sender gets what is to be reported, and the enforcement where the jobs' packets come from. What no packet filter can
mark is marked here, on the sockets themselves.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

from host_reporter.discovery.cgroups import CgroupId
from host_reporter.discovery.links import Link, Links, Uses
from host_reporter.discovery.namespaces import Namespaces
from host_reporter.discovery.netlink import Diag
from host_reporter.discovery.owners import Owners
from host_reporter.discovery.packet_sources import PacketSources
from host_reporter.discovery.processes import network_namespace
from host_reporter.discovery.reports import BYTES_SECONDS, Receiver, Reports
from host_reporter.discovery.sock_diag import LISTEN, DiagError, Socket
from host_reporter.discovery.socket_marks import SocketMarks
from host_reporter.discovery.socket_table import UNDECIDED_LOOKS, SocketTable, Traffic
from host_reporter.discovery.traffic_report import FoundTraffic
from host_reporter.jobs.job import JobProcesses
from host_reporter.notices import Notices
from host_reporter.worker import Worker

LOOK_SECONDS = 1.0
"""Look this often: a new connection is found within this time, and reported at once."""

GAP_SECONDS = 0.2
"""Wait at least this long between two looks."""

CLEARED_LOOKS = UNDECIDED_LOOKS
"""At the first so many looks at a job, remove from its sockets what a killed agent has left or what they inherited."""

STOP_SECONDS = 5.0

_ENDED = "connections that ended: bytes of short ones may be missing from jobs' measured demand"


class Addresses(Protocol):
    """Knows the hosts' addresses; see ``uplink.peers.PeerBook``."""

    @property
    def addresses(self) -> Mapping[str, str] | None:
        """Hosts by address; None: not known yet."""

    def start(self) -> None:
        """They are needed from now on."""


@dataclass
class _Job:
    """What was found of a job. ``links``: by namespace, over time; ``here``: in the agent's own, now."""

    links: dict[int, Links] = field(default_factory=dict)
    found: frozenset[Link] = frozenset()
    here: frozenset[Link] = frozenset()
    connections: int = 0


class Discovery:
    """Looks for the sockets of the jobs that it is told to ``follow``; idle without any. ``stop`` takes marks away.

    ``is_marking`` of False: no socket is touched, whoever has marked it. Bytes are reported every ``bytes_seconds``.
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
    ) -> None:
        self._host = host
        self._book = book
        self._is_marking = is_marking
        self._reports = Reports(host, receiver, notices, bytes_seconds=bytes_seconds)
        self._notices = notices
        self._sources_changed = sources_changed
        self._owners = Owners(notices)
        self._own = SocketTable()
        self._namespaces = Namespaces(notices, self._own)
        self._ipv6 = SocketTable()
        """Connections over IPv6 are only counted: they are neither reported nor marked."""
        self._diag: Diag | None = None
        self._jobs: dict[str, _Job] = {}
        self._followed: Mapping[str, JobProcesses] = {}
        self._sources = PacketSources()
        self._known_addresses: Mapping[str, str] | None = None
        self._peers: frozenset[bytes] = frozenset()
        self._marks = SocketMarks()
        self._uncleared: dict[str, int] = {}
        """By job, how many more looks remove what others left on its sockets."""
        self._worker = Worker("discovery", self._work, self._let_go, failed=failed)
        self._news = self._worker.news
        self._declared: Mapping[str, JobProcesses] = {}
        self._wanted: Mapping[str, int] = {}
        self._everywhere: frozenset[str] = frozenset()
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

    def mark(self, dscps: Mapping[str, int], everywhere: Iterable[str]) -> None:
        """What jobs' packets are to be marked with, on their sockets: ``everywhere``, or where no filter sees them."""
        with self._news:
            wanted = (dict(dscps), frozenset(everywhere))
            if wanted != (self._wanted, self._everywhere):
                self._wanted, self._everywhere = wanted
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
        for job in self._marks.jobs:
            self._marks.unmark(job)
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
            declared, wanted, everywhere = self._declared, self._wanted, self._everywhere
        if declared != self._followed:
            self._set_jobs(declared)
        if declared or self._jobs:
            self._look(now)
        self._mark(wanted, everywhere)
        self._clear()

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
            self._notices.clear(f"ipv6 {job}")
        for job in declared.keys() - self._jobs.keys():
            self._reports.begin(job)
            self._jobs[job] = _Job()
            self._uncleared[job] = CLEARED_LOOKS
        for table in (self._own, self._ipv6, *self._namespaces.tables()):
            table.drop(before.keys() - stay)
        if declared:
            self._book.start()
        elif self._diag is not None:
            # What ends while nobody looks would fill the room for it.
            self._diag.close()
            self._diag = None

    def _look(self, now: float) -> None:
        self._owners.look()
        self._enter_namespaces(now)
        if joined := self._owners.joined:
            for table in (self._own, *self._namespaces.tables()):
                table.ask_again(joined)
        changed: set[str] = set()
        looked: list[tuple[int, SocketTable]] = []
        for number, (diag, table) in enumerate([(self._open(), self._own), *self._namespaces.each()]):
            try:
                if diag is None:
                    return
                changed |= table.update(diag.sockets(), self._jobs, self._owners.judge)
                ended = diag.ended()
                table.settle(ended.sockets, self._peers, is_all=ended.is_all)
                looked.append((id(table) if number else 0, table))
            except DiagError as error:
                self._notices.say(f"sockets {number}", f"jobs' sockets are not found: {error}")
                continue
            self._notices.clear(f"sockets {number}", "jobs' sockets are found")
            if not ended.is_all:
                self._notices.say(f"ended {number}", f"the kernel did not tell of all {_ENDED}")
            if not number:
                self._say_ipv6(diag)
        self._link(changed | self._reports.due(now), looked, now)
        if (addresses := self._book.addresses) is not None:
            traffic = {
                job: FoundTraffic(known.found, known.connections, self._traffic(job), self._missed(job))
                for job, known in self._jobs.items()
            }
            self._reports.report(traffic, addresses, now)
        self._tell_sources()

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
        others = frozenset(address for address, name in addresses.items() if name != self._host)
        self._peers = frozenset(map(socket.inet_aton, others))
        self._namespaces.follow(self._owners.namespaces(own, now), others)

    def _link(self, jobs: Iterable[str], looked: list[tuple[int, SocketTable]], now: float) -> None:
        """From the sockets of these jobs to their links."""
        jobs = set(jobs)
        if not jobs:
            return
        # On the wire containers that share an address are one host: what is used in one of them is used.
        uses = Uses(sock for _, table in looked for sock in table.sockets)
        owned = {number: table.by_job() for number, table in looked}
        for job in jobs:
            known = self._jobs[job]
            own = {number: by_job[job] for number, by_job in owned.items() if job in by_job}
            everywhere = Uses(sock for sockets in own.values() for sock in sockets) if len(own) > 1 else None
            known.links = {
                number: known.links.get(number) or Links() for number in owned if number in known.links or number in own
            }
            links_of = {
                number: links.look(own.get(number, ()), uses, now, everywhere) for number, links in known.links.items()
            }
            known.found = frozenset[Link]().union(*links_of.values())
            known.connections = sum(sock.state != LISTEN for sockets in own.values() for sock in sockets)
            if 0 in owned:
                known.here = links_of.get(0, frozenset())

    def _traffic(self, job: str) -> dict[bytes, Traffic]:
        total = self._own.traffic(job)
        for table in self._namespaces.tables():
            for remote, more in table.traffic(job).items():
                known = total.get(remote, Traffic(0, 0))
                total[remote] = Traffic(known.sent + more.sent, known.received + more.received)
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

    def _say_ipv6(self, diag: Diag) -> None:
        self._ipv6.update(diag.ipv6, self._jobs, self._owners.judge)
        for job, sockets in self._ipv6.by_job().items():
            self._notices.say(f"ipv6 {job}", f"job {job}: connections over IPv6, {len(sockets)} now, are not ordered")

    def _tell_sources(self) -> None:
        groups = {job: group for job in self._jobs if (group := self._owners.group(job)) is not None}
        sources = PacketSources(
            jobs=frozenset(self._jobs),
            groups={job: CgroupId(group.path, group.id) for job, group in groups.items()},
            links={job: known.here for job, known in self._jobs.items()},
            brought=self._brought(),
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

    def _mark(self, wanted: Mapping[str, int], everywhere: frozenset[str]) -> None:
        """Mark sockets, and give back those of jobs that are not to be marked any more."""
        for job in self._marks.jobs - (wanted.keys() & self._jobs.keys()):
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
                if job in everywhere:
                    by_job.setdefault(job, []).extend(sockets)
        for job in wanted.keys() & (by_job.keys() | self._marks.jobs):
            self._marks.mark(job, wanted[job], by_job.get(job, []), partial(self._owners.holders, job))
            trouble = self._marks.trouble.get(job)
            if trouble is not None:
                self._notices.say(f"marks {job}", f"job {job}: {trouble}")
            else:
                self._notices.clear(f"marks {job}", f"job {job}: its sockets are marked")

    def _clear(self) -> None:
        """Take classes from jobs' sockets that nobody marks now: set by an agent before this one, or inherited."""
        if not self._uncleared:
            return
        by_job: dict[str, list[Socket]] = {}
        for table in (self._own, *self._namespaces.tables()) if self._is_marking else ():
            for job, sockets in table.by_job().items():
                by_job.setdefault(job, []).extend(sockets)
        for job in self._uncleared.keys() & by_job.keys():
            self._marks.clear(by_job[job], partial(self._owners.holders, job))
        self._uncleared = {job: looks - 1 for job, looks in self._uncleared.items() if looks > 1 and job in self._jobs}
