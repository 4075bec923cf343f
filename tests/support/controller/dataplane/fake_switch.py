"""A switch, and a network of switches, in pure Python: they evaluate compiled rules on packets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from controller.dataplane.openflow import GATE_PRIORITY
from controller.rules.compiler import (
    ETH_ARP,
    ETH_IPV4,
    PROTO_TCP,
    Match,
    Normal,
    Output,
    Rule,
    SetClass,
    SetDscp,
    Table,
    ToController,
)
from controller.rules.fabric import LinkLike

MAX_HOPS = 16
_FIELDS = Match._fields


@dataclass(frozen=True)
class Packet:
    """A packet's headers, by the names that a rule matches; ``ip_dscp`` is what it carries now."""

    eth_type: int = ETH_IPV4
    ip_proto: int | None = PROTO_TCP
    ipv4_src: str | None = None
    ipv4_dst: str | None = None
    tcp_src: int | None = None
    tcp_dst: int | None = None
    ip_dscp: int | None = 0
    arp_tpa: str | None = None
    in_port: int | None = None


def arp(target: str) -> Packet:
    return Packet(eth_type=ETH_ARP, ip_proto=None, ip_dscp=None, arp_tpa=target)


@dataclass(frozen=True)
class Verdict:
    """What a switch does with a packet: the packet as it leaves, its class, and where to; no ports: dropped."""

    packet: Packet
    service_class: int | None = None
    ports: tuple[int, ...] = ()
    normal: bool = False
    is_for_controller: bool = False
    visited: tuple[Rule, ...] = ()


class AmbiguousError(AssertionError):
    """Two rules of one priority match a packet and do different things: which one a real switch takes is not known."""


class FakeSwitch:
    """The tables of one switch. ``gate``: whether the gate's rule is there; without it the pipeline is left out."""

    def __init__(self, dpid: int, rules: Iterable[Rule], *, gate: bool = True) -> None:
        self.dpid = dpid
        self.gate = gate
        self._tables: dict[Table, list[Rule]] = {table: [] for table in Table}
        if gate:
            self._tables[Table.GATE].append(Rule(dpid, Table.GATE, GATE_PRIORITY, Match(), goto=Table.CLASSIFY))
        places: set[tuple[int, Table, int, Match]] = set()
        for rule in rules:
            if rule.switch == dpid:
                assert rule.key not in places, f"two rules at {rule.key}"
                places.add(rule.key)
                self._tables[rule.table].append(rule)

    def receive(self, packet: Packet, in_port: int) -> Verdict:
        packet = replace(packet, in_port=in_port)
        service_class: int | None = None
        ports: list[int] = []
        normal = is_for_controller = False
        visited: list[Rule] = []
        table: Table | None = Table.GATE
        while table is not None:
            rule = self._best(table, packet)
            table = None
            if rule is None:
                break
            visited.append(rule)
            for action in rule.actions:
                match action:
                    case SetClass(k):
                        service_class = k
                    case SetDscp(dscp):
                        assert packet.eth_type == ETH_IPV4, "a DSCP can only be set where IPv4 was matched"
                        packet = replace(packet, ip_dscp=dscp)
                    case Output(port):
                        # A switch does not send a packet back to where it came from.
                        ports += [port] if port != in_port else []
                    case Normal():
                        normal = True
                    case ToController():
                        is_for_controller = True
            if rule.goto is not None:
                assert rule.goto > rule.table, "OpenFlow goes forward only"
                table = rule.goto
        return Verdict(
            replace(packet, in_port=None), service_class, tuple(ports), normal, is_for_controller, tuple(visited)
        )

    def _best(self, table: Table, packet: Packet) -> Rule | None:
        hits = [rule for rule in self._tables[table] if _hits(rule.match, packet)]
        if not hits:
            return None
        top = max(rule.priority for rule in hits)
        best = [rule for rule in hits if rule.priority == top]
        if len({(rule.actions, rule.goto) for rule in best}) > 1:
            raise AmbiguousError(f"{best}")
        return best[0]


def _hits(match: Match, packet: Packet) -> bool:
    wanted = ((name, getattr(match, name)) for name in _FIELDS)
    return all(getattr(packet, name) == value for name, value in wanted if value is not None)


@dataclass(frozen=True)
class Hop:
    switch: int
    verdict: Verdict


class FakeNetwork:
    """Switches joined by links; a packet is followed from where it enters until it leaves to a host or is dropped."""

    def __init__(self, switches: Mapping[int, FakeSwitch], links: Iterable[LinkLike]) -> None:
        self._switches = switches
        self._ends: dict[tuple[int, int], tuple[int, int]] = {}
        for link in links:
            self._ends[link.a, link.a_port] = (link.b, link.b_port)
            self._ends[link.b, link.b_port] = (link.a, link.a_port)

    def send(self, packet: Packet, switch: int, port: int) -> tuple[list[Hop], tuple[int, int] | None]:
        """The hops, and the (switch, port) where the packet leaves the network (None: dropped)."""
        hops: list[Hop] = []
        while True:
            assert len(hops) < MAX_HOPS, "the packet goes in circles"
            verdict = self._switches[switch].receive(packet, port)
            hops.append(Hop(switch, verdict))
            if not verdict.ports:
                return hops, None
            assert len(verdict.ports) == 1
            out = verdict.ports[0]
            if (switch, out) not in self._ends:
                return hops, (switch, out)
            packet = verdict.packet
            switch, port = self._ends[switch, out]
