"""Arista EOS: maps from DSCP to traffic class and transmit queue, and a profile with the queues for each port."""

from __future__ import annotations

from collections.abc import Iterator

from controller.switch_config.plan import (
    MARK_ALL_BYTES,
    MARK_FROM_BYTES,
    PlannedPort,
    Queue,
    StaticPlan,
    whole_percents,
)
from controller.switch_config.stanza import NO_LOSSLESS, Source, Stanza, check, cited

_AVD = "https://github.com/aristanetworks/avd/blob"
_DEVICES = "ansible_collections/arista/avd/molecule/eos_cli_config_gen/documentation/devices"
MAPS = Source(
    "AVD, EOS configuration of a device, Quality Of Service",
    f"{_AVD}/014db3e8792d6afa89443d0969b25e13defac643/{_DEVICES}/qos.md",
)
PROFILES = Source(
    "AVD, EOS configuration of host1, Quality Of Service",
    f"{_AVD}/0203bfd8ec5f2bd4cd8397906ecba1c2e66cb986/{_DEVICES}/host1.md",
)
MANUAL = Source("Quality of Service", "https://www.arista.com/en/um-eos/eos-quality-of-service")
RESERVED = Source("Features by tag, VoQ", "https://www.arista.com/en/support/toi/tag/voq")

PROFILE = "TRAINYARD"


def stanzas(plan: StaticPlan) -> Iterator[Stanza]:
    """Yields the configuration."""
    yield Stanza(
        "DSCPs lead to traffic classes, and these to transmit queues",
        tuple(_maps(plan)),
        (MAPS,),
        ("CoS 0 leads to traffic class 0, since it is what a packet has whose DSCP is not believed",),
    )
    ecn = ("the lossless queue marks by ECN; which thresholds are right, rate and buffers decide",)
    yield Stanza(
        "Queues: strict priority, each with its floor",
        tuple(_profile(plan)),
        (MAPS, PROFILES),
        (*_PLATFORMS, *(ecn if plan.lossless else ())),
    )
    yield Stanza("Ports", tuple(line for port in plan.ports for line in _port(port)), (MAPS, PROFILES))
    yield _pfc(plan) if plan.lossless else NO_LOSSLESS
    yield check(_checks(plan))


_PLATFORMS = (
    f"which of these a switch has, its platform decides ({cited(MANUAL)}): where bandwidth guaranteed is refused, "
    "leave it out, and the queues are strict without floors",
    f"where transmit queue 7 is reserved for the control plane, leave out its lines ({cited(RESERVED)})",
)


def _maps(plan: StaticPlan) -> Iterator[str]:
    for number, dscps in plan.dscps_by_queue():
        yield f"qos map dscp {' '.join(map(str, dscps))} to traffic-class {number}"
    yield "qos map cos 0 to traffic-class 0"
    for queue in plan.queues:
        yield f"qos map traffic-class {queue.number} to tx-queue {queue.number}"


def _profile(plan: StaticPlan) -> Iterator[str]:
    yield f"qos profile {PROFILE}"
    floors = whole_percents(plan.queues)
    for queue in plan.queues:
        yield "   !"
        yield f"   tx-queue {queue.number}"
        yield from (f"      {line}" for line in _queue(queue, floors[queue.number]))


def _queue(queue: Queue, percent: int) -> Iterator[str]:
    yield f"bandwidth guaranteed percent {percent}"
    yield "priority strict"
    if queue.kind == "lossless":
        least, most = MARK_FROM_BYTES // 1000, MARK_ALL_BYTES // 1000
        yield (
            f"random-detect ecn minimum-threshold {least} kbytes maximum-threshold {most} kbytes "
            "max-mark-probability 100"
        )


def _port(port: PlannedPort) -> Iterator[str]:
    yield f"interface {port.name}"
    yield "   qos trust dscp" if port.is_trusted else "   no qos trust"
    yield f"   service-profile {PROFILE}"


def _pfc(plan: StaticPlan) -> Stanza:
    assert plan.lossless is not None
    pause = ("   priority-flow-control on", f"   priority-flow-control priority {plan.lossless.number} no-drop")
    lines = tuple(line for port in plan.trusted for line in (f"interface {port.name}", *pause))
    return Stanza("PFC", lines, (PROFILES,))


def _checks(plan: StaticPlan) -> Iterator[str]:
    yield "show qos maps"
    for port in plan.ports:
        yield f"show qos interfaces {port.name}"
        yield f"show interfaces {port.name} counters queue"
    if plan.lossless:
        yield "show priority-flow-control"
