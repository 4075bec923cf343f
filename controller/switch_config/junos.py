"""Juniper Junos: forwarding classes, classifiers and schedulers, as ``set`` lines."""

from __future__ import annotations

from collections.abc import Iterator

from controller.switch_config.junos_pages import CHECKS, FIXED, HIERARCHY, INTERFACES, PFC, PRIORITIES, QFX, SCHEDULERS
from controller.switch_config.junos_pages import ECN as ECN_EXAMPLE
from controller.switch_config.plan import PlannedPort, Queue, StaticPlan, whole_percents
from controller.switch_config.stanza import NO_LOSSLESS, Stanza, check, cited

COS = "set class-of-service"
OURS = "trainyard"

_SHARED_LEVEL = "low-medium"
_UPPER_LEVELS = ("high", "medium-high", "medium-low", "low-high")


def stanzas(plan: StaticPlan) -> Iterator[Stanza]:
    """Yields the configuration."""
    pfc = (PFC,) if plan.lossless else ()
    yield Stanza("Forwarding classes: one for each queue", tuple(_classes(plan)), (HIERARCHY, *pfc), _DEFAULTS)
    yield Stanza("DSCPs lead to forwarding classes, over IPv4 and IPv6", tuple(_classifiers(plan)), (HIERARCHY,))
    ecn = (ECN_EXAMPLE,) if plan.lossless else ()
    yield Stanza(
        "Queues: a level of priority and a floor each",
        tuple(_schedulers(plan)),
        (SCHEDULERS, *ecn),
        tuple(_remarks(plan)),
    )
    yield _pfc(plan.lossless) if plan.lossless else NO_LOSSLESS
    yield Stanza(
        "Ports: a fixed forwarding class is that of a port whose DSCPs are not believed",
        tuple(line for port in plan.ports for line in _port(port, plan)),
        (INTERFACES, *((FIXED,) if plan.untrusted else ()), *pfc),
    )
    yield check(_checks(plan), *CHECKS)


_DEFAULTS = (
    "the switch's own packets, such as those of BGP, keep their forwarding class network-control, which may be in one "
    "of these queues",
)


def _remarks(plan: StaticPlan) -> Iterator[str]:
    yield (
        "up to its transmit-rate each queue goes before all that is above its rate; above it the level decides: that "
        f"is strict priority with floors ({cited(PRIORITIES)})"
    )
    if len(plan.queues) > len(_UPPER_LEVELS) + 2:
        yield (
            f"there are fewer levels than queues: those with {_SHARED_LEVEL} share what the upper ones leave, in the "
            "proportion of their rates"
        )
    yield (
        "some QFX switches have only the levels low and strict-high: there the upper classes get strict-high, which "
        f"has no floor, and the others low, and rates are weights ({cited(QFX)})"
    )


def _name(queue: Queue) -> str:
    return f"{OURS}-{queue.number}"


def _classes(plan: StaticPlan) -> Iterator[str]:
    for queue in plan.queues:
        lossless = f" no-loss pfc-priority {queue.number}" if queue.kind == "lossless" else ""
        yield f"{COS} forwarding-classes class {_name(queue)} queue-num {queue.number}{lossless}"


def _classifiers(plan: StaticPlan) -> Iterator[str]:
    for family in ("dscp", "dscp-ipv6"):
        for number, dscps in plan.dscps_by_queue():
            bits = " ".join(f"{dscp:06b}" for dscp in dscps)
            points = f"[ {bits} ]" if len(dscps) > 1 else bits
            of_class = f"forwarding-class {OURS}-{number} loss-priority low code-points {points}"
            yield f"{COS} classifiers {family} {OURS} {of_class}"


def _level(plan: StaticPlan, queue: Queue) -> str:
    """Returns the level of priority of a queue: the upper ones have one each, and other traffic the lowest."""
    if queue.kind == "other":
        return "low"
    place = plan.queues.index(queue)
    return _UPPER_LEVELS[place] if place < len(_UPPER_LEVELS) else _SHARED_LEVEL


def _schedulers(plan: StaticPlan) -> Iterator[str]:
    if plan.lossless:
        yield f"{COS} drop-profiles {OURS}-ecn interpolate fill-level [ 10 90 ] drop-probability [ 0 100 ]"
    floors = whole_percents(plan.queues)
    for queue in plan.queues:
        scheduler = f"{COS} schedulers {_name(queue)}"
        yield f"{scheduler} transmit-rate percent {floors[queue.number]}"
        yield f"{scheduler} priority {_level(plan, queue)}"
        if queue.kind == "lossless":
            yield f"{scheduler} drop-profile-map loss-priority any protocol any drop-profile {OURS}-ecn"
            yield f"{scheduler} explicit-congestion-notification"
        yield f"{COS} scheduler-maps {OURS} forwarding-class {_name(queue)} scheduler {_name(queue)}"


def _pfc(lossless: Queue) -> Stanza:
    profile = f"{COS} congestion-notification-profile {OURS} input dscp code-point"
    remark = "where a switch pauses by the priority in the VLAN tag, write ieee-802.1 in the place of dscp"
    lines = tuple(f"{profile} {dscp:06b} pfc" for dscp in lossless.dscps)
    return Stanza("PFC by DSCP", lines, (PFC,), (remark,))


def _port(port: PlannedPort, plan: StaticPlan) -> Iterator[str]:
    interface = f"{COS} interfaces {port.name}"
    yield f"{interface} scheduler-map {OURS}"
    if port.is_trusted:
        yield f"{interface} unit 0 classifiers dscp {OURS}"
        yield f"{interface} unit 0 classifiers dscp-ipv6 {OURS}"
    else:
        yield f"{interface} unit 0 forwarding-class {_name(plan.other)}"
    if plan.lossless and port.is_trusted:
        yield f"{interface} congestion-notification-profile {OURS}"


def _checks(plan: StaticPlan) -> Iterator[str]:
    for port in plan.ports:
        yield f"show class-of-service interface {port.name}"
        yield f"show interfaces queue {port.name}"
