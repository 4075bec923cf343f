"""What the registry knows of a host's agent: its lease, what it marks, which batches were taken, its clock's offset."""

from __future__ import annotations

from collections import OrderedDict

from controller.journal.bodies import HostBody
from controller.registry.host_clock import HostClock

MAX_SESSIONS = 4
MAX_AHEAD = 4096
"""Batches taken ahead of a gap that are remembered one by one, a session."""


class BatchNumbers:
    """The numbers of the batches of one session that were taken: all up to ``top``, and some after it."""

    __slots__ = ("ahead", "top")

    def __init__(self, top: int = 0, ahead: set[int] | None = None) -> None:
        self.top = top
        self.ahead = ahead if ahead is not None else set()

    def accept(self, number: int) -> bool:
        """Note a number; whether it is new."""
        if number <= self.top or number in self.ahead:
            return False
        self.ahead.add(number)
        if len(self.ahead) > MAX_AHEAD:  # a gap that is that old will not be filled
            self.top = min(self.ahead) - 1
        while self.top + 1 in self.ahead:
            self.top += 1
            self.ahead.discard(self.top)
        return True


class HostRecord:
    """One host. Times are the controller's, except ``sent_at`` of a batch, which is the host's own.

    ``last_seen``, ``session_since`` (when the present session was heard of first), and what a lease is asked with, are
    of a clock that no one sets: a step of the wall's clock must not end a lease.
    """

    __slots__ = ("_sessions", "clock", "last_seen", "marks_acknowledgements", "session_since")

    def __init__(self) -> None:
        self.last_seen: float | None = None
        self.session_since = float("-inf")
        self.clock = HostClock()
        self.marks_acknowledgements = False
        self._sessions: OrderedDict[str, BatchNumbers] = OrderedDict()

    @property
    def session(self) -> str | None:
        """The present agent's: the one that was heard of first last. A late batch of one before it changes nothing."""
        return next(reversed(self._sessions), None)

    def accept(self, session: str, number: int, sent_at: float, now: float) -> bool:
        """Note the batch, right after ``last_seen``; whether it is new."""
        numbers = self._sessions.get(session)
        if numbers is None:
            numbers = self._sessions[session] = BatchNumbers()
            self.session_since = self.last_seen if self.last_seen is not None else self.session_since
            while len(self._sessions) > MAX_SESSIONS:
                self._sessions.popitem(last=False)
        is_new = numbers.accept(number)
        if is_new:  # a batch that comes again tells nothing of the clock
            self.clock.note(sent_at, now)
        return is_new

    def alive(self, now: float, lease: float) -> bool:
        """Whether the host has reported, and its lease still runs."""
        return self.last_seen is not None and now - self.last_seen <= lease

    def to_body(self) -> HostBody:
        """The record for the journal."""
        recent, strays = self.clock.samples()
        return HostBody(
            sessions=tuple((name, its.top, tuple(sorted(its.ahead))) for name, its in self._sessions.items()),
            clock=tuple(recent),
            strays=tuple(strays),
            marks_acknowledgements=self.marks_acknowledgements,
        )

    @classmethod
    def from_body(cls, body: HostBody, now: float) -> HostRecord:
        """The host of a record, with a fresh lease from ``now``: while we were away nobody could renew it."""
        host = cls()
        host.last_seen = host.session_since = now
        host.clock = HostClock(body.clock, body.strays)
        host.marks_acknowledgements = body.marks_acknowledgements
        for name, top, ahead in body.sessions:
            host._sessions[name] = BatchNumbers(top, set(ahead))
        return host
