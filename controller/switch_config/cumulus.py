"""NVIDIA Cumulus Linux: NVUE commands."""

from __future__ import annotations

from collections.abc import Iterator

from controller.switch_config.plan import MARK_ALL_BYTES, MARK_FROM_BYTES, PlannedPort, StaticPlan
from controller.switch_config.stanza import NO_LOSSLESS, Source, Stanza, check

GUIDE = Source(
    "Cumulus Linux 5.13, Quality of Service",
    "https://docs.nvidia.com/networking-ethernet-software/cumulus-linux-513/Layer-1-and-Switch-Ports/"
    "Quality-of-Service",
)
SHOW = Source(
    "NVUE Command Reference, QoS",
    "https://docs.nvidia.com/networking-ethernet-software/nvue-reference/Show-Commands/QoS",
)

_UNBELIEVED = "trainyard-unbelieved"
_PAUSED = "trainyard-paused"


def stanzas(plan: StaticPlan) -> Iterator[Stanza]:
    """Yields the configuration."""
    yield Stanza(
        "DSCPs lead to switch priorities, and these to traffic classes",
        tuple(_mapping(plan)),
        (GUIDE,),
        ("each DSCP has a switch priority by default, so all 64 are set",),
    )
    yield Stanza("Strict priority", tuple(_scheduler()), (GUIDE,))
    yield Stanza("Floors: a shaper with minimum rates for each rate of a port, in kbit/s", _floors(plan), (GUIDE,))
    yield _lossless(plan) if plan.lossless else NO_LOSSLESS
    yield Stanza(f"Ports: one with the mapping {_UNBELIEVED} is not believed", tuple(_ports(plan)), (GUIDE,))
    yield Stanza("Put it in force", ("nv config apply",), (GUIDE,))
    yield check(_checks(plan), GUIDE, SHOW)


def _mapping(plan: StaticPlan) -> Iterator[str]:
    mapping = "nv set qos mapping"
    yield f"{mapping} default-global trust l3"
    for number, dscps in plan.dscps_by_queue():
        yield f"{mapping} default-global dscp {','.join(map(str, dscps))} switch-priority {number}"
    for number in range(8):
        yield f"nv set qos egress-queue-mapping default-global switch-priority {number} traffic-class {number}"
    if plan.untrusted:
        yield f"{mapping} {_UNBELIEVED} trust port"
        yield f"{mapping} {_UNBELIEVED} port-default-sp 0"


def _scheduler() -> Iterator[str]:
    yield "nv set qos egress-scheduler default-global traffic-class 0,1,2,3,4,5,6,7 mode strict"


def _shaper(port: PlannedPort) -> str:
    return f"trainyard-{_kbps(port.rate_bps)}"


def _kbps(rate_bps: float) -> int:
    return max(1, round(rate_bps / 1000))


def _floors(plan: StaticPlan) -> tuple[str, ...]:
    return tuple(
        line for port in {port.rate_bps: port for port in plan.ports}.values() for line in _shaper_lines(plan, port)
    )


def _shaper_lines(plan: StaticPlan, port: PlannedPort) -> Iterator[str]:
    shaper = f"nv set qos egress-shaper {_shaper(port)}"
    for queue in plan.queues:
        yield f"{shaper} traffic-class {queue.number} min-rate {_kbps(port.rate_bps * queue.floor)}"
        yield f"{shaper} traffic-class {queue.number} max-rate {_kbps(port.rate_bps)}"


def _lossless(plan: StaticPlan) -> Stanza:
    assert plan.lossless is not None
    pfc = f"nv set qos pfc {_PAUSED}"
    ecn = f"nv set qos congestion-control default-global traffic-class {plan.lossless.number}"
    lines = (
        "nv set qos traffic-pool default-lossless memory-percent 50",
        "nv set qos traffic-pool default-lossy memory-percent 50",
        f"{pfc} switch-priority {plan.lossless.number}",
        f"{pfc} tx enable",
        f"{pfc} rx enable",
        f"{ecn} min-threshold {MARK_FROM_BYTES}",
        f"{ecn} max-threshold {MARK_ALL_BYTES}",
        f"{ecn} ecn enable",
    )
    return Stanza("PFC and ECN of the lossless queue", lines, (GUIDE,), _MEMORY)


_MEMORY = (
    "half of the buffers for lossless traffic is a value to begin with; the thresholds of ECN, in bytes, depend on "
    "rate and buffers",
)


def _ports(plan: StaticPlan) -> Iterator[str]:
    for port in plan.ports:
        yield f"nv set interface {port.name} qos egress-shaper profile {_shaper(port)}"
        if plan.lossless and port.is_trusted:
            yield f"nv set interface {port.name} qos pfc profile {_PAUSED}"
        if not port.is_trusted:
            yield f"nv set interface {port.name} qos mapping profile {_UNBELIEVED}"


def _checks(plan: StaticPlan) -> Iterator[str]:
    yield "nv show qos mapping default-global dscp"
    yield "nv show qos egress-queue-mapping default-global"
    yield "nv show qos egress-scheduler default-global"
    yield from (f"nv show interface {port.name} counters qos" for port in plan.ports)
    if plan.lossless:
        yield from (f"nv show qos pfc {_PAUSED}", "nv show qos congestion-control default-global")
