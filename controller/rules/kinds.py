"""The kinds of packets that a switch tells apart by their protocol: those that jobs use beside plain TCP, and those
that control the network. Pure.

Numbers of protocols, ports and types are those of IANA's registries; sources of single ones stand beside them.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from controller.code_points import CNP_DSCP
from controller.model import ROCEV2_PORT
from controller.rules.metadata import NOTE_BOTH_KINDS, NOTE_CONTROL_KIND, NOTE_JOB_KIND
from controller.rules.priorities import CONTROL_KIND, KIND, MISS
from controller.rules.rule import (
    ETH_ARP,
    ETH_IPV4,
    ETH_IPV6,
    ETH_PTP,
    ETH_ROCE,
    IP_FAMILIES,
    PROTO_ICMP,
    PROTO_ICMPV6,
    PROTO_TCP,
    PROTO_UDP,
    Match,
    Rule,
    SetMetadata,
    Table,
)

TUNNEL_PORTS = (4789, 8472, 6081, 51820)
"""The UDP ports of VXLAN (RFC 7348; 8472 is Linux's own), Geneve (RFC 8926) and WireGuard (as its tools propose)."""
_TUNNEL_PROTOCOLS = (4, 41, 47, 50)
"""The IP protocols of IPv4 and IPv6 in IP, GRE and ESP."""

_BGP_PORT = 179
_OSPF_PROTOCOL = 89
_BFD_PORTS = (3784, 3785, 4784)
"""BFD's control and echo packets (RFC 5881), and those over several hops (RFC 5883)."""
_PTP_PORTS = (319, 320)
"""The events and the general messages of PTP (IEEE 1588)."""

_BRIDGE_GROUP = ("01:80:c2:00:00:00", "ff:ff:ff:ff:ff:f0")
"""The destinations of STP, LACP, LLDP and the like, which stay on one link (IEEE 802.1Q, table 8-1)."""
_ICMP_ERRORS = (3, 11, 12)
"""Destination unreachable, which includes "fragmentation needed", time exceeded, and parameter problem (RFC 792)."""
_ICMPV6_ERRORS = (1, 2, 3, 4)
"""RFC 4443, section 2.1. "Packet too big" is 2."""
_ICMPV6_NEIGHBOURS = (130, 131, 132, 133, 134, 135, 136, 137, 143)
"""Multicast listener discovery (RFC 2710, RFC 3810) and neighbour discovery (RFC 4861)."""


def always_first() -> Iterator[Match]:
    """Yields what matches the packets without which a network does not work, wherever they come from."""
    yield Match(eth_type=ETH_ARP)
    yield Match(eth_dst=_BRIDGE_GROUP)
    for icmp_type in _ICMP_ERRORS:
        yield Match(eth_type=ETH_IPV4, ip_proto=PROTO_ICMP, icmpv4_type=icmp_type)
    for icmp_type in (*_ICMPV6_ERRORS, *_ICMPV6_NEIGHBOURS):
        yield Match(eth_type=ETH_IPV6, ip_proto=PROTO_ICMPV6, icmpv6_type=icmp_type)


def notifications() -> Iterator[Match]:
    """Yields what matches RoCE's notifications of congestion."""
    for family in IP_FAMILIES:
        yield Match(eth_type=family, ip_proto=PROTO_UDP, udp_dst=ROCEV2_PORT, ip_dscp=CNP_DSCP)


@lru_cache(maxsize=16)
def kind_rules(switches: tuple[int, ...]) -> frozenset[Rule]:
    """Returns the rules that note the kind of each packet."""
    return frozenset(
        Rule(dpid, Table.KINDS, priority, match, (note,) if note is not None else (), Table.SOURCES)
        for dpid in switches
        for priority, match, note in _noted()
    )


def _noted() -> Iterator[tuple[int, Match, SetMetadata | None]]:
    yield MISS, Match(), None
    yield CONTROL_KIND, Match(eth_type=ETH_PTP), NOTE_CONTROL_KIND
    yield KIND, Match(eth_type=ETH_ROCE), NOTE_JOB_KIND
    for family in IP_FAMILIES:
        for match in _of_jobs(Match(eth_type=family)):
            yield KIND, match, NOTE_JOB_KIND
        for match in _of_control(Match(eth_type=family)):
            yield CONTROL_KIND, match, NOTE_CONTROL_KIND
    for match in notifications():
        yield CONTROL_KIND, match, NOTE_BOTH_KINDS


def _of_jobs(ip: Match) -> Iterator[Match]:
    for port in (ROCEV2_PORT, *TUNNEL_PORTS):
        yield ip._replace(ip_proto=PROTO_UDP, udp_dst=port)
    for protocol in _TUNNEL_PROTOCOLS:
        yield ip._replace(ip_proto=protocol)
    # Open vSwitch shows the ports of fragments, the first one included, as 0.
    yield ip._replace(ip_proto=PROTO_TCP, tcp_src=0, tcp_dst=0)


def _of_control(ip: Match) -> Iterator[Match]:
    yield ip._replace(ip_proto=PROTO_TCP, tcp_src=_BGP_PORT)
    yield ip._replace(ip_proto=PROTO_TCP, tcp_dst=_BGP_PORT)
    yield ip._replace(ip_proto=_OSPF_PROTOCOL)
    for port in (*_BFD_PORTS, *_PTP_PORTS):
        yield ip._replace(ip_proto=PROTO_UDP, udp_dst=port)
