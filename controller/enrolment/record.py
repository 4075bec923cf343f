"""One host that has asked to be added, as a value, and its record in the journal. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Literal, NamedTuple

from controller.journal.bodies import EnrolmentBody
from controller.model import Host, endpoint
from controller.wire.hosts import EnrolmentState, HostDecision, HostRequest, LinkRequest

DEFAULT_RATE_BPS = 1e9
"""The rate of a link that nobody has told, in bit/s. It is that of a host in the settings, too."""
FoundBy = Literal["announcement", "operator"]


class Site(NamedTuple):
    """Where a host is attached: the datapath id of its switch, and the OpenFlow port number there."""

    switch: int
    port: int

    def __str__(self) -> str:
        return f"port {self.port} of switch {self.switch:016x}"


class Seat(NamedTuple):
    """An interface of a host that has asked: the host's name, and the MAC address."""

    host: str
    mac: str


class Link(NamedTuple):
    """An interface of a host that has asked, as an operator has corrected it. What nobody has told is None."""

    interface: str | None
    addresses: tuple[str, ...]
    mac: str | None
    ingress_bps: float | None
    egress_bps: float | None
    site: Site | None
    found_by: FoundBy | None

    def host(self, name: str, interface: str | None) -> Host:
        """Returns the interface as the model has it."""
        first = next((address for address in self.addresses if ":" not in address), None)
        switch, port = self.site if self.site is not None else (None, None)
        return Host(
            name=name,
            ingress_bps=self.ingress_bps or DEFAULT_RATE_BPS,
            egress_bps=self.egress_bps or DEFAULT_RATE_BPS,
            address=first,
            switch=switch,
            switch_port=port,
            more_addresses=tuple(address for address in self.addresses if address != first),
            mac=self.mac,
            interface=interface,
        )


@dataclass(frozen=True, slots=True)
class Enrolment:
    """A host that has asked.

    ``announcement`` is what it announces itself with, so that nobody else can say where it is. Times are in seconds
    since the Unix epoch. ``asked_from`` is the IP address of its first request. ``decided_by`` is the name of who has
    approved or refused it. ``site`` is where its first interface is attached, and ``found_by`` who says
    so. ``more_sites`` is where its other interfaces have announced themselves, by name.
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
    more_sites: Mapping[str, Site] = field(default_factory=dict)

    @property
    def address(self) -> str:
        """The address in the network that is ordered: the operator's word goes before the host's."""
        chosen = self.decision.address if self.decision is not None else None
        return chosen or self.request.first_address

    @property
    def addresses(self) -> tuple[str, ...]:
        """All addresses of the host, that in the network that is ordered first."""
        of_links = (address for link in self.request.links for address in link.addresses)
        return tuple(dict.fromkeys((self.address, *self.request.addresses, *of_links)))

    @property
    def links(self) -> tuple[Link, ...]:
        """All its interfaces. An agent that tells none has one."""
        told = self.request
        if not told.links:
            return (self._link(told, told.interface, (self.address,), self.site, self.found_by),)
        first, *more = told.links
        addresses = tuple(dict.fromkeys((self.address, *first.addresses)))
        return (
            self._link(first, first.interface, addresses, self.site, self.found_by),
            *(self._link(link, link.interface, link.addresses, self.more_sites.get(link.interface)) for link in more),
        )

    def _link(
        self,
        told: HostRequest | LinkRequest,
        interface: str | None,
        addresses: tuple[str, ...],
        site: Site | None,
        found_by: FoundBy | None = "announcement",
    ) -> Link:
        ingress_bps = getattr(self.decision, "ingress_bps", None) or told.ingress_bps
        egress_bps = getattr(self.decision, "egress_bps", None) or told.egress_bps
        found_by = found_by if site is not None else None
        return Link(interface, addresses, told.mac, ingress_bps, egress_bps, site, found_by)

    @property
    def is_rate_known(self) -> bool:
        """Whether the host or an operator has told the rates of all its links."""
        return all(None not in (link.ingress_bps, link.egress_bps) for link in self.links)

    def hosts(self) -> tuple[Host, ...]:
        """Returns its interfaces as the model has them; the only one has the host's own name."""
        links = self.links
        if len(links) == 1:
            return (links[0].host(self.name, None),)
        return tuple(link.host(endpoint(self.name, link.interface), link.interface) for link in links)

    def link_with(self, mac: str) -> Link | None:
        """Returns the interface with this MAC address."""
        return next((link for link in self.links if link.mac == mac), None)

    def link_at(self, site: Site) -> Link | None:
        """Returns the interface that is attached there."""
        return next((link for link in self.links if link.site == site), None)

    def moved(self, mac: str, site: Site | None) -> Enrolment:
        """Returns the host with an interface where it has announced itself; None: nobody knows where it is."""
        if mac == self.request.mac:
            return replace(self, site=site, found_by="announcement" if site is not None else None)
        name = next(link.interface for link in self.request.links if link.mac == mac)
        others = {other: place for other, place in self.more_sites.items() if other != name}
        return replace(self, more_sites=others if site is None else others | {name: site})

    def to_body(self) -> EnrolmentBody:
        """Returns the record for the journal."""
        return EnrolmentBody(**{name: getattr(self, name) for name in _FIELDS})

    @classmethod
    def from_body(cls, name: str, body: EnrolmentBody) -> Enrolment:
        """Returns the host of a journal record."""
        values = {field: getattr(body, field) for field in _FIELDS}
        site = Site(*body.site) if body.site is not None else None
        more_sites = {interface: Site(*each) for interface, each in body.more_sites.items()}
        return cls(name=name, **values | {"site": site, "more_sites": more_sites})


def completed(first: HostRequest, later: HostRequest) -> HostRequest:
    """Returns a host's first request, with what it had not told then from a later one."""
    told = first.model_dump(exclude_none=True)
    return first.model_copy(update={name: value for name, value in later if name not in told})


def within(request: HostRequest, allows: Callable[[str], bool]) -> HostRequest:
    """Returns a request with those addresses of its links alone that are allowed, and without links that have none."""
    links = [
        link.model_copy(update={"addresses": tuple(address for address in link.addresses if allows(address))})
        for link in request.links
    ]
    return request.model_copy(update={"links": tuple(link for link in links if link.addresses)})


_FIELDS = tuple(entry.name for entry in fields(Enrolment) if entry.name != "name")
