"""The part of the NIC's HTB tree that TensorLights adds, as values: the wanted one, and the present one. Pure.

Each queue of a band has a leaf, whose priority is the band and never changes. Where the interface has the agent's tree
already (``host_reporter.nic.tree``), the leaves are added to it, with filters before its own, and are removed again.
Elsewhere the whole tree is new, with a handle that says so.

[ours] Where each job has a band of its own, a band has one leaf, and the queue of that leaf is an HTB tree too. Inside
it every job has a leaf, whose priority is the job's place, and the filters on ports are there once more. HTB has eight
priorities only, so two levels make 56 of them. The tree inside has ten times the link's rate, so it only orders. A
``prio`` qdisc would order 16 jobs of a band with fewer parts, but without a guaranteed rate: the last of them could be
cut off for as long as others send. It would also be a second kernel module.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    # Mininet's command imports this module through ``tree``, with the packages of the system's Python only.
    from host_reporter.nic.tensorlights.bands import BandQueue, Place, Server

ROOT: Final = 0x7473
"""The major number of a tree that TensorLights has built; such a tree is removed as a whole."""

PORTS_PREF: Final = 1
OTHERS_PREF: Final = 2
"""These preferences put the filters before those by DSCP (``host_reporter.nic.tree``)."""

FIRST_PLACE: Final = 0x1000
"""The minor number of the first leaf inside a band. It is there in every band that has jobs, so packets that no filter
knows go there."""

_FIRST_LEAF = 0x1000
_A_BAND = 0x100
_FIRST_BAND = 0x1700
_A_PLACE = 0x20
_FIRST_QUEUE = 0x5000
_FIRST_TREE = _FIRST_QUEUE + _FIRST_BAND
_FIRST_INNER_QUEUE = 0x3000

INNER_TREES: Final = range(_FIRST_TREE, _FIRST_TREE + 7)
"""The major numbers of the trees inside the bands' leaves."""


@dataclass(frozen=True, slots=True)
class Lights:
    """The wanted state: the priority of each leaf, by the leaf's minor number, and the leaf of each TCP port.

    ``inside``: the tree inside a leaf, if there is one, by the leaf's minor number.
    """

    leaves: Mapping[int, int]
    ports: Mapping[int, int]
    inside: Mapping[int, Lights] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Filter:
    """An installed filter on a port. ``port`` is None where the agent would not install such a filter."""

    handle: int
    port: int | None
    leaf: int


@dataclass(frozen=True, slots=True)
class Seen:
    """Our installed part: the bytes waiting in each leaf, the filters on ports, and the preferences in use.

    ``inside``: the installed trees inside leaves, by the leaf's minor number.
    """

    backlog: Mapping[int, int]
    filters: Collection[Filter]
    prefs: frozenset[int]
    inside: Mapping[int, Seen] = field(default_factory=dict)


NOTHING = Seen({}, (), frozenset())


def lights(servers: Collection[Server], queues: Mapping[str, BandQueue]) -> Lights:
    """Returns the leaves of these queues, and the servers' ports that lead to them."""
    leaves = {leaf(queue): queue.band for queue in queues.values()}
    ports = {port: leaf(queues[server.job]) for server in servers if server.job in queues for port in server.ports}
    return Lights(leaves, ports)


def lights_in_places(
    servers: Collection[Server], queues: Mapping[str, BandQueue], places: Mapping[str, Place]
) -> Lights:
    """Returns a leaf for each band, with a tree inside that has a leaf for each of the band's places."""
    known = [server for server in servers if server.job in queues]
    ports = {port: server.job for server in known for port in server.ports}
    inside = {}
    for band in sorted({queue.band for queue in queues.values()}):
        leaves = {place_leaf(places[job]): places[job].place for job, queue in queues.items() if queue.band == band}
        led = {port: place_leaf(places[job]) for port, job in ports.items() if queues[job].band == band}
        inside[_FIRST_BAND + band] = Lights(leaves, led)
    outside = {port: _FIRST_BAND + queues[job].band for port, job in ports.items()}
    return Lights({minor: minor - _FIRST_BAND for minor in inside}, outside, inside)


def leaf(queue: BandQueue) -> int:
    """Returns the minor number of a queue's leaf. In a band of more than 256 jobs the last ones share a leaf."""
    return _FIRST_LEAF + queue.band * _A_BAND + min(queue.number, _A_BAND - 1)


def place_leaf(place: Place) -> int:
    """Returns the minor number of a leaf inside a band. In a place of more than 32 jobs the last ones share a leaf."""
    return FIRST_PLACE + place.place * _A_PLACE + min(place.number, _A_PLACE - 1)


def is_leaf(minor: int) -> bool:
    """Returns whether a minor number is that of a leaf of ours."""
    return _FIRST_LEAF <= minor < 2 * _FIRST_LEAF


def queue_handle(major: int, minor: int) -> int:
    """Returns the major number of the queue of a leaf, which is one of the tree ``major``.

    For a band's leaf with a tree inside, that queue is this tree.
    """
    if major in INNER_TREES:
        return _FIRST_INNER_QUEUE + (major - _FIRST_TREE) * _A_BAND + minor
    return _FIRST_QUEUE + minor
