"""One host's agent: its lease, what it marks, its merged batches, and its clock's offset."""

from __future__ import annotations

from collections import OrderedDict

from controller.declared.batch import InterfacePart
from controller.journal.bodies import HostBody
from controller.registry.agents.clock import HostClock

MAX_SESSIONS = 4
"""Remember the batches of this many sessions of a host."""
MAX_AHEAD = 4096
"""Remember this many batches of a session one by one that came after a gap."""


class BatchNumbers:
    """The numbers of the merged batches of one session: all up to ``top``, and those in ``ahead`` after a gap."""

    __slots__ = ("ahead", "top")

    def __init__(self, top: int = 0, ahead: set[int] | None = None) -> None:
        self.top = top
        self.ahead = ahead if ahead is not None else set()

    def accept(self, number: int) -> bool:
        """Note a number; returns whether it is new."""
        if number <= self.top or number in self.ahead:
            return False
        self.ahead.add(number)
        if len(self.ahead) > MAX_AHEAD:  # such an old gap will not be filled
            self.top = min(self.ahead) - 1
        while self.top + 1 in self.ahead:
            self.top += 1
            self.ahead.discard(self.top)
        return True


class HostRecord:
    """One host. Times are the controller's, except ``sent_at`` of a batch, which is the host's own.

    ``last_seen``, ``session_since`` (the time of the present session's first batch) and the times of leases are by a
    clock that nobody sets: a step of the wall clock must not end a lease.
    """

    __slots__ = (
        "_sessions", "clock", "interfaces", "last_seen", "marks", "marks_acknowledgements", "session_since",
        "tunnel_ports",
    )  # fmt: skip

    def __init__(self) -> None:
        self.last_seen: float | None = None
        self.session_since = float("-inf")
        self.clock = HostClock()
        self.marks_acknowledgements = False
        self.tunnel_ports: tuple[int, ...] = ()
        """The UDP ports of tunnels whose outer headers the present agent marks. It says so in each batch."""
        self.marks: bool | None = None
        """Whether the present agent marks packets of jobs; None: it has not said so. It says so in each batch."""
        self.interfaces: tuple[InterfacePart, ...] = ()
        """What the present agent said last of the host's interfaces. It says it again every few seconds."""
        self._sessions: OrderedDict[str, BatchNumbers] = OrderedDict()

    @property
    def session(self) -> str | None:
        """The present agent's session: the newest one. A late batch of an older session does not change it."""
        return next(reversed(self._sessions), None)

    def accept(self, session: str, number: int, sent_at: float, now: float) -> bool:
        """Note a batch, right after ``last_seen`` was set; returns whether it is new."""
        numbers = self._sessions.get(session)
        if numbers is None:
            numbers = self._sessions[session] = BatchNumbers()
            self.interfaces = ()
            self.session_since = self.last_seen if self.last_seen is not None else self.session_since
            while len(self._sessions) > MAX_SESSIONS:
                self._sessions.popitem(last=False)
        is_new = numbers.accept(number)
        if is_new:  # a repeated batch is no sample of the clock
            self.clock.note(sent_at, now)
        return is_new

    def alive(self, now: float, lease: float) -> bool:
        """Returns whether the host has reported, and its lease still runs."""
        return self.last_seen is not None and now - self.last_seen <= lease

    def to_body(self) -> HostBody:
        """Returns the record for the journal."""
        recent, unconfirmed = self.clock.samples()
        return HostBody(
            sessions=tuple(
                (name, numbers.top, tuple(sorted(numbers.ahead))) for name, numbers in self._sessions.items()
            ),
            clock=tuple(recent),
            strays=tuple(unconfirmed),
            marks_acknowledgements=self.marks_acknowledgements,
            tunnel_ports=self.tunnel_ports,
        )

    @classmethod
    def from_body(cls, body: HostBody, now: float) -> HostRecord:
        """Returns the host of a journal record. Its lease runs anew from ``now``: the controller was away before."""
        host = cls()
        host.last_seen = host.session_since = now
        host.clock = HostClock(body.clock, body.strays)
        host.marks_acknowledgements, host.tunnel_ports = body.marks_acknowledgements, body.tunnel_ports
        for name, top, ahead in body.sessions:
            host._sessions[name] = BatchNumbers(top, set(ahead))
        return host
