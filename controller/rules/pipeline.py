"""The rules of the pipeline itself, which belong to no job. They depend on no plan, so they come from a cache."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import NamedTuple

from controller.code_points import CodePoints
from controller.enforcement import Mode
from controller.model import Switch
from controller.rules.fabric import Link, paths
from controller.rules.families import ANY, from_address, is_ipv6, is_mac, link_local, to_address, to_end
from controller.rules.kinds import always_first, notifications
from controller.rules.metadata import NOTE_BELIEVED
from controller.rules.priorities import (
    ACKNOWLEDGEMENT,
    ANNOUNCEMENT,
    BY_DSCP,
    BY_INNER_PORT,
    BY_TRUSTED_PORT,
    CONTROL,
    MISS,
    TO_HOST,
    TO_HOST_BY_MAC,
)
from controller.rules.rule import (
    ETH_ARP,
    ETH_IPV6,
    ETH_LLDP,
    IP_FAMILIES,
    PROTO_ICMPV6,
    PROTO_TCP,
    Action,
    Match,
    Normal,
    Output,
    Rule,
    SetClass,
    SetDscp,
    Table,
    ToController,
)

NEIGHBOUR_SOLICITATION = 135
"""The ICMPv6 type of the request by which IPv6 asks for a MAC address (RFC 4861)."""


class Endpoint(NamedTuple):
    """An IP address and a TCP port at which the controller listens."""

    address: str
    tcp_port: int


@lru_cache(maxsize=16)
def own_rules(
    switches: tuple[Switch, ...],
    points: CodePoints,
    mode: Mode,
    control: tuple[Endpoint, ...],
    *,
    is_lossless: bool = False,
) -> frozenset[Rule]:
    """Returns the rules of every plan: by DSCP, for what a network needs, and for the controller's sockets.

    ``is_lossless``: RoCE's congestion notifications keep the queue that the switch gives them.
    """
    rules: list[Rule] = []
    first = [*always_first(), *_of_controller(control)]
    for switch in switches:
        believed = (NOTE_BELIEVED,) if mode == "dscp" and switch.trusted_ports is None else ()
        rules.append(Rule(switch.dpid, Table.GATE, MISS, Match(), goto=Table.FORWARD))
        rules += _leave_open(switch.dpid, MISS, Match(), *believed)
        for match in first:
            rules += _classify(switch.dpid, CONTROL, match, 0)
        for match in notifications() if is_lossless else ():
            rules.append(Rule(switch.dpid, Table.CLASSIFY, CONTROL, match, goto=Table.FORWARD))
        rules += _by_port(switch, points) if mode == "dscp" else _by_dscp(switch, points, mode)
    return frozenset(rules)


def _of_controller(control: tuple[Endpoint, ...]) -> Iterator[Match]:
    for address, port in control:
        yield to_address(address, Match(ip_proto=PROTO_TCP, tcp_dst=port))
        yield from_address(address, Match(ip_proto=PROTO_TCP, tcp_src=port))


def _by_dscp(switch: Switch, points: CodePoints, mode: Mode) -> Iterator[Rule]:
    """Yields the rules that match the DSCP: those that trust it, and those that clear it."""
    served = points.served()
    if mode == "marked" and switch.trusted_ports is None:
        yield from _believe(switch.dpid, BY_DSCP, served)
        return
    yield from _clear(switch.dpid, points)
    priority_of_port = dict.fromkeys(switch.inner_ports, BY_INNER_PORT)
    if mode == "marked" and switch.trusted_ports is not None:
        priority_of_port |= dict.fromkeys(switch.trusted_ports - switch.inner_ports, BY_TRUSTED_PORT)
    for port, priority in priority_of_port.items():
        yield from _believe(switch.dpid, priority, served, Match(in_port=port))


def _by_port(switch: Switch, points: CodePoints) -> Iterator[Rule]:
    """Yields the rules that note at which ports DSCPs of jobs are believed, and those that clear them elsewhere.

    Each port has one rule, however many jobs there are. Which DSCP gets which class is said in a later table.
    """
    if switch.trusted_ports is None:
        return
    yield from _clear(switch.dpid, points)
    for port in switch.trusted_ports | switch.inner_ports:
        yield from _leave_open(switch.dpid, BY_TRUSTED_PORT, Match(in_port=port), NOTE_BELIEVED)


def _clear(dpid: int, points: CodePoints) -> Iterator[Rule]:
    for dscp in points.exclusive:
        for family in IP_FAMILIES:
            yield from _leave_open(dpid, BY_DSCP, Match(eth_type=family, ip_dscp=dscp), SetDscp(points.other))


def _believe(dpid: int, priority: int, served: Mapping[int, int], match: Match = ANY) -> Iterator[Rule]:
    for dscp, service_class in served.items():
        for family in IP_FAMILIES:
            yield from _classify(dpid, priority, match._replace(eth_type=family, ip_dscp=dscp), service_class)


@lru_cache(maxsize=16)
def acknowledgements(
    switches: tuple[Switch, ...], hosts: tuple[tuple[str, int | None, int | None], ...], dscp: int
) -> frozenset[Rule]:
    """Returns the rules that put acknowledgements into class 0, whichever job they belong to.

    A host whose port is known is trusted at that port alone. A port that the switch does not trust gets no rule.
    """
    rules: list[Rule] = []
    for switch in switches:
        for address, home, port in hosts:
            if home not in (None, switch.dpid):
                continue
            if home is not None and switch.trusted_ports is not None and port not in switch.trusted_ports:
                continue
            match = Match(in_port=None if home is None else port, ip_proto=PROTO_TCP, ip_dscp=dscp)
            rules += _classify(switch.dpid, ACKNOWLEDGEMENT, from_address(address, match), 0)
    return frozenset(rules)


def _classify(switch: int, priority: int, match: Match, service_class: int) -> Iterator[Rule]:
    yield Rule(switch, Table.CLASSIFY, priority, match, (SetClass(service_class),), Table.FORWARD)


def _leave_open(switch: int, priority: int, match: Match, *more: Action) -> Iterator[Rule]:
    """Yields the rule for packets of other traffic, unless a later table gives them a class."""
    yield Rule(switch, Table.CLASSIFY, priority, match, (SetClass(None), *more), Table.KINDS)


@lru_cache(maxsize=16)
def announcements(switches: tuple[Switch, ...]) -> frozenset[Rule]:
    """Returns the rules that send the announcements of hosts to the controller."""
    match = Match(eth_type=ETH_LLDP)
    return frozenset(Rule(each.dpid, Table.GATE, ANNOUNCEMENT, match, (ToController(),)) for each in switches)


@lru_cache(maxsize=16)
def learning(switches: tuple[Switch, ...]) -> frozenset[Rule]:
    """Returns the rules that leave forwarding to the switches' own learning."""
    return frozenset(Rule(switch.dpid, Table.FORWARD, MISS, Match(), (Normal(),)) for switch in switches)


@lru_cache(maxsize=16)
def shortest_paths(
    switches: tuple[int, ...], attached: tuple[tuple[tuple[str, ...], int, int], ...], links: tuple[Link, ...]
) -> frozenset[Rule]:
    """Returns the rules that forward to each host along shortest paths.

    ``attached`` are the ``ends`` of each host, its switch and its port. The path to all of them is that to the first
    one. Requests for a MAC address go straight to the host that they ask for. By a host's MAC address go to it frames
    that are not IP, and packets to IP addresses that nobody has told, such as the answers to requests that a host has
    sent from its link-local address.
    """
    shortest = paths(links, frozenset(switches))
    rules: dict[tuple[int, Table, int, Match], Rule] = {}
    for switch in switches:
        for ends, home, port in attached:
            out_port = port if switch == home else shortest.port(switch, home, ends[0])
            if out_port is None:
                continue
            out = (Output(out_port),)
            for end in ends:
                for priority, match in _leading_to(end):
                    rule = Rule(switch, Table.FORWARD, priority, match, out)
                    rules.setdefault(rule.key, rule)
        # An explicit last rule counts the packets that are dropped.
        drop = Rule(switch, Table.FORWARD, MISS, Match())
        rules[drop.key] = drop
    return frozenset(rules.values())


def _leading_to(end: str) -> Iterator[tuple[int, Match]]:
    """Yields what matches the packets that go to a host by one of its ``ends``, each with its priority."""
    if is_mac(end):
        yield TO_HOST_BY_MAC, to_end(end)
        yield TO_HOST, _request_for(link_local(end))
    else:
        yield TO_HOST, to_address(end)
        yield TO_HOST, _request_for(end)


def _request_for(address: str) -> Match:
    """Returns what matches the requests for the MAC address that belongs to an IP address."""
    if not is_ipv6(address):
        return Match(eth_type=ETH_ARP, arp_tpa=address)
    # Open vSwitch's cache tells targets apart only where type and code are both matched. The code is 0 (RFC 4861).
    return Match(
        eth_type=ETH_IPV6, ip_proto=PROTO_ICMPV6, icmpv6_type=NEIGHBOUR_SOLICITATION, icmpv6_code=0,
        ipv6_nd_target=address,
    )  # fmt: skip
