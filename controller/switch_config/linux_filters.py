"""The filters of a Linux router: which queue a packet waits in, by its mark, kind and DSCP. Pure.

A DSCP is in the second byte of an IPv4 header, and across the first two bytes of an IPv6 header (RFC 2474). ARP and
neighbour discovery (RFC 4861, ICMPv6 types 133 to 137) go first, because no other traffic flows without their answers.
"""

from __future__ import annotations

from collections.abc import Iterator

from controller.switch_config.plan import Queue, StaticPlan

HANDLE = "7475"
"""The major number of the tree's root. The trees of agents have others."""
MARK = "0x7475"
OTHER_LEAF = 0x1F
_FIRST_LEAF = 0x10
_TAGGED = "prio 6"

_DISCOVERY = (
    ("0x84000000", "0xfc000000"),
    ("0x88000000", "0xfe000000"),
)
"""Values and masks of the first word of ICMPv6: types 132 to 135, and 136 and 137. Type 132 is never right behind the
IPv6 header."""


def leaf(plan: StaticPlan, queue: Queue) -> int:
    """Returns the minor number of a queue's class in the tree."""
    return OTHER_LEAF if queue.kind == "other" else _FIRST_LEAF + plan.queues.index(queue)


def filters(plan: StaticPlan, interface: str) -> Iterator[str]:
    """Yields the filters of an interface, as lines for ``tc -batch``; the kernel tries the lowest ``prio`` first."""
    add = f"filter add dev {interface} parent {HANDLE}:"
    yield f"{add} protocol all prio 1 handle {MARK} fw flowid {HANDLE}:{OTHER_LEAF:x}"
    for kind, matches in _first():
        yield f"{add} {kind} u32 {matches} flowid {HANDLE}:{leaf(plan, plan.queues[0]):x}"
    for queue in plan.queues:
        for dscp in queue.dscps:
            for kind, matches in _of_dscp(dscp):
                yield f"{add} {kind} u32 {matches} flowid {HANDLE}:{leaf(plan, queue):x}"


def _first() -> Iterator[tuple[str, str]]:
    """Yields protocol, preference and matches of what goes with class 0 whatever its DSCP."""
    yield "protocol arp prio 2", "match u32 0 0"
    # In a VLAN it is known by the types of addresses with which ARP begins: Ethernet and IPv4 (RFC 826).
    yield f"protocol 802.1Q {_TAGGED}", "match u32 0x00010800 0xffffffff at 0"
    for value, mask in _DISCOVERY:
        icmp = f"match u32 0x00003a00 0x0000ff00 at 4 match u32 {value} {mask} at 40"
        yield "protocol ipv6 prio 3", icmp
        yield f"protocol 802.1Q {_TAGGED}", f"match u32 0x60000000 0xf0000000 at 0 {icmp}"


def _of_dscp(dscp: int) -> Iterator[tuple[str, str]]:
    """Yields protocol, preference and matches of a DSCP. A packet in a VLAN shows its IP version only in its header."""
    over_ipv4, over_ipv6 = dscp << 18, dscp << 22
    yield "protocol ip prio 4", f"match u32 {over_ipv4:#010x} 0x00fc0000 at 0"
    yield "protocol ipv6 prio 5", f"match u32 {over_ipv6:#010x} 0x0fc00000 at 0"
    yield f"protocol 802.1Q {_TAGGED}", f"match u32 {4 << 28 | over_ipv4:#010x} 0xf0fc0000 at 0"
    yield f"protocol 802.1Q {_TAGGED}", f"match u32 {6 << 28 | over_ipv6:#010x} 0xffc00000 at 0"
