"""Rules of switches as plain values to compare, and the difference between two sets of them.

A rule never names a queue number. It names a service class (0 is served first, None is all other traffic), and
``dataplane/queues`` knows how a switch numbers its queues.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

from controller.pieces import Steps, whole

ETH_IPV4 = 0x0800
ETH_ARP = 0x0806
ETH_IPV6 = 0x86DD
ETH_PTP = 0x88F7
ETH_LLDP = 0x88CC
ETH_ROCE = 0x8915
IP_FAMILIES = (ETH_IPV4, ETH_IPV6)
PROTO_ICMP = 1
PROTO_TCP = 6
PROTO_UDP = 17
PROTO_ICMPV6 = 58


PIECE = 1024
"""Let others go on after so many rules: to look at one, or to hash it, takes some microseconds."""


class Table(IntEnum):
    """The tables of the pipeline, in the order in which a packet passes them (see ``compiler``)."""

    GATE = 0
    CLASSIFY = 1
    KINDS = 2
    SOURCES = 3
    PAIRS = 4
    PLACES = 5
    FORWARD = 6


class Match(NamedTuple):
    """The fields that a rule matches; a field of None matches anything. Addresses are texts, as ``ipaddress`` has them.

    A pair is a value and a mask. It is a tuple, as ``Rule`` is, because a plan that moves a hundred jobs creates and
    hashes thousands of them.
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
    ipv6_src: str | None = None
    ipv6_dst: str | None = None
    udp_dst: int | None = None
    metadata: tuple[int, int] | None = None
    eth_dst: str | tuple[str, str] | None = None
    icmpv4_type: int | None = None
    icmpv6_type: int | None = None
    ipv6_nd_target: str | None = None
    eth_src: str | None = None
    icmpv6_code: int | None = None
    udp_src: int | None = None


@dataclass(frozen=True, slots=True)
class SetClass:
    """Put the packet into the queue of a service class; None is the queue of all other traffic."""

    service_class: int | None


@dataclass(frozen=True, slots=True)
class SetDscp:
    """Write the DSCP (0..63) into the IP header. The two bits of ECN stay."""

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


@dataclass(frozen=True, slots=True)
class SetMetadata:
    """Note something for the tables that follow: the bits of ``value`` that are in ``mask``."""

    value: int
    mask: int


@dataclass(frozen=True, slots=True)
class Metered:
    """Drop the packet if more come than the meter with this number allows."""

    meter: int


Action = SetClass | SetDscp | Output | Normal | ToController | SetMetadata | Metered
"""What a rule does. In OpenFlow the meter comes first and metadata last, so they stand there among a rule's actions."""


RuleKey = tuple[int, Table, int, Match]
"""A switch holds at most one rule for each key: datapath id, table, priority and match."""


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
    def key(self) -> RuleKey:
        """Returns the fields by which a switch tells rules apart."""
        return self[:4]


@dataclass(frozen=True, slots=True)
class Difference:
    """The changes that turn one set of rules into another. An added rule replaces the rule with the same key."""

    add: frozenset[Rule]
    remove: frozenset[Rule]

    def __bool__(self) -> bool:
        return bool(self.add or self.remove)


def by_key(rules: Iterable[Rule]) -> Steps[dict[RuleKey, Rule]]:
    """Returns rules by their keys; yields where others may go on."""
    found: dict[RuleKey, Rule] = {}
    for number, rule in enumerate(rules, 1):
        found[rule.key] = rule
        if number % PIECE == 0:
            yield
    return found


def without(rules: Iterable[Rule], keys: Container[RuleKey]) -> Steps[set[Rule]]:
    """Returns the rules that have none of these keys; yields where others may go on."""
    left: set[Rule] = set()
    for number, rule in enumerate(rules, 1):
        if rule.key not in keys:
            left.add(rule)
        if number % PIECE == 0:
            yield
    return left


def difference(held: frozenset[Rule], wanted: frozenset[Rule]) -> Difference:
    """Returns the fewest changes from ``held`` to ``wanted``. A rule that an added one replaces is not removed."""
    return whole(difference_in_steps(held, wanted))


def difference_in_steps(held: frozenset[Rule], wanted: frozenset[Rule]) -> Steps[Difference]:
    """Returns the same as ``difference``; yields where others may go on."""
    # The sets know their rules' hashes; to hash a rule again takes longer than all else.
    add, gone = wanted - held, held - wanted
    places: set[RuleKey] = set()
    for number, rule in enumerate(add, 1):
        places.add(rule.key)
        if number % PIECE == 0:
            yield
    replaced: set[Rule] = set()
    for number, rule in enumerate(gone, 1):
        if rule.key in places:
            replaced.add(rule)
        if number % PIECE == 0:
            yield
    return Difference(add, gone - replaced)
