"""A router with Linux: an HTB tree at each port by ``tc``, as a shell script.

HTB serves a class below its floor first, and then by priority: strict priority with floors. M. Devera, Hierarchical
Token Bucket theory, 2002.
"""

from __future__ import annotations

from collections.abc import Iterator

from controller.switch_config.linux_filters import HANDLE, MARK, OTHER_LEAF, filters, leaf
from controller.switch_config.plan import PlannedPort, Queue, StaticPlan
from controller.switch_config.stanza import Source, Stanza, check

_MANUALS = "https://man7.org/linux/man-pages/man8"
DASH = Source("dash(1)", "https://manpages.debian.org/bookworm/dash/dash.1.en.html")
HTB = Source("tc-htb(8)", f"{_MANUALS}/tc-htb.8.html")
BFIFO = Source("tc-bfifo(8)", f"{_MANUALS}/tc-bfifo.8.html")
U32 = Source("tc-u32(8)", f"{_MANUALS}/tc-u32.8.html")
FW = Source("tc-fw(8)", f"{_MANUALS}/tc-fw.8.html")
TC = Source("tc(8)", f"{_MANUALS}/tc.8.html")
MATCHALL = Source("tc-matchall(8)", f"{_MANUALS}/tc-matchall.8.html")
SKBEDIT = Source("tc-skbedit(8)", f"{_MANUALS}/tc-skbedit.8.html")

_PACKET_BYTES = 1514
_QUANTUM = 10 * _PACKET_BYTES
"""The bytes that a class sends in one round. The kernel warns outside 1,000 to 200,000."""
_BURST_SECONDS = 0.001
"""The kernel's timers may be late by so much, and the rate still holds."""
_QUEUE_SECONDS = 0.01
_QUEUE_BYTES = 512 * 1024
"""A queue holds at least eight packets of segmentation offload, which stand for 64 KiB each."""
_ENTRANCE = "ffff:fff2"
"""Where packets come in, under either of the kernel's queueing disciplines for that (ingress, clsact)."""
_MARK_PREF = 29813
"""The preference of the filter that marks: another program's filters at the entrance of a port go first."""


def stanzas(plan: StaticPlan) -> Iterator[Stanza]:
    """Yields the script."""
    yield Stanza(
        "Settings of this script",
        ("set -eu",),
        (DASH,),
        ("run it by sh, as root, at each start of the router; it replaces the ports' queues",),
    )
    for port in plan.ports:
        yield Stanza(
            f"Queues of {port.name}: strict priority, each with its floor", tuple(_tree(plan, port)), (HTB, BFIFO)
        )
        yield Stanza(
            f"{port.name}: ARP and neighbour discovery, then DSCPs of both families, lead to queues",
            ("tc -batch - <<'END'", *filters(plan, port.name), "END"),
            (TC, U32, FW),
        )
    yield Stanza(
        "Ports that are not believed: a mark leads their packets to the queue of other traffic",
        tuple(_marks(plan)),
        (TC, MATCHALL, SKBEDIT),
    )
    if plan.lossless:
        yield Stanza(
            "PFC and ECN", remarks=("none, since a router in software pauses nobody, so RoCE may lose packets",)
        )
    yield check((f"tc -s class show dev {port.name}" for port in plan.ports), TC)


def _tree(plan: StaticPlan, port: PlannedPort) -> Iterator[str]:
    rate = round(port.rate_bps)
    burst = max(round(port.rate_bps / 8 * _BURST_SECONDS), 2 * _PACKET_BYTES)
    bursts = f"burst {burst} cburst {burst} quantum {_QUANTUM}"
    root = f"dev {port.name} parent {HANDLE}:"
    yield f"tc qdisc del dev {port.name} root 2>/dev/null || true"
    yield f"tc qdisc add dev {port.name} root handle {HANDLE}: htb default {OTHER_LEAF:x}"
    yield f"tc class add {root} classid {HANDLE}:1 htb rate {rate}bit ceil {rate}bit {bursts}"
    for rank, queue in enumerate(plan.queues):
        minor = leaf(plan, queue)
        yield (
            f"tc class add {root}1 classid {HANDLE}:{minor:x} htb rate {_floor(port, queue)}bit ceil {rate}bit "
            f"prio {rank} {bursts}"
        )
        yield f"tc qdisc add {root}{minor:x} bfifo limit {_limit(port, queue)}"


def _floor(port: PlannedPort, queue: Queue) -> int:
    return max(8, round(port.rate_bps * queue.floor))


def _limit(port: PlannedPort, queue: Queue) -> int:
    rate = port.rate_bps * (queue.floor if queue.kind == "other" else 1)
    return max(round(rate / 8 * _QUEUE_SECONDS), _QUEUE_BYTES)


def _marks(plan: StaticPlan) -> Iterator[str]:
    """Yields the filters that mark what comes from ports whose DSCPs are not believed; those of queues go by the mark.

    They are at the entrance of a port, so they hold for routers and bridges and for all protocols. Those of others at
    the same place stay.
    """
    for port in plan.ports:
        yield f"tc filter del dev {port.name} parent {_ENTRANCE} pref {_MARK_PREF} 2>/dev/null || true"
        if not port.is_trusted:
            yield f"tc qdisc add dev {port.name} handle ffff: ingress 2>/dev/null || true"
            yield (
                f"tc filter add dev {port.name} parent {_ENTRANCE} protocol all pref {_MARK_PREF} matchall "
                f"action skbedit mark {MARK}"
            )
