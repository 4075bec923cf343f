"""The messages on hosts: how one asks to be enrolled, how an operator decides, and what is known of each."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from controller.wire.addresses import Dpid, HostAddress, Mac, PortNumber, Rate
from controller.wire.base import Message, Name

MAX_ADDRESSES = 16
INTERFACE_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,14}$"
EnrolmentState = Literal["pending", "approved", "refused"]


class HostRequest(Message):
    """What a host says of itself when it asks to be enrolled."""

    addresses: Annotated[tuple[HostAddress, ...], Field(min_length=1, max_length=MAX_ADDRESSES, strict=False)]
    """The IPv4 addresses of its interface. The first one is that in the network that is ordered."""
    interface: Annotated[str, Field(pattern=INTERFACE_PATTERN)] | None = None
    """The name of the interface."""
    mac: Mac | None = None
    """The MAC address of the interface. null: the host cannot be found at a switch."""
    ingress_bps: Rate | None = None
    """The rate of its link towards the host, in bit/s. null: the interface does not tell it."""
    egress_bps: Rate | None = None
    """The rate of its link from the host, in bit/s. null: the interface does not tell it."""
    token_sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    """The SHA-256 of the token that the agent has made for itself, in hexadecimal. The token counts once the host is
    approved."""


class HostDecision(Message):
    """What an operator decides on a host that has asked. What is left out stays as the host has said it."""

    state: Literal["approved", "refused"]
    """The decision."""
    address: HostAddress | None = None
    """The IPv4 address of the host in the network that is ordered."""
    ingress_bps: Rate | None = None
    """The rate of its link towards the host, in bit/s."""
    egress_bps: Rate | None = None
    """The rate of its link from the host, in bit/s."""
    switch: Dpid | None = None
    """The datapath id of its switch: a number, or hexadecimal text. It needs port."""
    port: PortNumber | None = None
    """The OpenFlow port number at its switch. It needs switch."""

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


class HostView(Message):
    """A host of the settings, or one that has asked to be enrolled."""

    name: Name
    """The name of the host."""
    state: Literal["listed", "pending", "approved", "refused"]
    """listed: it is in the settings. pending: it has asked, and nobody has decided. approved and refused: what was
    decided."""
    addresses: Annotated[tuple[str, ...], Field(strict=False)] = ()
    """Its IPv4 addresses. The first one is that in the network that is ordered."""
    mac: str | None = None
    """The MAC address of its interface. null: it is not known."""
    interface: str | None = None
    """The name of its interface. null: it is not known."""
    ingress_bps: float
    """The rate of its link towards the host, in bit/s."""
    egress_bps: float
    """The rate of its link from the host, in bit/s."""
    is_rate_known: bool = True
    """Whether somebody has told the rates. Otherwise they are taken for 1 Gbit/s."""
    switch: str | None = None
    """The datapath id of its switch, 16 hexadecimal digits. null: it is not known."""
    port: int | None = None
    """The OpenFlow port number at its switch. null: it is not known."""
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
    announcement: str | None = None
    """What the host is to announce itself with, in hexadecimal, so that its switch and port are found. Only the host
    itself is told, and only as long as it is looked for."""
    ask_again_seconds: float | None = None
    """After how many seconds the host should ask again what was decided. Only the host itself is told."""


class HostList(Message):
    """Body of ``GET /v1/hosts``."""

    hosts: Annotated[tuple[HostView, ...], Field(strict=False)]
    """The hosts of the settings, then those that have asked, by name."""
