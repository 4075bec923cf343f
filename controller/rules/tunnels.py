"""The rules that tell jobs apart inside a tunnel, by the DSCP of its outer header. Pure.

Pods of several jobs may share a pair of hosts. A switch sees the same two addresses and the same UDP port for all of
them. A host whose agent sets outer DSCPs by the packets inside says at which UDP ports (see ``wire.HostReport``). Its
packets to these ports keep their DSCP, and get the class of that DSCP, unless one job alone uses the pair. All others'
DSCPs are cleared, so no other host, and no program of this one, gets a class in this way.

A DSCP that other programs use, too, is never taken for a class here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import product
from typing import NamedTuple

from controller.code_points import CodePoints
from controller.model import Snapshot, Switch
from controller.rules.families import addresses, from_address
from controller.rules.kinds import TUNNEL_PORTS
from controller.rules.metadata import NOTE_JOB_KIND, OF_JOB_KIND_OF_NO_JOB_ALONE
from controller.rules.priorities import BY_OUTER_DSCP, FROM_TUNNEL, KIND
from controller.rules.rule import IP_FAMILIES, PROTO_UDP, Match, Rule, SetClass, Table


class Sender(NamedTuple):
    """An address of a host that sets outer DSCPs, where it is attached (None: not known), and its tunnels' ports."""

    address: str
    switch: int | None
    switch_port: int | None
    udp_ports: tuple[int, ...]


def senders(snapshot: Snapshot) -> tuple[Sender, ...]:
    """Returns the hosts of a snapshot that set outer DSCPs."""
    return tuple(
        Sender(address, host.switch, host.switch_port, ports)
        for name, ports in sorted(snapshot.tunnels.items())
        if (host := snapshot.hosts.get(name)) is not None
        for address in addresses(host)
    )


@lru_cache(maxsize=16)
def tunnel_rules(switches: tuple[Switch, ...], of: tuple[Sender, ...], points: CodePoints) -> frozenset[Rule]:
    """Returns the rules for these hosts' tunnels; none without hosts. ``points`` has as many classes as there are.

    A host whose port is known is believed at that port alone. A port that the switch does not trust gets no rule.
    """
    if not of:
        return frozenset()
    rules: list[Rule] = []
    more = sorted({port for sender in of for port in sender.udp_ports} - set(TUNNEL_PORTS))
    for switch in switches:
        rules += _kept(switch, of)
        rules += _noted(switch.dpid, more)
        rules += _served(switch.dpid, points)
    return frozenset(rules)


def _kept(switch: Switch, of: Iterable[Sender]) -> Iterator[Rule]:
    """Yields the rules by which packets keep the DSCP of their outer header."""
    for address, home, port, udp_ports in of:
        if home not in (None, switch.dpid):
            continue
        if home is not None and switch.trusted_ports is not None and port not in switch.trusted_ports:
            continue
        for udp_port in udp_ports:
            match = Match(in_port=None if home is None else port, ip_proto=PROTO_UDP, udp_dst=udp_port)
            match = from_address(address, match)
            yield Rule(switch.dpid, Table.CLASSIFY, FROM_TUNNEL, match, (SetClass(None),), Table.KINDS)


def _noted(dpid: int, udp_ports: Iterable[int]) -> Iterator[Rule]:
    """Yields the rules that note what goes to ports of tunnels that no standard names."""
    for family, port in product(IP_FAMILIES, udp_ports):
        match = Match(eth_type=family, ip_proto=PROTO_UDP, udp_dst=port)
        yield Rule(dpid, Table.KINDS, KIND, match, (NOTE_JOB_KIND,), Table.SOURCES)


def _served(dpid: int, points: CodePoints) -> Iterator[Rule]:
    """Yields the rules that give a packet the class of its DSCP, where several jobs share a pair of hosts."""
    for k, dscp in enumerate(points.classes):
        for family in IP_FAMILIES if dscp in points.exclusive else ():
            match = Match(eth_type=family, ip_dscp=dscp, metadata=OF_JOB_KIND_OF_NO_JOB_ALONE)
            yield Rule(dpid, Table.PLACES, BY_OUTER_DSCP, match, (SetClass(k),), Table.FORWARD)
