"""The messages on hosts: how one asks to be enrolled, how an operator decides, and what is known of each."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from controller.wire.addresses import (
    MAX_ADDRESSES,
    MAX_SERVER_INTERFACES,
    AnyAddress,
    Dpid,
    HostAddress,
    InterfaceName,
    Mac,
    PortNumber,
    Rate,
)
from controller.wire.base import Message, Name
from controller.wire.interfaces import InterfaceTraffic

EnrolmentState = Literal["pending", "approved", "refused"]


MAX_LINK_ADDRESSES = 64
"""Let a host that asks have this many addresses, over all its interfaces."""


class LinkRequest(Message):
    """What a host says of one of its interfaces when it asks to be enrolled."""

    interface: InterfaceName
    """The name of the interface."""
    addresses: Annotated[tuple[AnyAddress, ...], Field(min_length=1, max_length=MAX_ADDRESSES, strict=False)]
    """Its addresses, IPv4 and IPv6."""
    mac: Mac | None = None
    """Its MAC address. null: it cannot be found at a switch."""
    ingress_bps: Rate | None = None
    """The rate of its link towards the host, in bit/s. null: it does not tell it."""
    egress_bps: Rate | None = None
    """The rate of its link from the host, in bit/s. null: it does not tell it."""


class HostRequest(Message):
    """What a host says of itself when it asks to be enrolled."""

    addresses: Annotated[tuple[HostAddress, ...], Field(max_length=MAX_ADDRESSES, strict=False)]
    """The IPv4 addresses of its first interface. The first one is that in the network that is ordered. Empty: it has
    none, and links has its IPv6 addresses."""
    interface: InterfaceName | None = None
    """The name of the first interface."""
    mac: Mac | None = None
    """The MAC address of the first interface. null: the host cannot be found at a switch."""
    ingress_bps: Rate | None = None
    """The rate of its link towards the host, in bit/s. null: the interface does not tell it."""
    egress_bps: Rate | None = None
    """The rate of its link from the host, in bit/s. null: the interface does not tell it."""
    token_sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    """The SHA-256 of the token that the agent has made for itself, in hexadecimal. The token counts once the host is
    approved."""
    links: Annotated[tuple[LinkRequest, ...], Field(max_length=MAX_SERVER_INTERFACES, strict=False)] = ()
    """All interfaces in the network that is ordered, each with its addresses of both families. The first one is that of
    the fields before. Empty: it has one, whose addresses are all IPv4."""

    @property
    def first_address(self) -> str:
        """The first address of its first interface, of IPv4 where it has one."""
        return self.addresses[0] if self.addresses else self.links[0].addresses[0]

    @model_validator(mode="after")
    def _links_are_several(self) -> Self:
        first = self.links[:1]
        if not self.addresses and not first:
            raise ValueError("it has neither addresses nor links; a host is known by its addresses")
        if any((link.interface, link.mac) != (self.interface, self.mac) for link in first):
            raise ValueError("the first of links is the interface of the request, with its name and MAC address")
        if self.addresses and any(self.addresses[0] not in link.addresses for link in first):
            raise ValueError(f"the first of links has no address {self.addresses[0]}, which is that of the request")
        addresses = [address for link in self.links for address in link.addresses]
        if len(addresses) > MAX_LINK_ADDRESSES:
            raise ValueError(f"links have {len(addresses)} addresses; {MAX_LINK_ADDRESSES} are the most")
        for what in (addresses, [link.interface for link in self.links], [link.mac for link in self.links if link.mac]):
            if len(set(what)) < len(what):
                raise ValueError("each of links has a name, a MAC address and addresses of its own")
        return self


class HostDecision(Message):
    """What an operator decides on a host that has asked. What is left out stays as the host has said it."""

    state: Literal["approved", "refused"]
    """The decision."""
    address: AnyAddress | None = None
    """The address of the host in the network that is ordered, IPv4 or IPv6, at its first interface."""
    ingress_bps: Rate | None = None
    """The rate of its link towards the host, in bit/s; of each link, where it has several."""
    egress_bps: Rate | None = None
    """The rate of its link from the host, in bit/s; of each link, where it has several."""
    switch: Dpid | None = None
    """The datapath id of the switch of its first interface: a number, or hexadecimal text. It needs port."""
    port: PortNumber | None = None
    """The OpenFlow port number at that switch. It needs switch."""

    @model_validator(mode="after")
    def _site_is_whole(self) -> Self:
        if (self.switch is None) != (self.port is None):
            raise ValueError("a port needs its switch, and a switch its port; give both or none")
        return self


class HostPut(Message):
    """Body of ``PUT /v1/hosts/{host}``: a host's request, or an operator's decision on it."""

    request: HostRequest | None = None
    """A host asks to be enrolled, or asks again what was decided."""
    decision: HostDecision | None = None
    """An operator approves or refuses the host."""

    @model_validator(mode="after")
    def _is_one_of_two(self) -> Self:
        if (self.request is None) == (self.decision is None):
            raise ValueError("it has either request, from a host, or decision, from an operator")
        return self


class HostLink(Message):
    """An interface of a host that has several in the network that is ordered, and its link."""

    interface: str
    """The name of the interface on the host."""
    addresses: Annotated[tuple[str, ...], Field(strict=False)] = ()
    """Its addresses, IPv4 and IPv6."""
    mac: str | None = None
    """Its MAC address. null: it is not known."""
    ingress_bps: float
    """The rate of its link towards the host, in bit/s."""
    egress_bps: float
    """The rate of its link from the host, in bit/s."""
    switch: str | None = None
    """The datapath id of its switch, 16 hexadecimal digits. null: it is not known."""
    port: int | None = None
    """The OpenFlow port number at its switch. null: it is not known."""


class HostView(Message):
    """A host of the settings, or one that has asked to be enrolled."""

    name: Name
    """The name of the host."""
    state: Literal["listed", "pending", "approved", "refused"]
    """listed: it is in the settings. pending: it has asked, and nobody has decided. approved and refused: what was
    decided."""
    addresses: Annotated[tuple[str, ...], Field(strict=False)] = ()
    """Its addresses, IPv4 and IPv6. The first one is that in the network that is ordered."""
    mac: str | None = None
    """The MAC address of its interface. null: it is not known, or the host has several."""
    interface: str | None = None
    """The name of its interface. null: it is not known, or the host has several."""
    ingress_bps: float
    """The rate of its link towards the host, in bit/s; of all its links together."""
    egress_bps: float
    """The rate of its link from the host, in bit/s; of all its links together."""
    is_rate_known: bool = True
    """Whether somebody has told the rates. Otherwise they are taken for 1 Gbit/s."""
    switch: str | None = None
    """The datapath id of its switch, 16 hexadecimal digits. null: it is not known, or the host has several links."""
    port: int | None = None
    """The OpenFlow port number at its switch. null: it is not known, or the host has several links."""
    links: Annotated[tuple[HostLink, ...], Field(strict=False)] = ()
    """Its interfaces in the network that is ordered, where it has several. Empty: it has one, which the fields before
    describe."""
    found_by: Literal["settings", "announcement", "operator"] | None = None
    """Who says where the host is attached: the settings, a packet of the host itself, or an operator. null: nobody."""
    agent: Literal["reporting", "silent", "none"] = "none"
    """Whether its agent reports, is silent, or was never heard of."""
    asked_at: float | None = None
    """When it asked first, in seconds since 1970-01-01 UTC. null: it is in the settings."""
    asked_from: str | None = None
    """The IP address that it asked from."""
    decided_at: float | None = None
    """When it was approved or refused, in seconds since 1970-01-01 UTC."""
    decided_by: str | None = None
    """The name of who decided; at-once where the settings did."""
    problems: Annotated[tuple[str, ...], Field(strict=False)] = ()
    """What an operator should look at, such as another host that asks for the same address."""
    interfaces: Annotated[tuple[InterfaceTraffic, ...], Field(strict=False)] = ()
    """What its interfaces have carried, and how much of it no connection explains. Empty: no job runs there, or its
    agent does not tell."""
    announcement: str | None = None
    """What the host is to announce itself with, in hexadecimal, so that its switch and port are found. Only the host
    itself is told, and only as long as it is looked for."""
    ask_again_seconds: float | None = None
    """After how many seconds the host should ask again what was decided. Only the host itself is told."""


class HostList(Message):
    """Body of ``GET /v1/hosts``."""

    hosts: Annotated[tuple[HostView, ...], Field(strict=False)]
    """The hosts of the settings, then those that have asked, by name."""
