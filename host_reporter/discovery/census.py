"""What changed between two looks at a network namespace's sockets: new, closed, and the bytes of each job. Pure.

A socket is known by its cookie. The same addresses and ports may be another connection a moment later.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from host_reporter.discovery.sock_diag import LISTEN, Socket

UNDECIDED_LOOKS = 2
"""A socket that nobody is found to hold is looked at so often; then it is taken for none of a job's."""


class Traffic(NamedTuple):
    """Bytes of a job to and from a peer: acknowledged by it, and come from it."""

    sent: int
    received: int


class Verdict(NamedTuple):
    """Whose new sockets are, by cookie; those of no job are in neither. ``undecided``: to be asked again."""

    owners: Mapping[int, str]
    undecided: frozenset[int] = frozenset()


Judge = Callable[[list[Socket]], Verdict]


class _Entry:
    """A job's socket."""

    __slots__ = ("acked", "job", "received", "socket")

    def __init__(self, job: str, sock: Socket) -> None:
        self.job = job
        self.socket = sock
        self.acked = self.received = 0


class Census:
    """One namespace's sockets, and whose they are. ``opened`` and ``closed`` count connections of jobs."""

    def __init__(self) -> None:
        self.sockets: list[Socket] = []
        self.opened = 0
        self.closed = 0
        self._known: dict[int, _Entry | None] = {}
        self._undecided: dict[int, int] = {}
        self._jobs: frozenset[str] = frozenset()
        self._bytes: dict[str, dict[bytes, list[int]]] = {}

    def take(self, sockets: list[Socket], jobs: Iterable[str], judge: Judge) -> frozenset[str]:
        """A look: all sockets now, the jobs that are followed, and who says whose the new ones are.

        The jobs whose sockets are others than at the look before. A job's bytes count from the look in which it is
        followed first: what its connections had carried before is not counted.
        """
        before, self._jobs = self._jobs, frozenset(jobs)
        self._forget(before - self._jobs)
        changed: set[str] = set()
        if added := self._jobs - before:
            # What was nobody's may be theirs.
            self._known = {cookie: entry for cookie, entry in self._known.items() if entry is not None}
            self._undecided = {}
        known, current, new = self._known, {}, []
        for sock in sockets:
            cookie = sock[0]
            try:
                current[cookie] = entry = known[cookie]
            except KeyError:
                new.append(sock)
                continue
            if entry is not None:
                if sock[8] != entry.acked or sock[9] != entry.received:
                    self._count(entry, sock)
                entry.socket = sock
        if len(current) < len(known):
            for cookie in known.keys() - current.keys():
                gone = known[cookie]
                if gone is not None:
                    changed.add(gone.job)
                    self.closed += gone.socket.state != LISTEN
        self._known, self.sockets = current, sockets
        if new:
            self._admit(new, judge(new), added, changed)
        else:
            self._undecided = {}
        return frozenset(changed)

    def drop(self, jobs: Iterable[str]) -> None:
        """Forget these jobs; if they are followed again it is as if for the first time."""
        gone = frozenset(jobs)
        self._jobs -= gone
        self._forget(gone)

    def by_job(self) -> dict[str, list[Socket]]:
        """The sockets of all jobs."""
        found: dict[str, list[Socket]] = {}
        for entry in self._known.values():
            if entry is not None:
                found.setdefault(entry.job, []).append(entry.socket)
        return found

    def traffic(self, job: str) -> dict[bytes, Traffic]:
        """Bytes of a job by the peer's address, of all its connections since it is followed."""
        return {remote: Traffic(sent, received) for remote, (sent, received) in self._bytes.get(job, {}).items()}

    def _admit(self, new: list[Socket], verdict: Verdict, added: frozenset[str], changed: set[str]) -> None:
        undecided: dict[int, int] = {}
        for sock in new:
            job = verdict.owners.get(sock.cookie)
            if job is not None and job in self._jobs:
                entry = self._known[sock.cookie] = _Entry(job, sock)
                if job in added:
                    entry.acked, entry.received = sock.acked, sock.received
                else:
                    self._count(entry, sock)
                changed.add(job)
                self.opened += sock.state != LISTEN
            elif sock.cookie in verdict.undecided:
                looks = self._undecided.get(sock.cookie, 0) + 1
                if looks < UNDECIDED_LOOKS:
                    # It stays unknown, and so is new again.
                    undecided[sock.cookie] = looks
                else:
                    self._known[sock.cookie] = None
            else:
                self._known[sock.cookie] = None
        self._undecided = undecided

    def _count(self, entry: _Entry, sock: Socket) -> None:
        by_peer = self._bytes.setdefault(entry.job, {}).setdefault(sock.remote, [0, 0])
        by_peer[0] += max(sock.acked - entry.acked, 0)
        by_peer[1] += max(sock.received - entry.received, 0)
        entry.acked, entry.received = sock.acked, sock.received

    def _forget(self, jobs: frozenset[str]) -> None:
        if jobs:
            for job in jobs:
                self._bytes.pop(job, None)
            # Their sockets may be another job's from now on.
            self._known = {c: e for c, e in self._known.items() if e is None or e.job not in jobs}
