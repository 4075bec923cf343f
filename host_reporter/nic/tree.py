"""The HTB tree of a host's interface as text for ``tc -batch``. Pure; ``host_reporter.nic.interface`` applies it.

A parameter server's fan-out queues at its own NIC, so the order must hold there too. The tree has a root with handle
``7472:`` and under it one class with the link's rate. That class has a leaf for each job class (priority k, a small
floor), and a default leaf for all other traffic (lowest priority, a floor of its own). Filters on the DSCP lead to the
leaves (see ``filters``); acknowledgements go to the leaf of class 0. HTB: M. Devera, Hierarchical Token Bucket theory,
2002. A leaf below its floor goes first whatever its priority, so the floors hold while higher classes are busy.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from controller.code_points import MOST, CodePoints
from host_reporter.nic.filters import ARP_PREF, DSCP_PREF, PREFS, Wanted, of_plan

HANDLE = "7472"
"""The major number of our root qdisc. The agent recognises its tree by it."""

OTHER_LEAF = 0x1F
OTHER_PRIORITY = 7
MAX_CLASSES = 7

SIGNATURE_CLASS = 0xFFFE
"""The minor number of a class without traffic. It shows that an agent has built the tree, so an agent may remove it."""

_FIRST_LEAF = 0x10
_FIRST_QUEUE = 0x7500
_FIRST_TABLE = 0x800
"""The kernel gives this number to the first hash table of filters."""
MTU = 1514
# A leaf sends this many bytes in one round. The kernel warns outside 1,000 to 200,000 bytes, and else guesses a value.
QUANTUM = 10 * MTU
# After a pause a link sends a burst at once, before its rate holds. One millisecond covers the delay of the kernel's
# timers, which HTB waits for between packets.
_BURST_SECONDS = 0.001
_BURST_PACKETS = 2
# A leaf's queue is bounded in bytes, because one packet of a sender may stand for 64 KB. A local socket keeps little in
# it (TCP small queues). The bound is for many sockets, and is above what one burst of a fan-out needs.
_QUEUE_SECONDS = 0.1
_QUEUE_BYTES = (512 * 1024, 16 * 2**20)
# All other traffic shares one queue, so at its floor a ping waits for all bulk data before it. TCP stalls with a queue
# of less than two packets of 64 KB.
_OTHER_QUEUE_BYTES = (128 * 1024, 2 * 2**20)


def htb_tree(interface: str, rate_bps: float, points: CodePoints, class_floor: float, other_floor: float) -> list[str]:
    """Returns the lines that build a new tree.

    ``points`` are the DSCPs of the classes; floors are shares of the link, all of them together at most 1. Raises
    ValueError.
    """
    root = f"qdisc add dev {interface} root handle {HANDLE}: htb default {OTHER_LEAF:x}"
    return [root, *htb_parts(interface, rate_bps, points, class_floor, other_floor), arp_filter(interface)]


def htb_parts(
    interface: str,
    rate_bps: float,
    points: CodePoints,
    class_floor: float,
    other_floor: float,
    *,
    tables: Mapping[tuple[int, int], int] | None = None,
) -> list[str]:
    """Returns the lines that set an existing tree's rates, leaves and filters in place, without dropping a packet.

    ``tables`` gives the hash table of each installed filter by its preference and number. None means a tree without
    filters, whose first table is the kernel's first. Raises ValueError.
    """
    classes = len(points.classes)
    if not 1 <= classes <= MAX_CLASSES:
        raise ValueError(f"{classes} classes; there can be 1 to {MAX_CLASSES}")
    if len(set(points.owned)) != len(points.owned) or not all(1 <= dscp <= MOST for dscp in points.owned):
        raise ValueError(f"the DSCPs {points.owned} must differ, each from 1 to {MOST}")
    if not (class_floor >= 0 and other_floor >= 0 and classes * class_floor + other_floor <= 1):
        raise ValueError(f"the floors {class_floor} x {classes} and {other_floor} are more than the link")
    if not rate_bps >= 8:
        raise ValueError(f"the rate {rate_bps} bit/s is none")
    burst = burst_bytes(rate_bps)
    bursts = f"burst {burst} cburst {burst} quantum {QUANTUM}"
    rate = round(rate_bps)
    lines = [
        f"class replace dev {interface} parent {HANDLE}: classid {HANDLE}:1 htb rate {rate}bit ceil {rate}bit {bursts}"
    ]
    queue = queue_bytes(rate_bps)
    leaves = [(leaf(k), k, class_floor, queue) for k in range(classes)]
    leaves.append((OTHER_LEAF, OTHER_PRIORITY, other_floor, other_queue_bytes(rate_bps * other_floor)))
    for minor, priority, floor, limit in leaves:
        lines += [
            f"class replace dev {interface} parent {HANDLE}:1 classid {HANDLE}:{minor:x} htb "
            f"rate {max(round(rate_bps * floor), 8)}bit ceil {rate}bit prio {priority} {bursts}",
            f"qdisc replace dev {interface} parent {HANDLE}:{minor:x} handle {queue_handle(minor):x}: "
            f"bfifo limit {limit}",
        ]
    if tables is None:
        tables = {(DSCP_PREF, dscp): _FIRST_TABLE for dscp in points.owned}
    return lines + [_filter(interface, wanted, tables.get(wanted[:2])) for wanted in of_plan(points)]


def arp_filter(interface: str) -> str:
    """Returns the line that leads ARP to class 0, because no other traffic flows without its answers."""
    return (
        f"filter add dev {interface} parent {HANDLE}: protocol arp prio {ARP_PREF} u32 match u32 0 0 "
        f"flowid {HANDLE}:{leaf(0):x}"
    )


def signature(interface: str) -> str:
    """Returns the line that marks the tree as built by an agent; a killed agent leaves no other trace."""
    return (
        f"class replace dev {interface} parent {HANDLE}: classid {HANDLE}:{SIGNATURE_CLASS:x} htb "
        f"rate 8bit quantum {QUANTUM}"
    )


def filter_removal(interface: str, pref: int, table: int, number: int) -> str:
    """Returns the line that removes one filter."""
    return (
        f"filter del dev {interface} parent {HANDLE}: protocol {PREFS[pref]} prio {pref} "
        f"handle {table:x}::{number:x} u32"
    )


def arp_removal(interface: str) -> str:
    """Returns the line that removes all filters with the preference of ARP's filter."""
    return f"filter del dev {interface} parent {HANDLE}: protocol arp prio {ARP_PREF}"


def surplus_leaves(interface: str, classes: int, leaves: Collection[int]) -> list[str]:
    """Returns the lines that remove those of ``leaves`` (minor numbers) whose class no longer exists."""
    unwanted = {leaf(k) for k in range(classes, MAX_CLASSES)} & set(leaves)
    return [f"class del dev {interface} classid {HANDLE}:{minor:x}" for minor in sorted(unwanted)]


def is_part(minor: int) -> bool:
    """Returns whether a minor number is that of a class of this tree."""
    return minor in {1, OTHER_LEAF, SIGNATURE_CLASS} or _FIRST_LEAF <= minor < _FIRST_LEAF + MAX_CLASSES


def leaf(k: int) -> int:
    """Returns the minor number of class k's leaf."""
    return _FIRST_LEAF + k


def queue_handle(minor: int) -> int:
    """Returns the major number of a leaf's own queue."""
    return _FIRST_QUEUE + minor


def burst_bytes(rate_bps: float) -> int:
    """Returns the burst of a link of this rate: the bytes of one millisecond, and at least two full packets.

    It may be smaller than a packet of segmentation offload (64 KB). HTB sends that whole as soon as it has any tokens,
    and owes the rest, so the link reaches its rate.
    """
    return max(round(rate_bps / 8 * _BURST_SECONDS), _BURST_PACKETS * MTU)


def queue_bytes(rate_bps: float) -> int:
    """Returns the bytes that a job's leaf on a link of this rate holds."""
    return _queue_bytes(rate_bps, _QUEUE_BYTES)


def other_queue_bytes(floor_bps: float) -> int:
    """Returns the bytes that the leaf of all other traffic holds."""
    return _queue_bytes(floor_bps, _OTHER_QUEUE_BYTES)


def _queue_bytes(rate_bps: float, bounds: tuple[int, int]) -> int:
    return int(min(max(rate_bps / 8 * _QUEUE_SECONDS, bounds[0]), bounds[1]))


def _filter(interface: str, wanted: Wanted, table: int | None) -> str:
    # The handle has the number, so that the command finds an installed filter and only changes its target. An empty
    # table stands for the table of this preference, whose number the kernel chooses. It is right only for a new filter.
    return (
        f"filter replace dev {interface} parent {HANDLE}: protocol {PREFS[wanted.pref]} prio {wanted.pref} "
        f"handle {'' if table is None else f'{table:x}'}::{wanted.number:x} u32 {_matches(wanted)} "
        f"flowid {HANDLE}:{leaf(wanted.service_class):x}"
    )


def _matches(wanted: Wanted) -> str:
    if wanted.pref == DSCP_PREF:
        return f"match ip tos {wanted.number << 2:#04x} 0xfc"
    return " ".join(f"match u32 {value:#010x} {mask:#010x} at {at}" for value, mask, at in wanted.keys)
