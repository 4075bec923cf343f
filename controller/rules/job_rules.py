"""The rules of one job's traffic: each of its flows and listening ports, at the switches where they match.

What has ports is matched by them in *classify*, and gets the job's class and its DSCP there. RoCEv2 and what a job
declares as *any* are matched by the two hosts alone, in *kinds*. That is behind the rules that clear DSCPs. Then
*places* treats such packets as those of a pair that one job alone uses. So a DSCP that Trainyard does not use stays,
such as that of a lossless class, and a notification of congestion (CNP) is left alone.

Rules are remembered by the traffic, because a plan changes few of them.
"""

from __future__ import annotations

from collections.abc import Iterator

from controller.memo import Memo
from controller.model import MAX_CLASSES, ROCEV2_PORT, Host, TrafficProtocol
from controller.rules.families import addresses, from_address, pairs, to_address
from controller.rules.metadata import note_own
from controller.rules.priorities import (
    ALL_OF_PAIR,
    BY_BOTH_PORTS,
    BY_DESTINATION_PORT,
    BY_SOURCE_PORT,
    FROM_LISTENER,
    PAIR,
    ROCEV2_OF_PAIR,
    TO_LISTENER,
)
from controller.rules.rule import PROTO_TCP, PROTO_UDP, Match, Rule, SetClass, SetDscp, SetMetadata, Table
from controller.rules.sites import Listening, RuleSite, in_port

_REMEMBERED_JOBS = 32768
Traffic = tuple[RuleSite, ...] | Listening
_Sites = list[tuple[int | None, Table, int, Match]]
"""The switch of each rule (None: every switch), its table, its priority, and its match."""

_WITHOUT_PORTS: dict[TrafficProtocol, tuple[int, Match]] = {
    "rocev2": (ROCEV2_OF_PAIR, Match(ip_proto=PROTO_UDP, udp_dst=ROCEV2_PORT)),
    "any": (ALL_OF_PAIR, Match()),
}
"""The priority and the match of what is known by its hosts alone."""
_ClassActions = tuple[SetClass, SetDscp]
_RulesByClass = dict[tuple[str, _ClassActions, tuple[int, ...]], frozenset[Rule]]
_rules_of: Memo[Traffic, _RulesByClass] = Memo(_REMEMBERED_JOBS)
_sites_of: Memo[Traffic, _Sites] = Memo(_REMEMBERED_JOBS)


def job_rules(job: str, actions: _ClassActions, traffic: Traffic, switches: tuple[int, ...]) -> frozenset[Rule]:
    """Returns the rules at ``switches`` of a part of a job's traffic, which put it into a class by ``actions``."""
    by_class = _rules_of.get(traffic, dict)
    key = (job, actions, switches)
    rules = by_class.get(key)
    if rules is None:
        if len(by_class) > MAX_CLASSES:
            by_class.clear()
        rules = by_class[key] = _compile(job, actions, traffic, switches)
    return rules


def _compile(job: str, actions: _ClassActions, traffic: Traffic, switches: tuple[int, ...]) -> frozenset[Rule]:
    known = frozenset(switches)
    done: dict[Table, tuple[tuple[SetClass | SetDscp | SetMetadata, ...], Table]] = {
        Table.CLASSIFY: (actions, Table.FORWARD),
        Table.KINDS: (_noting(actions), Table.PLACES),
    }
    rules: list[Rule] = []
    for site, table, priority, match in _sites_of.get(traffic, lambda: _sites(traffic)):
        dpids = switches if site is None else (site,) if site in known else ()
        rules += [Rule(switch, table, priority, match, *done[table], job) for switch in dpids]
    return frozenset(rules)


def _noting(actions: _ClassActions) -> tuple[SetMetadata, ...]:
    service_class = actions[0].service_class
    assert service_class is not None, "a job has a class"
    return (note_own(service_class),)


def _sites(traffic: Traffic) -> _Sites:
    """Returns the switch, table, priority and match of each rule of a job; they do not depend on the job's class."""
    return list(_port_sites(traffic)) if isinstance(traffic, Listening) else [_flow_site(site) for site in traffic]


def _flow_site(site: RuleSite) -> tuple[int | None, Table, int, Match]:
    if site.protocol in _WITHOUT_PORTS:
        priority, match = _WITHOUT_PORTS[site.protocol]
        return site.switch, Table.KINDS, priority, _between(site, match)
    if site.dst_port is not None:
        priority = BY_BOTH_PORTS if site.src_port is not None else BY_DESTINATION_PORT
    else:
        priority = BY_SOURCE_PORT if site.src_port is not None else PAIR
    return site.switch, Table.CLASSIFY, priority, _between(site, _by_ports(site.protocol, site.src_port, site.dst_port))


def _between(site: RuleSite, match: Match) -> Match:
    return to_address(site.dst, from_address(site.src, match._replace(in_port=site.in_port)))


def _by_ports(protocol: TrafficProtocol, src: int | None = None, dst: int | None = None) -> Match:
    """Returns what matches the packets of TCP or UDP between these ports; None: any."""
    if protocol == "udp":
        return Match(ip_proto=PROTO_UDP, udp_src=src, udp_dst=dst)
    return Match(ip_proto=PROTO_TCP, tcp_src=src, tcp_dst=dst)


def _port_sites(listening: Listening) -> Iterator[tuple[int | None, Table, int, Match]]:
    """Yields the sites of listening ports.

    Packets from a port match where its host is attached. Packets to it match at every switch of the job's hosts; where
    only one of them is attached to a switch, the rule names that host.
    """
    table, protocol = Table.CLASSIFY, listening.protocol
    for host, ports in listening.ports.items():
        entrances = list(_entrances(listening, host))
        for port in ports:
            from_port = _by_ports(protocol, src=port)._replace(in_port=in_port(host))
            for address in addresses(host):
                yield host.switch, table, FROM_LISTENER, from_address(address, from_port)
            to_port = _by_ports(protocol, dst=port)
            for switch, match in entrances:
                to = match._replace(ip_proto=to_port.ip_proto, tcp_dst=to_port.tcp_dst, udp_dst=to_port.udp_dst)
                yield switch, table, TO_LISTENER, to


def _entrances(listening: Listening, host: Host) -> Iterator[tuple[int | None, Match]]:
    """Yields where packets to a listening host match, and what they match there beside their port."""
    for switch, sender in listening.entrances(host):
        if sender is None:
            for address in addresses(host):
                yield switch, to_address(address)
        else:
            for source, destination in pairs(sender, host):
                yield switch, to_address(destination, from_address(source, Match(in_port=in_port(sender))))
