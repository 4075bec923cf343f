"""The interfaces of a host as values: what they are, what they lie on, and how much they have carried. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple


class Count(NamedTuple):
    """How much was sent, and how much was received."""

    sent: int = 0
    received: int = 0

    def plus(self, other: Count) -> Count:
        """Returns the sum."""
        return Count(self.sent + other.sent, self.received + other.received)

    def minus(self, other: Count) -> Count:
        """Returns the difference, which may be below 0."""
        return Count(self.sent - other.sent, self.received - other.received)

    @property
    def is_possible(self) -> bool:
        """Whether no direction is below 0."""
        return self.sent >= 0 and self.received >= 0


TunnelKind = Literal["vxlan", "geneve", "ipip"]
"""The kinds of tunnels whose packets have a packet behind a header that can be looked through."""


class Tunnel(NamedTuple):
    """How a tunnel's device makes its outer headers.

    ``udp_port`` is where they go to; 0 for a kind without UDP. ``inherits``: the outer header gets the DSCP of the
    packet inside. ``is_by_packet``: another program, such as Open vSwitch, says for each packet what its header is.
    """

    kind: TunnelKind
    udp_port: int = 0
    inherits: bool = False
    is_by_packet: bool = False


class Netdev(NamedTuple):
    """A network interface of Linux.

    ``link_type`` is one of linux/if_arp.h. ``kind`` is empty for a physical interface, else such as vlan or veth.
    ``lower`` is the index of the interface that a VLAN lies on, ``master`` that of the bond or bridge that it is part
    of; None: there is none in this network namespace. ``bond_mode`` is one of linux/if_bonding.h, for a bond.
    ``tunnel`` is set for the device of a tunnel of a known kind.
    """

    ifindex: int
    name: str
    link_type: int
    kind: str = ""
    lower: int | None = None
    master: int | None = None
    bytes: Count = Count()
    packets: Count = Count()
    bond_mode: int | None = None
    tunnel: Tunnel | None = None


class Network(NamedTuple):
    """The interfaces of a network namespace by index, and which of them has an address (4 or 16 bytes)."""

    netdevs: Mapping[int, Netdev]
    addresses: Mapping[bytes, int]
