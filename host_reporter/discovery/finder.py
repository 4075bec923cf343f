"""The thread that looks: once a period at the jobs' processes, the sockets, and what has changed; tells both sides.

The sender hears what there is to report, the enforcement where the jobs' packets come from; what no packet filter can
mark is marked here, on the sockets themselves.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

from host_reporter.discovery.census import Census, Traffic
from host_reporter.discovery.links import Link, Links, Uses
from host_reporter.discovery.namespaces import Namespaces
from host_reporter.discovery.netlink import Diag
from host_reporter.discovery.owners import Owners
from host_reporter.discovery.processes import network_namespace
from host_reporter.discovery.reports import Receiver, Reports
from host_reporter.discovery.sock_diag import LISTEN, DiagError, Socket
from host_reporter.discovery.socket_marks import SocketMarks
from host_reporter.discovery.telling import Found
from host_reporter.discovery.whereabouts import Whereabouts
from host_reporter.job_file import Place
from host_reporter.marking import Group
from host_reporter.notices import Notices

LOOK_SECONDS = 1.0
"""A new connection is found within so long, and told at once."""

GAP_SECONDS = 0.2
"""Between two looks at least, whatever is new."""

STOP_SECONDS = 5.0


class Addresses(Protocol):
    """Who knows the hosts' addresses; see ``peers.PeerBook``."""

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
    """Looks for the sockets of the jobs that it is told to ``follow``; idle without any. ``stop`` takes marks away."""

    def __init__(
        self,
        host: str,
        book: Addresses,
        receiver: Receiver,
        notices: Notices,
        *,
        moved: Callable[[Whereabouts], None],
        failed: Callable[[Exception], None],
    ) -> None:
        self._host = host
        self._book = book
        self._reports = Reports(host, receiver, notices)
        self._notices = notices
        self._moved = moved
        self._failed = failed
        self._owners = Owners(notices)
        self._namespaces = Namespaces(notices)
        self._own = Census()
        self._diag: Diag | None = None
        self._jobs: dict[str, _Job] = {}
        self._followed: Mapping[str, Place] = {}
        self._where = Whereabouts()
        self._known_addresses: Mapping[str, str] | None = None
        self._marks = SocketMarks()
        self._news = threading.Condition()
        self._places: Mapping[str, Place] = {}
        self._wanted: Mapping[str, int] = {}
        self._everywhere: frozenset[str] = frozenset()
        self._is_news = False
        self._began = float("-inf")
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="discovery", daemon=True)

    # From any thread ----------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End; sockets that were marked are as they were before."""
        with self._news:
            self._stopping = True
            self._news.notify()
        self._thread.join(STOP_SECONDS)

    def follow(self, places: Mapping[str, Place]) -> None:
        """The jobs whose sockets are to be found, and where their processes are."""
        with self._news:
            if dict(places) != self._places:
                self._places = dict(places)
                self._wake()

    def mark(self, dscps: Mapping[str, int], everywhere: Iterable[str]) -> None:
        """What jobs' packets are to be marked with, on their sockets: ``everywhere``, or where no filter sees them."""
        with self._news:
            wanted = (dict(dscps), frozenset(everywhere))
            if wanted != (self._wanted, self._everywhere):
                self._wanted, self._everywhere = wanted
                self._wake()

    def look_soon(self) -> None:
        """Something that matters to a look is another now."""
        with self._news:
            self._wake()

    def _wake(self) -> None:
        self._is_news = True
        self._news.notify()

    # The thread ----------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            while self._wait():
                self._turn(time.monotonic())
        except Exception as error:
            # An agent that half works would be believed: the whole of it stops.
            self._failed(error)
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
            while not self._is_news and not self._stopping:
                left = due - time.monotonic() if self._places else None
                if left is not None and left <= 0:
                    break
                self._news.wait(left)
            # What comes within it goes together.
            self._news.wait_for(lambda: self._stopping, GAP_SECONDS)
            self._is_news = False
            self._began = time.monotonic()
            return not self._stopping

    def _turn(self, now: float) -> None:
        with self._news:
            places, wanted, everywhere = self._places, self._wanted, self._everywhere
        if places != self._followed:
            self._set_jobs(places)
        if places or self._jobs:
            self._look(now)
        self._mark(wanted, everywhere)

    def _set_jobs(self, places: Mapping[str, Place]) -> None:
        before, self._followed = self._followed, places
        self._owners.set_jobs(places)
        gone = [job for job in self._jobs if before.get(job) != places.get(job)]
        self._reports.end(gone)
        for job in gone:
            del self._jobs[job]
            self._notices.clear(f"marks {job}")
        for job in places.keys() - self._jobs.keys():
            self._reports.begin(job)
            self._jobs[job] = _Job()
        # A job whose place is another one begins anew.
        stay = {job for job, place in places.items() if before.get(job) == place}
        for census in (self._own, *self._namespaces.censuses()):
            census.drop(before.keys() - stay)
        if places:
            self._book.start()

    def _look(self, now: float) -> None:
        self._owners.look()
        self._enter_namespaces(now)
        changed: set[str] = set()
        looked: list[tuple[int, Census]] = []
        for number, (diag, census) in enumerate([(self._open(), self._own), *self._namespaces.each()]):
            try:
                if diag is None:
                    return
                changed |= census.take(diag.sockets(), self._jobs, self._owners.judge)
                looked.append((id(census) if number else 0, census))
            except DiagError as error:
                self._notices.say(f"sockets {number}", f"jobs' sockets are not found: {error}")
                continue
            self._notices.clear(f"sockets {number}", "jobs' sockets are found")
        self._link(changed | self._reports.due(now), looked, now)
        if (addresses := self._book.addresses) is not None:
            found = {job: Found(its.found, its.connections, self._traffic(job)) for job, its in self._jobs.items()}
            self._reports.tell(found, addresses, now)
        self._say_where()

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
            self._reports.tell_all_again()
        own = network_namespace("self") or 0
        others = frozenset(address for address, name in addresses.items() if name != self._host)
        self._namespaces.follow(self._owners.namespaces(own, now), others)

    def _link(self, jobs: Iterable[str], looked: list[tuple[int, Census]], now: float) -> None:
        """From the sockets of these jobs to their links."""
        jobs = set(jobs)
        if not jobs:
            return
        found: dict[str, set[Link]] = {job: set() for job in jobs}
        count: dict[str, int] = dict.fromkeys(jobs, 0)
        here: dict[str, frozenset[Link]] = {}
        for number, census in looked:
            uses, by_job = Uses(census.sockets), census.by_job()
            for job in jobs:
                own = by_job.get(job, [])
                known = self._jobs[job].links.setdefault(number, Links())
                links = known.look(own, uses, now)
                found[job] |= links
                count[job] += sum(sock.state != LISTEN for sock in own)
                if number == 0:
                    here[job] = links
        numbers = {number for number, _ in looked}
        for job in jobs:
            its = self._jobs[job]
            its.links = {number: links for number, links in its.links.items() if number in numbers}
            its.found, its.connections = frozenset(found[job]), count[job]
            its.here = here.get(job, its.here)

    def _traffic(self, job: str) -> dict[bytes, Traffic]:
        total = self._own.traffic(job)
        for census in self._namespaces.censuses():
            for remote, more in census.traffic(job).items():
                known = total.get(remote, Traffic(0, 0))
                total[remote] = Traffic(known.sent + more.sent, known.received + more.received)
        return total

    def _say_where(self) -> None:
        groups = {job: group for job in self._jobs if (group := self._owners.group(job)) is not None}
        where = Whereabouts(
            jobs=frozenset(self._jobs),
            groups={job: Group(group.path, group.id) for job, group in groups.items()},
            links={job: its.here for job, its in self._jobs.items()},
        )
        if where != self._where:
            self._where = where
            self._moved(where)

    def _mark(self, wanted: Mapping[str, int], everywhere: frozenset[str]) -> None:
        """Mark sockets, and give back those of jobs that are not to be marked any more."""
        for job in self._marks.jobs - (wanted.keys() & self._jobs.keys()):
            self._marks.unmark(job)
            self._notices.clear(f"marks {job}")
        elsewhere = self._namespaces.censuses()
        if not wanted or not (everywhere or elsewhere or self._marks.jobs):
            return
        by_job: dict[str, list[Socket]] = {}
        for census in elsewhere:
            for job, sockets in census.by_job().items():
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
