"""One host that has asked to be added, as a value, and its record in the journal. Pure."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Literal, NamedTuple

from controller.journal.bodies import EnrolmentBody
from controller.model import Host
from controller.wire.hosts import EnrolmentState, HostDecision, HostRequest

DEFAULT_RATE_BPS = 1e9
"""The rate of a link that nobody has told, in bit/s. It is that of a host in the settings, too."""
FoundBy = Literal["announcement", "operator"]


class Site(NamedTuple):
    """Where a host is attached: the datapath id of its switch, and the OpenFlow port number there."""

    switch: int
    port: int

    def __str__(self) -> str:
        return f"port {self.port} of switch {self.switch:016x}"


@dataclass(frozen=True, slots=True)
class Enrolment:
    """A host that has asked.

    ``announcement`` is what it announces itself with, so that nobody else can say where it is. Times are in seconds
    since the Unix epoch. ``asked_from`` is the IP address of its first request. ``decided_by`` is the name of who has
    approved or refused it. ``site`` is where it is attached, and ``found_by`` who says so.
    """

    name: str
    request: HostRequest
    announcement: str
    asked_at: float
    asked_from: str
    state: EnrolmentState = "pending"
    decision: HostDecision | None = None
    decided_at: float | None = None
    decided_by: str | None = None
    site: Site | None = None
    found_by: FoundBy | None = None

    @property
    def address(self) -> str:
        """The IPv4 address in the network that is ordered: the operator's word goes before the host's."""
        chosen = self.decision.address if self.decision is not None else None
        return chosen or self.request.addresses[0]

    @property
    def addresses(self) -> tuple[str, ...]:
        """All addresses of the host, that in the network that is ordered first."""
        return tuple(dict.fromkeys((self.address, *self.request.addresses)))

    @property
    def is_rate_known(self) -> bool:
        """Whether the host or an operator has told the rates of its link."""
        return None not in (self._told_bps("ingress_bps"), self._told_bps("egress_bps"))

    def host(self) -> Host:
        """Returns the host as the model has it."""
        switch, port = self.site if self.site is not None else (None, None)
        return Host(
            name=self.name,
            ingress_bps=self._told_bps("ingress_bps") or DEFAULT_RATE_BPS,
            egress_bps=self._told_bps("egress_bps") or DEFAULT_RATE_BPS,
            address=self.address,
            switch=switch,
            switch_port=port,
        )

    def _told_bps(self, name: Literal["ingress_bps", "egress_bps"]) -> float | None:
        chosen: float | None = getattr(self.decision, name, None)
        told: float | None = getattr(self.request, name)
        return chosen or told

    def to_body(self) -> EnrolmentBody:
        """Returns the record for the journal."""
        return EnrolmentBody(**{name: getattr(self, name) for name in _FIELDS})

    @classmethod
    def from_body(cls, name: str, body: EnrolmentBody) -> Enrolment:
        """Returns the host of a journal record."""
        values = {field: getattr(body, field) for field in _FIELDS}
        return cls(name=name, **values | {"site": Site(*body.site) if body.site is not None else None})


def completed(first: HostRequest, later: HostRequest) -> HostRequest:
    """Returns a host's first request, with what it had not told then from a later one."""
    told = first.model_dump(exclude_none=True)
    return first.model_copy(update={name: value for name, value in later if name not in told})


_FIELDS = tuple(entry.name for entry in fields(Enrolment) if entry.name != "name")
