"""A switch, and a network of switches, in pure Python: they evaluate compiled rules on packets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from controller.dataplane.openflow import GATE_PRIORITY
from controller.rules.fabric import LinkLike
from controller.rules.rule import (
    ETH_ARP,
    ETH_IPV4,
    IP_FAMILIES,
    PROTO_TCP,
    Match,
    Metered,
    Normal,
    Output,
    Rule,
    SetClass,
    SetDscp,
    SetMetadata,
    Table,
    ToController,
)

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
    ipv6_src: str | None = None
    ipv6_dst: str | None = None
    udp_dst: int | None = None
    metadata: int = 0
    eth_dst: str = "02:00:00:00:00:02"
    icmpv4_type: int | None = None
    icmpv6_type: int | None = None
    ipv6_nd_target: str | None = None
    eth_src: str = "02:00:00:00:00:01"
    icmpv6_code: int | None = None
    udp_src: int | None = None


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
    meters: tuple[int, ...] = ()


class AmbiguousError(AssertionError):
    """Two rules of one priority match a packet and do different things: which one a real switch takes is not known."""


class FakeSwitch:
    """The tables of one switch. ``gate``: whether the gate's rule is there; without it the pipeline is left out."""

    def __init__(self, dpid: int, rules: Iterable[Rule], *, gate: bool = True) -> None:
        self.dpid = dpid
        self.gate = gate
        tables: dict[Table, list[Rule]] = {table: [] for table in Table}
        if gate:
            tables[Table.GATE].append(Rule(dpid, Table.GATE, GATE_PRIORITY, Match(), goto=Table.CLASSIFY))
        places: set[tuple[int, Table, int, Match]] = set()
        for rule in rules:
            if rule.switch == dpid:
                assert rule.key not in places, f"two rules at {rule.key}"
                places.add(rule.key)
                tables[rule.table].append(rule)
        # The rules of each table, first those that go first, each with the fields that it matches.
        self._tables = {
            table: [(_wanted(rule.match), rule) for rule in sorted(held, key=lambda rule: -rule.priority)]
            for table, held in tables.items()
        }

    def receive(self, packet: Packet, in_port: int) -> Verdict:
        packet = replace(packet, in_port=in_port)
        service_class: int | None = None
        ports: list[int] = []
        normal = is_for_controller = False
        visited: list[Rule] = []
        meters: list[int] = []
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
                        assert rule.match.eth_type in IP_FAMILIES, "a DSCP can only be set where IP was matched"
                        packet = replace(packet, ip_dscp=dscp)
                    case Output(port):
                        # A switch does not send a packet back to where it came from.
                        ports += [port] if port != in_port else []
                    case Normal():
                        normal = True
                    case ToController():
                        is_for_controller = True
                    case Metered(meter):
                        meters.append(meter)
                    case SetMetadata(value, mask):
                        packet = replace(packet, metadata=packet.metadata & ~mask | value & mask)
            if rule.goto is not None:
                assert rule.goto > rule.table, "OpenFlow goes forward only"
                table = rule.goto
        return Verdict(
            replace(packet, in_port=None, metadata=0),
            service_class,
            tuple(ports),
            normal,
            is_for_controller,
            tuple(visited),
            tuple(meters),
        )

    def _best(self, table: Table, packet: Packet) -> Rule | None:
        best: list[Rule] = []
        for wanted, rule in self._tables[table]:
            if best and rule.priority < best[0].priority:
                break
            if all(_equals(getattr(packet, name), value) for name, value in wanted):
                best.append(rule)
        if not best:
            return None
        if len({(rule.actions, rule.goto) for rule in best}) > 1:
            raise AmbiguousError(f"{best}")
        return best[0]


def _wanted(match: Match) -> list[tuple[str, Any]]:
    return [(name, value) for name, value in zip(_FIELDS, match, strict=True) if value is not None]


def _equals(given: Any, wanted: Any) -> bool:
    if not isinstance(wanted, tuple):
        return bool(given == wanted)
    value, mask = (_number(part) for part in wanted)
    return _number(given) & mask == value


def _number(value: int | str) -> int:
    """A MAC address as a number."""
    return value if isinstance(value, int) else int(value.replace(":", ""), 16)


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
