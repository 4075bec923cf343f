"""The filters of a host's tree, which lead packets to the leaf of their class by their DSCP. Pure.

A DSCP is in the second byte of an IPv4 header and across the first two bytes of an IPv6 header (RFC 2474). The kernel
keeps the filters of each protocol under a preference of their own. A packet of a VLAN counts as its tag's protocol,
also where the tag is only noted beside the packet: its filters compare the IP version, too. ARP and neighbour discovery
(RFC 4861) go with class 0, because no other traffic flows without their answers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal, NamedTuple

from controller.code_points import MOST, CodePoints

Protocol = Literal["ip", "arp", "ipv6", "802.1Q"]

DSCP_PREF = 3
ARP_PREF = 4
DSCP_IPV6_PREF = 5
DISCOVERY_PREF = 6
TAGGED_PREF = 7
"""The preferences of the filters. ``host_reporter.nic.tensorlights.tree`` uses those before."""

PREFS: Mapping[int, Protocol] = {
    DSCP_PREF: "ip",
    ARP_PREF: "arp",
    DSCP_IPV6_PREF: "ipv6",
    DISCOVERY_PREF: "ipv6",
    TAGGED_PREF: "802.1Q",
}
"""The protocol of each preference: the kernel allows only one."""

ETHERTYPES: Mapping[Protocol, int] = {"ip": 0x0800, "arp": 0x0806, "ipv6": 0x86DD, "802.1Q": 0x8100}
"""The number of each protocol in a frame (IEEE 802)."""

_TAGGED_IPV6, _TAGGED_OTHERS = 0x40, 0x80
"""In a VLAN the filters of all protocols share a preference; from these numbers on are those of IPv6, and the rest."""


class Key(NamedTuple):
    """Four bytes of a packet that a filter compares: those ``at`` so many bytes behind the beginning of its header."""

    value: int
    mask: int
    at: int


class Wanted(NamedTuple):
    """A filter that the tree has: its preference, its number there, what it compares, and the class of its packets."""

    pref: int
    number: int
    keys: tuple[Key, ...]
    service_class: int


def of_plan(points: CodePoints) -> Iterator[Wanted]:
    """Yields the filters of a tree that serves these DSCPs, except that of ARP."""
    served = points.served()
    for dscp, k in served.items():
        yield Wanted(DSCP_PREF, dscp, (over_ipv4(dscp),), k)
    for dscp, k in served.items():
        yield Wanted(DSCP_IPV6_PREF, dscp, (over_ipv6(dscp),), k)
    for number, keys in enumerate(_DISCOVERY.values(), 1):
        yield Wanted(DISCOVERY_PREF, number, keys, 0)
    for dscp, k in served.items():
        yield Wanted(TAGGED_PREF, dscp, (_with_version(over_ipv4(dscp), 4),), k)
        yield Wanted(TAGGED_PREF, _TAGGED_IPV6 + dscp, (_with_version(over_ipv6(dscp), 6),), k)
    yield Wanted(TAGGED_PREF, _TAGGED_OTHERS, _ARP_IN_VLAN, 0)
    for number, keys in enumerate(_DISCOVERY.values(), _TAGGED_OTHERS + 1):
        yield Wanted(TAGGED_PREF, number, _in_vlan(keys), 0)


def over_ipv4(dscp: int) -> Key:
    """Returns what a filter compares for a DSCP in an IPv4 header."""
    return Key(dscp << 18, 0x00FC0000, 0)


def over_ipv6(dscp: int) -> Key:
    """Returns what a filter compares for a DSCP in an IPv6 header."""
    return Key(dscp << 22, 0x0FC00000, 0)


def words(keys: tuple[Key, ...]) -> str | None:
    """Returns what a filter with these keys matches; None where it is none of the tree's."""
    if keys in _NAMED:
        return _NAMED[keys]
    if len(keys) != 1 or keys[0].at != 0:
        return None
    value = keys[0].value
    for place, version, over in ((over_ipv4(MOST), 4, ""), (over_ipv6(MOST), 6, " over IPv6")):
        dscp = (value & place.mask) // (place.mask & -place.mask)
        if keys[0] == (value & place.mask, place.mask, 0):
            return f"DSCP {dscp}{over}"
        if keys[0] == _with_version(Key(value & place.mask, place.mask, 0), version):
            return f"DSCP {dscp}{over} in a VLAN"
    return None


def _in_vlan(keys: tuple[Key, ...]) -> tuple[Key, ...]:
    return (_with_version(Key(0, 0, 0), 6), *keys)


def _with_version(key: Key, version: int) -> Key:
    return Key(key.value | version << 28, key.mask | 0xF0000000, key.at)


def _discovery(value: int, mask: int) -> tuple[Key, ...]:
    """Returns what a filter compares for ICMPv6 (58) of some types."""
    return Key(58 << 8, 0x0000FF00, 4), Key(value << 24, mask << 24, 40)


_DISCOVERY = {
    "neighbour discovery, types 132 to 135": _discovery(0x84, 0xFC),
    "neighbour discovery, types 136 and 137": _discovery(0x88, 0xFE),
}
"""It has the types 133 to 137. Type 132 always comes behind another header, so that no filter here matches it."""

_ARP_IN_VLAN = (Key(0x00010800, 0xFFFFFFFF, 0),)
"""The types of addresses with which ARP begins: Ethernet and IPv4 (RFC 826)."""

_NAMED: Mapping[tuple[Key, ...], str] = {
    _ARP_IN_VLAN: "ARP in a VLAN",
    **{keys: named for named, keys in _DISCOVERY.items()},
    **{_in_vlan(keys): f"{named}, in a VLAN" for named, keys in _DISCOVERY.items()},
}
