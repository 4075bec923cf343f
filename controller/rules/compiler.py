"""The rule compiler turns the classes and flows of a plan into a set of rules, which are plain values to compare.

A rule never names a queue number. It names a service class (0 is served first, None is all other traffic), and
``dataplane/queues.py`` knows how a switch numbers its queues.

Every switch has two tables after its gate:

- *classify* puts ARP and the controller's own traffic into class 0, and packets that match no rule into other traffic.
  In mode *classified*, each job flow has a rule at the switch where its source is attached. The rule names the
  source's port, so that no other host can send in its name. A listening port that many hosts may talk with has two
  rules, one for packets from it and one for packets to it. A host whose agent marks acknowledgements has one rule,
  which puts them into class 0. The DSCP of a packet from another switch is trusted. On any other packet, a DSCP that
  Trainyard uses is cleared.
  In mode *marked*, each class has one rule by DSCP, and acknowledgements have one. Where a switch has trusted ports,
  each of them has these rules, and a DSCP that Trainyard uses is cleared at every other port.
- *forward* has two modes. *normal* leaves forwarding to the switch's own learning. *paths* sends IPv4 packets, and ARP
  by the address that it asks for, along shortest paths. An ARP request thus goes straight to its target, and nothing is
  ever flooded, so loops are harmless. Packets to an address that no host has are dropped.

Where hosts may enrol, table 0 also sends LLDP frames to the controller, because a host that enrols announces itself by
one. Switches do not forward such frames anyway.

The set does not contain the gate's rule from table 0 to table 1, because that rule expires and is renewed (see
``dataplane``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache
from typing import Literal, NamedTuple

from controller.memo import Memo
from controller.model import ACKNOWLEDGEMENT_DSCP, CLASS_DSCP, MAX_CLASSES, OTHER_DSCP, OWN_DSCP, Snapshot, Switch
from controller.rules.fabric import Link, LinkLike, as_links, paths
from controller.rules.sites import NOTHING, Listening, RuleSite, claimed_flows, in_port

ETH_IPV4 = 0x0800
ETH_ARP = 0x0806
ETH_LLDP = 0x88CC
PROTO_TCP = 6

Mode = Literal["classified", "marked"]
Forwarding = Literal["normal", "paths"]

# Priorities in the classify table. A rule that names a destination port goes before one that names a source port, so
# that a packet which matches both always belongs to the same job. Of these, a rule that names both hosts goes first.
MISS = 0
BY_DSCP = 100
BY_TRUSTED_PORT = 200
PAIR = 1000
FROM_LISTENER = 1001
BY_SOURCE_PORT = 1002
TO_LISTENER = 1003
BY_DESTINATION_PORT = 1004
BY_BOTH_PORTS = 1005
ACKNOWLEDGEMENT = 1500
BY_INNER_PORT = 2000
CONTROL = 3000
# The priority of the rules that lead to a host, in the forward table.
TO_HOST = 100
# The priority of the rule for announcements, in the gate's table: above that of the gate itself, which is 1.
ANNOUNCEMENT = 2

_REMEMBERED_JOBS = 32768


class Table(IntEnum):
    """The three tables of the pipeline."""

    GATE = 0
    CLASSIFY = 1
    FORWARD = 2


class Match(NamedTuple):
    """The fields that a rule matches; a field of None matches anything. Addresses are dotted IPv4 strings.

    It is a tuple, as ``Rule`` is, because a plan that moves a hundred jobs creates and hashes thousands of them.
    """

    in_port: int | None = None
    eth_type: int | None = None
    ip_proto: int | None = None
    ipv4_src: str | None = None
    ipv4_dst: str | None = None
    tcp_src: int | None = None
    tcp_dst: int | None = None
    ip_dscp: int | None = None
    arp_tpa: str | None = None


@dataclass(frozen=True, slots=True)
class SetClass:
    """Put the packet into the queue of a service class; None is the queue of all other traffic."""

    service_class: int | None


@dataclass(frozen=True, slots=True)
class SetDscp:
    """Write the DSCP (0..63) into the IPv4 header."""

    dscp: int


@dataclass(frozen=True, slots=True)
class Output:
    """Send the packet out of the port with this number."""

    port: int


@dataclass(frozen=True, slots=True)
class Normal:
    """Let the switch forward by its own learning."""


@dataclass(frozen=True, slots=True)
class ToController:
    """Send the packet to the controller."""


Action = SetClass | SetDscp | Output | Normal | ToController


class Rule(NamedTuple):
    """One rule of one switch. ``job`` is None for the pipeline's own rules.

    Of two rules with the same ``key``, the later one replaces the earlier one in the switch.
    """

    switch: int
    table: Table
    priority: int
    match: Match
    actions: tuple[Action, ...] = ()
    goto: Table | None = None
    job: str | None = None

    @property
    def key(self) -> tuple[int, Table, int, Match]:
        """Returns the fields by which a switch tells rules apart."""
        return self[:4]


@dataclass(frozen=True, slots=True)
class Difference:
    """The changes that turn one set of rules into another. An added rule replaces the rule with the same key."""

    add: frozenset[Rule]
    remove: frozenset[Rule]

    def __bool__(self) -> bool:
        return bool(self.add or self.remove)


def difference(held: frozenset[Rule], wanted: frozenset[Rule]) -> Difference:
    """Returns the fewest changes from ``held`` to ``wanted``. A rule that an added one replaces is not removed."""
    add = wanted - held
    replaced = {rule.key for rule in add}
    return Difference(add, frozenset(rule for rule in held - wanted if rule.key not in replaced))


class Endpoint(NamedTuple):
    """An IPv4 address and a TCP port at which the controller listens."""

    address: str
    tcp_port: int


def compile_rules(
    snapshot: Snapshot,
    classes: Mapping[str, int],
    *,
    mode: Mode,
    forwarding: Forwarding,
    links: Iterable[LinkLike] = (),
    control: Iterable[Endpoint] = (),
    announcements: bool = False,
) -> frozenset[Rule]:
    """Returns all rules that the switches of ``snapshot`` should hold, no two with the same key.

    ``classes`` gives a job its class; ``links`` join switches and are needed for *paths*; ``control`` are the
    controller's own listening sockets where hosts and switches reach it through this network; ``announcements``: hosts
    may enrol. Rules that do not depend on the plan, and those of a job that has not changed, come from a cache, so a
    plan over 1,000 jobs costs a few milliseconds. A degraded snapshot is compiled as *marked*, whatever ``mode`` says.
    Raises ValueError for a class that does not exist.
    """
    if not snapshot.switches:
        return frozenset()
    if snapshot.degraded:
        mode = "marked"
    count = min(snapshot.classes, MAX_CLASSES)
    parts = [_pipeline(snapshot.switches, count, mode, tuple(sorted(control)))]
    if announcements:
        parts.append(_announcements(snapshot.switches))
    if forwarding == "normal":
        parts.append(_learning(snapshot.switches))
    else:
        attached = tuple(
            (host.address, host.switch, host.switch_port)
            for host in snapshot.hosts.values()
            if host.address is not None and host.switch is not None and host.switch_port is not None
        )
        switches = tuple(switch.dpid for switch in snapshot.switches)
        parts.append(_paths(switches, tuple(sorted(attached)), as_links(links)))
    if mode == "classified":
        if snapshot.acknowledging:
            parts.append(_acknowledgements(snapshot.switches, _acknowledging_hosts(snapshot)))
        switches = tuple(switch.dpid for switch in snapshot.switches)
        for job, service_class, declared, listening, discovered in claimed_flows(snapshot, classes):
            for traffic in (declared, listening, discovered):
                if traffic and traffic is not NOTHING:
                    parts.append(_job_rules(job.id, service_class, traffic, switches))
    return frozenset().union(*parts)


_Traffic = tuple[RuleSite, ...] | Listening
_Sites = list[tuple[int | None, int, Match]]
"""The switch of each rule (None: every switch), its priority, and its match."""

_RulesByClass = dict[tuple[str, int, tuple[int, ...]], frozenset[Rule]]
_rules_of: Memo[_Traffic, _RulesByClass] = Memo(_REMEMBERED_JOBS)
_sites_of: Memo[_Traffic, _Sites] = Memo(_REMEMBERED_JOBS)


def _job_rules(job: str, service_class: int, traffic: _Traffic, switches: tuple[int, ...]) -> frozenset[Rule]:
    by_class = _rules_of.get(traffic, dict)
    key = (job, service_class, switches)
    rules = by_class.get(key)
    if rules is None:
        if len(by_class) > MAX_CLASSES:
            by_class.clear()
        rules = by_class[key] = _compile_job_rules(job, service_class, traffic, switches)
    return rules


def _compile_job_rules(job: str, service_class: int, traffic: _Traffic, switches: tuple[int, ...]) -> frozenset[Rule]:
    actions = (SetClass(service_class), SetDscp(CLASS_DSCP[service_class]))
    table, goto = Table.CLASSIFY, Table.FORWARD
    known = frozenset(switches)
    rules: list[Rule] = []
    for site, priority, match in _sites_of.get(traffic, lambda: _sites(traffic)):
        dpids = switches if site is None else (site,) if site in known else ()
        rules += [Rule(switch, table, priority, match, actions, goto, job) for switch in dpids]
    return frozenset(rules)


def _sites(traffic: _Traffic) -> _Sites:
    """Returns the switch, priority and match of each rule of a job; they do not depend on the job's class."""
    return list(_port_sites(traffic)) if isinstance(traffic, Listening) else [_flow_site(site) for site in traffic]


def _flow_site(site: RuleSite) -> tuple[int | None, int, Match]:
    if site.dst_port is not None:
        priority = BY_BOTH_PORTS if site.src_port is not None else BY_DESTINATION_PORT
    else:
        priority = BY_SOURCE_PORT if site.src_port is not None else PAIR
    match = Match(
        in_port=site.in_port,
        eth_type=ETH_IPV4,
        ip_proto=PROTO_TCP,
        ipv4_src=site.src,
        ipv4_dst=site.dst,
        tcp_src=site.src_port,
        tcp_dst=site.dst_port,
    )
    return site.switch, priority, match


def _port_sites(listening: Listening) -> Iterator[tuple[int | None, int, Match]]:
    """Yields the sites of listening ports.

    Packets from a port match where its host is attached. Packets to it match at every switch of the job's hosts; where
    only one of them is attached to a switch, the rule names that host.
    """
    tcp = Match(eth_type=ETH_IPV4, ip_proto=PROTO_TCP)
    for host, ports in listening.ports.items():
        entrances = list(listening.entrances(host))
        for port in ports:
            from_port = tcp._replace(in_port=in_port(host), ipv4_src=host.address, tcp_src=port)
            yield host.switch, FROM_LISTENER, from_port
            to_port = tcp._replace(ipv4_dst=host.address, tcp_dst=port)
            for switch, sender in entrances:
                match = to_port
                if sender is not None:
                    match = to_port._replace(in_port=in_port(sender), ipv4_src=sender.address)
                yield switch, TO_LISTENER, match


@lru_cache(maxsize=16)
def _pipeline(switches: tuple[Switch, ...], count: int, mode: Mode, control: tuple[Endpoint, ...]) -> frozenset[Rule]:
    rules: list[Rule] = []
    for switch in switches:
        rules.append(Rule(switch.dpid, Table.GATE, MISS, Match(), goto=Table.FORWARD))
        rules += _classify(switch.dpid, MISS, Match(), None)
        rules += _classify(switch.dpid, CONTROL, Match(eth_type=ETH_ARP), 0)
        for address, port in control:
            for match in (
                Match(eth_type=ETH_IPV4, ip_proto=PROTO_TCP, ipv4_dst=address, tcp_dst=port),
                Match(eth_type=ETH_IPV4, ip_proto=PROTO_TCP, ipv4_src=address, tcp_src=port),
            ):
                rules += _classify(switch.dpid, CONTROL, match, 0)
        rules += _by_dscp(switch, count, mode)
    return frozenset(rules)


def _by_dscp(switch: Switch, count: int, mode: Mode) -> Iterator[Rule]:
    """Yields the rules that match the DSCP: those that trust it, and those that clear it."""
    served = {CLASS_DSCP[service_class]: service_class for service_class in range(count)} | {ACKNOWLEDGEMENT_DSCP: 0}
    if mode == "marked" and switch.trusted_ports is None:
        for dscp, service_class in served.items():
            yield from _classify(switch.dpid, BY_DSCP, Match(eth_type=ETH_IPV4, ip_dscp=dscp), service_class)
        return
    for dscp in OWN_DSCP:
        match = Match(eth_type=ETH_IPV4, ip_dscp=dscp)
        yield from _classify(switch.dpid, BY_DSCP, match, None, SetDscp(OTHER_DSCP))
    priority_of_port = dict.fromkeys(switch.inner_ports, BY_INNER_PORT)
    if mode == "marked" and switch.trusted_ports is not None:
        priority_of_port |= dict.fromkeys(switch.trusted_ports - switch.inner_ports, BY_TRUSTED_PORT)
    for port, priority in priority_of_port.items():
        for dscp, service_class in served.items():
            match = Match(in_port=port, eth_type=ETH_IPV4, ip_dscp=dscp)
            yield from _classify(switch.dpid, priority, match, service_class)


def _acknowledging_hosts(snapshot: Snapshot) -> tuple[tuple[str, int | None, int | None], ...]:
    """Returns the address, switch and port of the hosts whose agents mark acknowledgements."""
    hosts = (snapshot.hosts[name] for name in sorted(snapshot.acknowledging) if name in snapshot.hosts)
    return tuple((host.address, host.switch, host.switch_port) for host in hosts if host.address is not None)


@lru_cache(maxsize=16)
def _acknowledgements(
    switches: tuple[Switch, ...], hosts: tuple[tuple[str, int | None, int | None], ...]
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
            match = Match(
                in_port=None if home is None else port,
                eth_type=ETH_IPV4,
                ip_proto=PROTO_TCP,
                ipv4_src=address,
                ip_dscp=ACKNOWLEDGEMENT_DSCP,
            )
            rules += _classify(switch.dpid, ACKNOWLEDGEMENT, match, 0)
    return frozenset(rules)


def _classify(switch: int, priority: int, match: Match, service_class: int | None, *more: Action) -> Iterator[Rule]:
    yield Rule(switch, Table.CLASSIFY, priority, match, (SetClass(service_class), *more), Table.FORWARD)


@lru_cache(maxsize=16)
def _announcements(switches: tuple[Switch, ...]) -> frozenset[Rule]:
    match = Match(eth_type=ETH_LLDP)
    return frozenset(Rule(each.dpid, Table.GATE, ANNOUNCEMENT, match, (ToController(),)) for each in switches)


@lru_cache(maxsize=16)
def _learning(switches: tuple[Switch, ...]) -> frozenset[Rule]:
    return frozenset(Rule(switch.dpid, Table.FORWARD, MISS, Match(), (Normal(),)) for switch in switches)


@lru_cache(maxsize=16)
def _paths(
    switches: tuple[int, ...], attached: tuple[tuple[str, int, int], ...], links: tuple[Link, ...]
) -> frozenset[Rule]:
    shortest = paths(links, frozenset(switches))
    rules: dict[tuple[int, Table, int, Match], Rule] = {}
    for switch in switches:
        for address, home, port in attached:
            out_port = port if switch == home else shortest.port(switch, home, address)
            if out_port is None:
                continue
            out = (Output(out_port),)
            for match in (
                Match(eth_type=ETH_IPV4, ipv4_dst=address),
                Match(eth_type=ETH_ARP, arp_tpa=address),
            ):
                rule = Rule(switch, Table.FORWARD, TO_HOST, match, out)
                rules.setdefault(rule.key, rule)
        # An explicit last rule counts the packets that are dropped.
        drop = Rule(switch, Table.FORWARD, MISS, Match())
        rules[drop.key] = drop
    return frozenset(rules.values())
