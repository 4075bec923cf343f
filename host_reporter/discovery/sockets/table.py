"""What changed between two looks at a network namespace's sockets: new, closed, and the bytes of each job. Pure.

A socket is known by its cookie. The same addresses and ports may be another connection a moment later.

Of connections that have ended the kernel tells the last counts, but not whose they were. One that no look has seen is
known by its ports: the job's that alone listens there, or that alone has connections to there. The bytes of the rest
are anybody's: so many may be missing from each job's count.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Container, Iterable, Mapping
from typing import NamedTuple

from host_reporter.discovery.sockets.sock_diag import LISTEN, Socket

UNDECIDED_LOOKS = 2
"""Look so often at all jobs for the holder of a socket; then the socket counts as no job's."""

MAX_LEAVING = 20_000
"""Keep at most so many sockets that are no longer listed and whose last counts the kernel has not sent yet."""

MAX_PORTS = 20_000
"""Remember for at most so many ports of peers which jobs had connections to them."""


class Ends(NamedTuple):
    """Two hosts' addresses that talk: this host's, and the peer's."""

    local: bytes
    remote: bytes


class Traffic(NamedTuple):
    """Bytes of a job to and from a peer: acknowledged by it, and come from it."""

    sent: int
    received: int


class Verdict(NamedTuple):
    """The job of each new socket, by cookie, and the ``undecided`` sockets, which are looked for again.

    ``share`` is the share of the jobs that were searched for these; the next look searches the other jobs.
    """

    owners: Mapping[int, str]
    undecided: frozenset[int] = frozenset()
    share: float = 1.0


Judge = Callable[[list[Socket]], Verdict]


class _Entry:
    """A job's socket."""

    __slots__ = ("acked", "job", "received", "socket")

    def __init__(self, job: str, sock: Socket) -> None:
        self.job = job
        self.socket = sock
        self.acked = self.received = 0


class _Port:
    """Who had connections to a peer's port: the jobs, how many connections they had, and whether others had some."""

    __slots__ = ("connections", "jobs", "others")

    def __init__(self) -> None:
        self.jobs: set[str] = set()
        self.connections = 0
        self.others = False

    @property
    def owner(self) -> str | None:
        """The job that all connections to there are of; None: not known."""
        return next(iter(self.jobs)) if len(self.jobs) == 1 and self.connections > 1 and not self.others else None


class SocketTable:
    """One namespace's sockets, and whose they are."""

    def __init__(self) -> None:
        self.sockets: list[Socket] = []
        self._known: dict[int, _Entry | None] = {}
        self._undecided: dict[int, float] = {}
        self._jobs: frozenset[str] = frozenset()
        self._bytes: dict[str, dict[Ends, list[int]]] = {}
        self._leaving: OrderedDict[int, _Entry] = OrderedDict()
        self._ports: OrderedDict[tuple[bytes, int], _Port] = OrderedDict()
        self._new_jobs: frozenset[str] = frozenset()
        self._missed = 0
        self._missed_before: dict[str, int] = {}
        self._uncertain: set[str] = set()
        self._strangers: set[int] = set()

    def update(self, sockets: list[Socket], jobs: Iterable[str], judge: Judge) -> frozenset[str]:
        """A look: all sockets now, the jobs that are followed, and who says whose the new ones are.

        The jobs whose sockets are others than at the look before. A job's bytes count from the look in which it is
        followed first: what its connections had carried before is not counted.
        """
        before, self._jobs = self._jobs, frozenset(jobs)
        self._forget(before - self._jobs)
        changed: set[str] = set()
        self._new_jobs = added = self._jobs - before
        if added:
            # What was nobody's may be theirs.
            self._ask_again(list(self._known))
            self._undecided = {}
            for port in self._ports.values():
                port.others = False
        known, current, new, again = self._known, {}, [], 0
        for sock in sockets:
            cookie = sock[0]
            try:
                current[cookie] = entry = known[cookie]
            except KeyError:
                # A list that changes while it is made may have left one out.
                entry = self._leaving.pop(cookie, None)
                if entry is None:
                    new.append(sock)
                    continue
                current[cookie] = entry
                changed.add(entry.job)
                again += 1
            if entry is not None:
                if sock[8] != entry.acked or sock[9] != entry.received:
                    self._count(entry, sock)
                entry.socket = sock
        if len(current) - again < len(known):
            changed |= self._let_go({cookie: known[cookie] for cookie in known.keys() - current.keys()})
        self._known, self.sockets = current, sockets
        if new:
            self._admit(new, judge(new), added, changed)
        else:
            self._undecided = {}
        self._strangers = set()
        return frozenset(changed)

    def ask_again(self, inodes: Container[int]) -> None:
        """At the next look whose these are, as far as they were nobody's: a process that holds them has come."""
        self._ask_again({sock.cookie for sock in self.sockets if sock.inode in inodes})

    def _ask_again(self, cookies: Iterable[int]) -> None:
        for cookie in cookies:
            if cookie in self._known and self._known[cookie] is None:
                del self._known[cookie]
                self._strangers.add(cookie)

    def settle(self, ended: Iterable[Socket], peers: Container[bytes], *, is_all: bool) -> None:
        """Sockets that have ended, with their last counts; to be called after ``update``.

        ``peers``: addresses of other hosts; what went elsewhere is nobody's demand. ``is_all`` of False: there were
        more, of which nothing is known.
        """
        listeners: dict[int, str | None] | None = None
        for sock in ended:
            if sock.cookie in self._known:
                entry = self._known[sock.cookie]
            elif (entry := self._leaving.pop(sock.cookie, None)) is None:
                if listeners is None:
                    listeners = self._listeners()
                self._settle_unseen(sock, listeners, peers)
            if entry is not None:
                self._count(entry, sock)
        for job in self._new_jobs:
            self._missed_before[job] = self._missed
        if not is_all:
            self._uncertain |= self._jobs

    def missed(self, job: str) -> int | None:
        """Bytes sent to other hosts since the job is followed that may be its own; None: nobody knows."""
        if job in self._uncertain:
            return None
        return self._missed - self._missed_before.get(job, self._missed)

    def drop(self, jobs: Iterable[str]) -> None:
        """Forget these jobs; if they are followed again it is as if for the first time."""
        gone = frozenset(jobs)
        self._jobs -= gone
        self._forget(gone)

    def by_job(self) -> dict[str, list[Socket]]:
        """The sockets of all jobs."""
        sockets: dict[str, list[Socket]] = {}
        for entry in self._known.values():
            if entry is not None:
                sockets.setdefault(entry.job, []).append(entry.socket)
        return sockets

    def traffic(self, job: str) -> dict[Ends, Traffic]:
        """Bytes of a job by the addresses at both ends, of all its connections since it is followed."""
        return {ends: Traffic(sent, received) for ends, (sent, received) in self._bytes.get(job, {}).items()}

    def inherit(self, other: SocketTable) -> None:
        """Another one, of a namespace that nobody of ours is in any more, ends: what its jobs have sent stays sent."""
        for job in self._jobs & other._jobs:
            mine = self._bytes.setdefault(job, {})
            for ends, (sent, received) in other._bytes.get(job, {}).items():
                between = mine.setdefault(ends, [0, 0])
                between[0] += sent
                between[1] += received
            missed = other.missed(job)
            if missed is None:
                self._uncertain.add(job)
            else:
                self._missed_before[job] = self._missed_before.get(job, self._missed) - missed

    def _let_go(self, gone: Mapping[int, _Entry | None]) -> set[str]:
        """Sockets that are not listed any more; the jobs that had them."""
        for cookie, entry in gone.items():
            if entry is not None and entry.socket.state != LISTEN:
                self._leaving[cookie] = entry
        while len(self._leaving) > MAX_LEAVING:
            self._leaving.popitem(last=False)
        return {entry.job for entry in gone.values() if entry is not None}

    def _admit(self, new: list[Socket], verdict: Verdict, added: frozenset[str], changed: set[str]) -> None:
        undecided: dict[int, float] = {}
        for sock in new:
            job = verdict.owners.get(sock.cookie)
            if job is not None and job in self._jobs:
                entry = self._known[sock.cookie] = _Entry(job, sock)
                if job in added or sock.cookie in self._strangers:
                    # What it has carried before is not the job's.
                    entry.acked, entry.received = sock.acked, sock.received
                else:
                    self._count(entry, sock)
                changed.add(job)
                self._note_port(job, sock)
            elif sock.cookie in verdict.undecided:
                looks = self._undecided.get(sock.cookie, 0.0) + verdict.share
                if looks < UNDECIDED_LOOKS:
                    # It stays unknown, and so is new again.
                    undecided[sock.cookie] = looks
                else:
                    self._known[sock.cookie] = None
                    self._note_port(None, sock)
            else:
                self._known[sock.cookie] = None
                self._note_port(None, sock)
        self._undecided = undecided
        while len(self._ports) > MAX_PORTS:
            self._ports.popitem(last=False)

    def _settle_unseen(self, sock: Socket, listeners: Mapping[int, str | None], peers: Container[bytes]) -> None:
        """A connection that no look has seen."""
        if sock.local_port in listeners:
            job = listeners[sock.local_port]
            if job is None:
                # Another program's, which answers whom it answers.
                return
        else:
            port = self._ports.get((sock.remote, sock.remote_port))
            job = port.owner if port is not None else None
        if job is None:
            if sock.remote in peers:
                self._missed += sock.acked
        elif job in self._jobs and job not in self._new_jobs:
            self._count(_Entry(job, sock), sock)

    def _listeners(self) -> dict[int, str | None]:
        """Whose connections through a port that is listened on are; None: another program's, or several jobs'."""
        owner_of: dict[int, str | None] = {}
        for sock in self.sockets:
            if sock.state == LISTEN:
                entry = self._known.get(sock.cookie)
                job = entry.job if entry is not None else None
                owner_of[sock.local_port] = job if owner_of.get(sock.local_port, job) == job else None
        return owner_of

    def _note_port(self, job: str | None, sock: Socket) -> None:
        if sock.state == LISTEN:
            return
        key = (sock.remote, sock.remote_port)
        port = self._ports.pop(key, None) or _Port()
        if job is None:
            port.others = True
        else:
            port.jobs.add(job)
            port.connections += 1
        self._ports[key] = port

    def _count(self, entry: _Entry, sock: Socket) -> None:
        between = self._bytes.setdefault(entry.job, {}).setdefault(Ends(sock.local, sock.remote), [0, 0])
        between[0] += max(sock.acked - entry.acked, 0)
        between[1] += max(sock.received - entry.received, 0)
        entry.acked, entry.received = sock.acked, sock.received

    def _forget(self, jobs: frozenset[str]) -> None:
        if jobs:
            for job in jobs:
                self._bytes.pop(job, None)
                self._missed_before.pop(job, None)
            self._uncertain -= jobs
            self._leaving = OrderedDict((c, e) for c, e in self._leaving.items() if e.job not in jobs)
            for port in self._ports.values():
                port.jobs -= jobs
            # Their sockets may be another job's from now on.
            self._known = {c: e for c, e in self._known.items() if e is None or e.job not in jobs}
