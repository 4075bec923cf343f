"""The rule compiler: classes and flows -> a set of rules, as plain values that can be compared.

A rule never names a queue number: it names a service class (0 is served first, None is all other traffic),
and ``dataplane/queues.py`` knows how a switch numbers its queues.

The pipeline of every switch, after its gate:

- classify: ARP and the controller's own traffic to class 0. Mode *classified*: a rule a job flow, where its source is
  attached, and by the port it is attached at, so that no other host passes for it; two a listening port that many hosts
  may talk with, from it and to it; and one a host whose agent marks acknowledgements, which go first. What comes in
  from another switch is believed by its DSCP; a DSCP of ours on any other packet is cleared. Mode *marked*: a rule a
  class and one for acknowledgements, by DSCP; where ports are told apart, so many a trusted port, and a DSCP of ours
  from any other port is cleared. All that matches nothing is other traffic.
- forward, *normal*: the switch's own learning. *paths*: shortest paths by destination address, for IPv4 and for what
  ARP asks about. So an ARP request goes straight to its target and nothing is ever flooded: loops are harmless.
  What is for an address that is not among the hosts is dropped there.

The gate's rule, table 0 to table 1, is no part of the set: it expires, and is renewed (see ``dataplane``).
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
from controller.rules.places import NOTHING, Listening, RuleSite, claimed_flows, in_port

ETH_IPV4 = 0x0800
ETH_ARP = 0x0806
PROTO_TCP = 6

Mode = Literal["classified", "marked"]
Forwarding = Literal["normal", "paths"]

# Priorities in the classify table. What names its destination port goes before what names its source port, so that a
# packet which fits both is always counted to the same job; of these, what names both hosts goes first.
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
# In the forward table.
TO_HOST = 100

_REMEMBERED_JOBS = 32768


class Table(IntEnum):
    """The three tables of the pipeline."""

    GATE = 0
    CLASSIFY = 1
    FORWARD = 2


class Match(NamedTuple):
    """What a rule matches; a field of None matches anything. Addresses are dotted IPv4 strings.

    A tuple, as a rule is: a plan that moves a hundred jobs makes and hashes thousands of them.
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
    """Put the packet into the queue of a service class; None: the queue of all other traffic."""

    service_class: int | None


@dataclass(frozen=True, slots=True)
class SetDscp:
    """Write the DSCP (0..63) into the IPv4 header."""

    dscp: int


@dataclass(frozen=True, slots=True)
class Output:
    """Send out of a port by number."""

    port: int


@dataclass(frozen=True, slots=True)
class Normal:
    """Let the switch forward by its own learning."""


Action = SetClass | SetDscp | Output | Normal


class Rule(NamedTuple):
    """One rule of one switch. ``job`` is None for the pipeline's own rules.

    Two rules with the same ``key`` stand in the same place of a switch: the later replaces the earlier.
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
        """What identifies the rule's place in a switch."""
        return self[:4]


@dataclass(frozen=True, slots=True)
class Difference:
    """What turns one set of rules into another. An added rule replaces the one that holds its place."""

    add: frozenset[Rule]
    remove: frozenset[Rule]

    def __bool__(self) -> bool:
        return bool(self.add or self.remove)


def difference(held: frozenset[Rule], wanted: frozenset[Rule]) -> Difference:
    """The fewest changes from ``held`` to ``wanted``; nothing is removed whose place is taken again."""
    add = wanted - held
    places = {rule.key for rule in add}
    return Difference(add, frozenset(rule for rule in held - wanted if rule.key not in places))


class Endpoint(NamedTuple):
    """Where the controller listens: its IPv4 address and a TCP port."""

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
) -> frozenset[Rule]:
    """All rules that the switches of ``snapshot`` should hold, no two with the same key.

    ``classes`` gives a job its class; ``links`` join switches and are needed for *paths*; ``control`` are the
    controller's own listening sockets where hosts and switches reach it through this network. Rules that do not
    depend on the plan, and those of a job that has not changed, come from a cache, so a plan over 1,000 jobs
    costs a few milliseconds. A degraded snapshot is compiled as *marked*, whatever ``mode`` says. Raises ValueError for
    a class that does not exist.
    """
    if not snapshot.switches:
        return frozenset()
    if snapshot.degraded:
        mode = "marked"
    count = min(snapshot.classes, MAX_CLASSES)
    parts = [_pipeline(snapshot.switches, count, mode, tuple(sorted(control)))]
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
            parts.append(_acknowledgements(snapshot.switches, _believed_hosts(snapshot)))
        switches = tuple(switch.dpid for switch in snapshot.switches)
        for job, service_class, declared, listening, found in claimed_flows(snapshot, classes):
            for traffic in (declared, listening, found):
                if traffic and traffic is not NOTHING:
                    parts.append(_job_rules(job.id, service_class, traffic, switches))
    return frozenset().union(*parts)


_Traffic = tuple[RuleSite, ...] | Listening
_Sites = list[tuple[int | None, int, Match]]
"""The switch of each rule (None: every switch), its priority, and what it matches."""

_Made = dict[tuple[str, int, tuple[int, ...]], frozenset[Rule]]
_rules_of: Memo[_Traffic, _Made] = Memo(_REMEMBERED_JOBS)
_sites_of: Memo[_Traffic, _Sites] = Memo(_REMEMBERED_JOBS)


def _job_rules(job: str, service_class: int, traffic: _Traffic, switches: tuple[int, ...]) -> frozenset[Rule]:
    made = _rules_of.get(traffic, dict)
    key = (job, service_class, switches)
    found = made.get(key)
    if found is None:
        if len(made) > MAX_CLASSES:
            made.clear()
        found = made[key] = _make_job_rules(job, service_class, traffic, switches)
    return found


def _make_job_rules(job: str, service_class: int, traffic: _Traffic, switches: tuple[int, ...]) -> frozenset[Rule]:
    actions = (SetClass(service_class), SetDscp(CLASS_DSCP[service_class]))
    table, goto = Table.CLASSIFY, Table.FORWARD
    known = frozenset(switches)
    found: list[Rule] = []
    for site, priority, match in _sites_of.get(traffic, lambda: _sites(traffic)):
        where = switches if site is None else (site,) if site in known else ()
        found += [Rule(switch, table, priority, match, actions, goto, job) for switch in where]
    return frozenset(found)


def _sites(traffic: _Traffic) -> _Sites:
    """What tells a job's packets apart in a switch: the same whatever class they are of."""
    return list(_of_listeners(traffic)) if isinstance(traffic, Listening) else [_of_flow(place) for place in traffic]


def _of_flow(site: RuleSite) -> tuple[int | None, int, Match]:
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


def _of_listeners(listening: Listening) -> Iterator[tuple[int | None, int, Match]]:
    """From a port where its host is attached; to it where any host of the job is, which is told where it is alone."""
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
    found: list[Rule] = []
    for switch in switches:
        found.append(Rule(switch.dpid, Table.GATE, MISS, Match(), goto=Table.FORWARD))
        found += _classify(switch.dpid, MISS, Match(), None)
        found += _classify(switch.dpid, CONTROL, Match(eth_type=ETH_ARP), 0)
        for address, port in control:
            for match in (
                Match(eth_type=ETH_IPV4, ip_proto=PROTO_TCP, ipv4_dst=address, tcp_dst=port),
                Match(eth_type=ETH_IPV4, ip_proto=PROTO_TCP, ipv4_src=address, tcp_src=port),
            ):
                found += _classify(switch.dpid, CONTROL, match, 0)
        found += _by_dscp(switch, count, mode)
    return frozenset(found)


def _by_dscp(switch: Switch, count: int, mode: Mode) -> Iterator[Rule]:
    """The rules that read the DSCP: whom to believe, and what to clear."""
    served = {CLASS_DSCP[service_class]: service_class for service_class in range(count)} | {ACKNOWLEDGEMENT_DSCP: 0}
    if mode == "marked" and switch.trusted_ports is None:
        for dscp, service_class in served.items():
            yield from _classify(switch.dpid, BY_DSCP, Match(eth_type=ETH_IPV4, ip_dscp=dscp), service_class)
        return
    for dscp in OWN_DSCP:
        match = Match(eth_type=ETH_IPV4, ip_dscp=dscp)
        yield from _classify(switch.dpid, BY_DSCP, match, None, SetDscp(OTHER_DSCP))
    believed = dict.fromkeys(switch.inner_ports, BY_INNER_PORT)
    if mode == "marked" and switch.trusted_ports is not None:
        believed |= dict.fromkeys(switch.trusted_ports - switch.inner_ports, BY_TRUSTED_PORT)
    for port, priority in believed.items():
        for dscp, service_class in served.items():
            match = Match(in_port=port, eth_type=ETH_IPV4, ip_dscp=dscp)
            yield from _classify(switch.dpid, priority, match, service_class)


def _believed_hosts(snapshot: Snapshot) -> tuple[tuple[str, int | None, int | None], ...]:
    """Address, switch and port of the hosts whose agents mark acknowledgements."""
    hosts = (snapshot.hosts[name] for name in sorted(snapshot.acknowledging) if name in snapshot.hosts)
    return tuple((host.address, host.switch, host.switch_port) for host in hosts if host.address is not None)


@lru_cache(maxsize=16)
def _acknowledgements(
    switches: tuple[Switch, ...], hosts: tuple[tuple[str, int | None, int | None], ...]
) -> frozenset[Rule]:
    """What such hosts mark as acknowledgements goes first, whichever job's it is; but not from a port not trusted.

    A host whose port is known is believed at that port alone.
    """
    found: list[Rule] = []
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
            found += _classify(switch.dpid, ACKNOWLEDGEMENT, match, 0)
    return frozenset(found)


def _classify(switch: int, priority: int, match: Match, service_class: int | None, *more: Action) -> Iterator[Rule]:
    yield Rule(switch, Table.CLASSIFY, priority, match, (SetClass(service_class), *more), Table.FORWARD)


@lru_cache(maxsize=16)
def _learning(switches: tuple[Switch, ...]) -> frozenset[Rule]:
    return frozenset(Rule(switch.dpid, Table.FORWARD, MISS, Match(), (Normal(),)) for switch in switches)


@lru_cache(maxsize=16)
def _paths(
    switches: tuple[int, ...], attached: tuple[tuple[str, int, int], ...], links: tuple[Link, ...]
) -> frozenset[Rule]:
    way = paths(links, frozenset(switches))
    found: dict[tuple[int, Table, int, Match], Rule] = {}
    for switch in switches:
        for address, home, port in attached:
            by = port if switch == home else way.port(switch, home, address)
            if by is None:
                continue
            out = (Output(by),)
            for match in (
                Match(eth_type=ETH_IPV4, ipv4_dst=address),
                Match(eth_type=ETH_ARP, arp_tpa=address),
            ):
                rule = Rule(switch, Table.FORWARD, TO_HOST, match, out)
                found.setdefault(rule.key, rule)
        # An explicit last rule counts what is dropped.
        drop = Rule(switch, Table.FORWARD, MISS, Match())
        found[drop.key] = drop
    return frozenset(found.values())
