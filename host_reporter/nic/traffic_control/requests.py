"""The requests that make and remove the parts of TensorLights' trees, over an open netlink socket of pyroute2."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from pyroute2.netlink.rtnl import tcmsg
from pyroute2.netlink.rtnl.tcmsg import sched_pfifo

from controller.model import BITS_PER_BYTE
from host_reporter.nic import filters, tree
from host_reporter.nic.tensorlights.changes import (
    Change,
    DropFilter,
    DropFilters,
    DropLeaf,
    Inside,
    Lead,
    LeadOthers,
    PutBand,
    PutLeaf,
)
from host_reporter.nic.tensorlights.tree import FIRST_PLACE, OTHERS_PREF, PORTS_PREF, queue_handle
from host_reporter.nic.traffic_control.u32 import EVERYTHING, keys_of

TINY_BPS = 1000
"""Each job's leaf has this guaranteed rate, because HTB needs one. A leaf borrows the rest of its rate by priority."""

OTHER_FLOOR = 0.10
"""All other traffic keeps this share of the link in a new tree; the controller's default is the same."""

NO_PARENT: Final = 0xFFFFFFFF

_INNER_TIMES = 10
"""A tree inside a leaf has so many times the link's rate. It must never wait for its own rate: HTB needs queues that
have a packet for it whenever one waits."""

_INNER_BURST_BYTES = 2**20
"""It can send so much more at once than its rate says. The largest packets of segmentation offload have half of it."""

_ARP_LEAF = 0x10
_LINK = 1
_ETH_IP, _ETH_ARP = 0x0800, 0x0806

# bfifo has the same option as pfifo, and pyroute2 knows only pfifo.
tcmsg.plugins.setdefault("bfifo", sched_pfifo)


class Place(NamedTuple):
    """A tree of an interface: an open socket, the interface's index, and the tree's major number.

    ``link_bps`` is the rate of the interface, ``most_bps`` that of the tree, and ``burst`` what it sends at once.
    """

    netlink: Any
    ifindex: int
    major: int
    link_bps: float
    most_bps: float
    burst: int

    @property
    def root(self) -> int:
        """The handle of its qdisc."""
        return self.major << 16

    def inside(self, minor: int) -> Place:
        """Returns the tree inside a leaf."""
        most_bps = self.link_bps * _INNER_TIMES
        burst = tree.burst_bytes(most_bps) + _INNER_BURST_BYTES
        return self._replace(major=queue_handle(self.major, minor), most_bps=most_bps, burst=burst)


def at_interface(netlink: Any, index: int, major: int, rate_bps: float) -> Place:
    """Returns the tree at the root of an interface."""
    return Place(netlink, index, major, rate_bps, rate_bps, tree.burst_bytes(rate_bps))


def make_root(place: Place) -> None:
    """Add the qdisc of a new tree at the root."""
    place.netlink.tc("add", "htb", place.ifindex, place.root, parent=NO_PARENT, default=tree.OTHER_LEAF)


def drop_root(place: Place) -> None:
    """Remove the tree at the root."""
    place.netlink.tc("del", "htb", place.ifindex, place.root, parent=NO_PARENT)


def put_frame(place: Place) -> None:
    """Install a new tree without the servers' leaves: the link, and the leaves of ARP and of other traffic."""
    _put_link(place)
    rate_bps = place.link_bps
    for minor, priority, share, limit in (
        (_ARP_LEAF, 0, 0.01, tree.queue_bytes(rate_bps)),
        (tree.OTHER_LEAF, tree.OTHER_PRIORITY, OTHER_FLOOR, tree.other_queue_bytes(rate_bps * OTHER_FLOOR)),
    ):
        _put_leaf(place, minor, rate=_bytes(rate_bps * share), priority=priority)
        _put_queue(place, minor, limit)
    place.netlink.tc(
        "add-filter", "u32", place.ifindex, parent=place.root, prio=filters.ARP_PREF, protocol=_ETH_ARP,
        target=place.root | _ARP_LEAF, keys=EVERYTHING,
    )  # fmt: skip


def drop_arp_filter(place: Place) -> None:
    """Remove the filter that leads ARP to its leaf."""
    place.netlink.tc("del-filter", index=place.ifindex, parent=place.root, info=filters.ARP_PREF << 16)


def carry_out(place: Place, change: Change) -> None:
    """Carry out one change of a tree."""
    netlink, ifindex, root = place.netlink, place.ifindex, place.root
    match change:
        case PutLeaf(minor, priority):
            _put_leaf(place, minor, rate=TINY_BPS // BITS_PER_BYTE, priority=priority)
            _put_queue(place, minor, tree.queue_bytes(place.link_bps))
        case PutBand():
            _put_band(place, change)
        case Lead():
            _lead(place, change)
        case LeadOthers():
            others = {"prio": OTHERS_PREF, "protocol": _ETH_IP, "keys": EVERYTHING}
            netlink.tc("add-filter", "u32", ifindex, parent=root, target=root | tree.OTHER_LEAF, **others)
        case DropFilter(handle):
            netlink.tc("del-filter", "u32", ifindex, handle, parent=root, prio=PORTS_PREF, protocol=_ETH_IP, target=0)
        case DropFilters(pref):
            netlink.tc("del-filter", index=ifindex, parent=root, info=pref << 16)
        case DropLeaf(minor):
            netlink.tc("del-class", index=ifindex, handle=root | minor)
        case Inside(minor, inner):
            carry_out(place.inside(minor), inner)


def _put_band(place: Place, band: PutBand) -> None:
    _put_leaf(place, band.leaf, rate=band.jobs * TINY_BPS // BITS_PER_BYTE, priority=band.priority)
    inside = place.inside(band.leaf)
    if band.adds_tree:
        parent = place.root | band.leaf
        place.netlink.tc("replace", "htb", place.ifindex, inside.root, parent=parent, default=FIRST_PLACE)
    _put_link(inside)


def _lead(place: Place, lead: Lead) -> None:
    options = {"prio": PORTS_PREF, "protocol": _ETH_IP, "keys": keys_of(lead.port)}
    target = {"parent": place.root, "target": place.root | lead.leaf}
    if lead.handle is None:
        place.netlink.tc("add-filter", "u32", place.ifindex, **target, **options)
    else:
        place.netlink.tc("replace-filter", "u32", place.ifindex, lead.handle, **target, **options)


def _put_link(place: Place) -> None:
    """Add the class that all leaves of a tree borrow from, or set its rate again."""
    _put_class(place, _LINK, rate=_bytes(place.most_bps), parent=0, burst=place.burst)


def _put_leaf(place: Place, minor: int, *, rate: int, priority: int) -> None:
    # A leaf below its guaranteed rate goes first whatever its priority, so a tiny rate's burst is one packet.
    burst = min(place.burst, max(tree.MTU, rate))
    _put_class(place, minor, rate=rate, parent=_LINK, burst=burst, priority=priority)


def _put_class(place: Place, minor: int, *, rate: int, parent: int, burst: int, priority: int = 0) -> None:
    place.netlink.tc(
        "replace-class", "htb", place.ifindex, place.root | minor,
        parent=place.root | parent,
        rate=rate,
        ceil=_bytes(place.most_bps),
        burst=burst,
        cburst=place.burst,
        prio=priority,
        quantum=tree.QUANTUM,
    )  # fmt: skip


def _put_queue(place: Place, minor: int, limit: int) -> None:
    handle = queue_handle(place.major, minor) << 16
    place.netlink.tc("replace", "bfifo", place.ifindex, handle, parent=place.root | minor, limit=limit)


def _bytes(rate_bps: float) -> int:
    return int(rate_bps / BITS_PER_BYTE)
