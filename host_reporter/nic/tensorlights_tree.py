"""The part of the NIC's HTB tree that TensorLights adds, and the changes from the present to the wanted state. Pure.

Each queue of a band has a leaf, whose priority is the band and never changes. A rotation only replaces the filters on
the servers' ports, and touches no leaf and no packet in one: a new priority does nothing for a leaf that is backlogged,
while a filter with a new target acts at once. A filter behind these leads all other traffic to the last band.

Where the interface has the agent's tree already (``host_reporter.nic.tree``), the leaves are added to it, with filters
before its own, and are removed again. Elsewhere the whole tree is new, with a handle that says so.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    # Mininet's command imports this module through ``tree``, with the packages of the system's Python only.
    from host_reporter.nic.tensorlights import BandQueue, Server

ROOT: Final = 0x7473
"""The major number of a tree that TensorLights has built; such a tree is removed as a whole."""

PORTS_PREF: Final = 1
OTHERS_PREF: Final = 2
"""These preferences put the filters before those by DSCP (``host_reporter.nic.tree``)."""

_FIRST_LEAF = 0x1000
_A_BAND = 0x100
_FIRST_QUEUE = 0x5000


@dataclass(frozen=True, slots=True)
class Lights:
    """The wanted state: the band of each leaf, by the leaf's minor number, and the leaf of each TCP port."""

    leaves: Mapping[int, int]
    ports: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class Filter:
    """An installed filter on a port. ``port`` is None where the agent would not install such a filter."""

    handle: int
    port: int | None
    leaf: int


@dataclass(frozen=True, slots=True)
class Seen:
    """Our installed part: the bytes waiting in each leaf, the filters on ports, and the preferences in use."""

    backlog: Mapping[int, int]
    filters: Collection[Filter]
    prefs: frozenset[int]


NOTHING = Seen({}, (), frozenset())


@dataclass(frozen=True, slots=True)
class PutLeaf:
    """Add a leaf, or set its rates again."""

    leaf: int
    band: int


@dataclass(frozen=True, slots=True)
class Lead:
    """Lead a port's packets to a leaf: by a change of the filter ``handle``, or by a new filter (None)."""

    port: int
    leaf: int
    handle: int | None


@dataclass(frozen=True, slots=True)
class LeadOthers:
    """Lead all other traffic to the last band."""


@dataclass(frozen=True, slots=True)
class DropFilter:
    """Remove a port's filter."""

    handle: int


@dataclass(frozen=True, slots=True)
class DropFilters:
    """Remove all filters of a preference."""

    pref: int


@dataclass(frozen=True, slots=True)
class DropLeaf:
    """Remove a leaf, with the packets that wait in it."""

    leaf: int


Change = PutLeaf | Lead | LeadOthers | DropFilter | DropFilters | DropLeaf


def lights(servers: Collection[Server], queues: Mapping[str, BandQueue]) -> Lights:
    """Returns the leaves of these queues, and the servers' ports that lead to them."""
    leaves = {leaf(queue): queue.band for queue in queues.values()}
    ports = {port: leaf(queues[server.job]) for server in servers if server.job in queues for port in server.ports}
    return Lights(leaves, ports)


def leaf(queue: BandQueue) -> int:
    """Returns the minor number of a queue's leaf. In a band of more than 256 jobs the last ones share a leaf."""
    return _FIRST_LEAF + queue.band * _A_BAND + min(queue.number, _A_BAND - 1)


def is_leaf(minor: int) -> bool:
    """Returns whether a minor number is that of a leaf of ours."""
    return _FIRST_LEAF <= minor < 2 * _FIRST_LEAF


def queue_handle(minor: int) -> int:
    """Returns the major number of a leaf's queue."""
    return _FIRST_QUEUE + minor


def changes(wanted: Lights, seen: Seen, *, anew: bool) -> list[Change]:
    """Returns the changes that make ``seen`` equal to ``wanted``, in an order in which no packet is without a leaf.

    A leaf without a filter stays until it is empty. With ``anew`` existing leaves get their rates again.
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
    """Returns the changes that remove our part: the filters first, since a leaf with a filter cannot be removed."""
    steps: list[Change] = [DropFilters(pref) for pref in sorted(seen.prefs)]
    return steps + [DropLeaf(minor) for minor in sorted(seen.backlog)]
