"""The part of the NIC's HTB tree that TensorLights adds, and how what is there becomes what is wanted. Pure.

A leaf a place, never moved: its priority is its band. What moves are the filters on the servers' ports, since a new
priority does nothing for a leaf that is backlogged, and a filter that leads elsewhere acts at once. So a rotation only
replaces filters: no leaf, and no packet in one, is touched. All other traffic has the last band, by a filter behind
those.

Where the interface has the agent's tree already (``host_reporter.nic.tree``) the leaves hang in it, before its filters,
and are taken out again. Elsewhere the tree is made from nothing, with a handle that says so.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    # Mininet's command reads this module, by way of the tree by DSCP, with what the system's Python has.
    from host_reporter.nic.tensorlights import BandQueue, Server

ROOT: Final = 0x7473
"""Major number of a tree that TensorLights made from nothing: all of it is taken away in the end."""

PORTS_PREF: Final = 1
OTHERS_PREF: Final = 2
"""Places of the filters among all: before those by DSCP (``host_reporter.nic.tree``)."""

_FIRST_LEAF = 0x1000
_A_BAND = 0x100
_FIRST_QUEUE = 0x5000


@dataclass(frozen=True, slots=True)
class Lights:
    """What is wanted: of each leaf, by its minor number, the band; and the leaf of each TCP port."""

    leaves: Mapping[int, int]
    ports: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class Filter:
    """A filter on a port that is there. ``port`` of None: not as we make them."""

    handle: int
    port: int | None
    leaf: int


@dataclass(frozen=True, slots=True)
class Seen:
    """What is there of ours: the bytes that wait in each leaf, the ports' filters, and the places that filters have."""

    backlog: Mapping[int, int]
    filters: Collection[Filter]
    prefs: frozenset[int]


NOTHING = Seen({}, (), frozenset())


@dataclass(frozen=True, slots=True)
class PutLeaf:
    """Make a leaf, or give it its rates anew."""

    leaf: int
    band: int


@dataclass(frozen=True, slots=True)
class Lead:
    """Lead a port's packets to a leaf: by changing the filter ``handle``, or by a new one (None)."""

    port: int
    leaf: int
    handle: int | None


@dataclass(frozen=True, slots=True)
class LeadOthers:
    """Lead all other traffic to the last band."""


@dataclass(frozen=True, slots=True)
class DropFilter:
    """Take a port's filter away."""

    handle: int


@dataclass(frozen=True, slots=True)
class DropFilters:
    """Take all filters of a place away."""

    pref: int


@dataclass(frozen=True, slots=True)
class DropLeaf:
    """Take a leaf away, with what waits in it."""

    leaf: int


Change = PutLeaf | Lead | LeadOthers | DropFilter | DropFilters | DropLeaf


def lights(servers: Collection[Server], queues: Mapping[str, BandQueue]) -> Lights:
    """The leaves of these places, and the servers' ports that lead there."""
    leaves = {leaf(queue): queue.band for queue in queues.values()}
    ports = {port: leaf(queues[server.job]) for server in servers if server.job in queues for port in server.ports}
    return Lights(leaves, ports)


def leaf(queue: BandQueue) -> int:
    """The minor number of a place's leaf. In a band of more than 256 jobs the last ones share a leaf."""
    return _FIRST_LEAF + queue.band * _A_BAND + min(queue.number, _A_BAND - 1)


def is_leaf(minor: int) -> bool:
    """Returns whether it is the number of a leaf of ours."""
    return _FIRST_LEAF <= minor < 2 * _FIRST_LEAF


def queue_handle(minor: int) -> int:
    """The major number of a leaf's queue."""
    return _FIRST_QUEUE + minor


def changes(wanted: Lights, seen: Seen, *, anew: bool) -> list[Change]:
    """What makes ``seen`` equal to ``wanted``, in an order in which no packet is without a leaf.

    A leaf that is no longer led to stays until it is empty. ``anew``: leaves that are there get their rates again.
    """
    steps: list[Change] = [
        PutLeaf(minor, band) for minor, band in sorted(wanted.leaves.items()) if anew or minor not in seen.backlog
    ]
    of_port: dict[int, Filter] = {}
    surplus = []
    for entry in sorted(seen.filters, key=lambda entry: entry.handle):
        if entry.port is None or entry.port not in wanted.ports or entry.port in of_port:
            surplus.append(entry)
        else:
            of_port[entry.port] = entry
    for port, minor in sorted(wanted.ports.items()):
        known = of_port.get(port)
        if known is None or known.leaf != minor:
            steps.append(Lead(port, minor, None if known is None else known.handle))
    if OTHERS_PREF not in seen.prefs:
        steps.append(LeadOthers())
    steps += [DropFilter(entry.handle) for entry in surplus]
    idle = (minor for minor, waiting in seen.backlog.items() if minor not in wanted.leaves and not waiting)
    return steps + [DropLeaf(minor) for minor in sorted(idle)]


def removal(seen: Seen) -> list[Change]:
    """What takes all of ours away: the filters first, for a leaf that is led to cannot go."""
    steps: list[Change] = [DropFilters(pref) for pref in sorted(seen.prefs)]
    return steps + [DropLeaf(minor) for minor in sorted(seen.backlog)]
