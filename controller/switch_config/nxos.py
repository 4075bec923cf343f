"""Cisco NX-OS on Nexus 9000: class maps by DSCP at each port, and queues of the whole switch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from controller.switch_config.plan import (
    MARK_ALL_BYTES,
    MARK_FROM_BYTES,
    OTHER,
    PlannedPort,
    Queue,
    StaticPlan,
    strict_and_weighted,
)
from controller.switch_config.stanza import NO_LOSSLESS, Source, Stanza, check, cited

_GUIDE = (
    "https://www.cisco.com/c/en/us/td/docs/dcn/nx-os/nexus9000/105x/configuration/qos/"
    "cisco-nexus-9000-series-nx-os-quality-of-service-configuration-guide-105x"
)
QUEUING = Source(
    "Nexus 9000 NX-OS QoS 10.5(x), Configuring Queuing and Scheduling",
    f"{_GUIDE}/m-configuring-queuing-and-scheduling.html",
)
PFC = Source(
    "Nexus NX-API REST 9.3(x), Configuring Priority Flow Control",
    "https://developer.cisco.com/docs/cisco-nexus-3000-and-9000-series-nx-api-rest-sdk-user-guide-and-api-reference-"
    "release-9-3x/configuring-priority-flow-control",
)
CHECKS = Source(
    "Configure QoS on a UCS and Nexus 5000",
    "https://www.cisco.com/c/en/us/support/docs/switches/nexus-5000-series-switches/"
    "214515-configure-qos-on-a-ucs-and-nexus-5000.pdf",
)

_FLOORS = (
    "a queue has strict priority or a minimum share, not both, so the floors of strict queues are not kept; strict "
    f"queues are those with the highest numbers: {cited(QUEUING)}"
)
_SYSTEM = (
    f"a policy of the system changes all ports at once and disturbs traffic, so take a maintenance window: "
    f"{cited(QUEUING)}"
)
_LOSSLESS = f"a port's mode is auto, on or off; on needs no DCBX: {cited(PFC)}"


_OF_OTHERS = ("  class class-default", "    set qos-group 0")


def stanzas(plan: StaticPlan) -> Iterator[Stanza]:
    """Yields the configuration."""
    yield Stanza("DSCPs lead to QoS groups", tuple(_classes(plan)))
    yield Stanza("Queues: a queue for each QoS group", tuple(_queuing(plan)), remarks=(_FLOORS,))
    if plan.lossless:
        yield Stanza("PFC: the lossless group is paused and never dropped", _network_qos(plan.lossless))
    policies = ("trainyard-network",) if plan.lossless else ()
    yield Stanza("The policies of the system", tuple(_system(policies)), remarks=(_SYSTEM,))
    if not plan.lossless:
        yield NO_LOSSLESS
    yield Stanza(
        "Ports: the policy says whether the DSCPs are believed",
        tuple(line for port in plan.ports for line in _port(port, plan)),
        remarks=(_LOSSLESS,) if plan.lossless else (),
    )
    yield check(_checks(plan), CHECKS)


def _classes(plan: StaticPlan) -> Iterator[str]:
    named = [queue for queue in plan.queues if queue.kind != "other"]
    for queue in named:
        yield f"class-map type qos match-any trainyard-{queue.number}"
        yield f"  match dscp {','.join(map(str, queue.dscps))}"
    yield "policy-map type qos trainyard-dscp"
    for queue in named:
        yield f"  class trainyard-{queue.number}"
        yield f"    set qos-group {queue.number}"
    yield from _OF_OTHERS
    if plan.untrusted:
        yield "policy-map type qos trainyard-unbelieved"
        yield from _OF_OTHERS


def _queuing(plan: StaticPlan) -> Iterator[str]:
    strict, weights = strict_and_weighted(plan.queues)
    levels = {queue.number: level for level, queue in enumerate(strict, 1)}
    lossless = plan.lossless.number if plan.lossless else None
    yield "policy-map type queuing trainyard-queues"
    for number in range(7, -1, -1):
        yield f"  class type queuing c-out-8q-q{number if number != OTHER else '-default'}"
        yield f"    {_service(number, levels, weights)}"
        if number == lossless:
            least, most = MARK_FROM_BYTES // 1000, MARK_ALL_BYTES // 1000
            yield (
                f"    random-detect minimum-threshold {least} kbytes maximum-threshold {most} kbytes "
                "drop-probability 100 weight 0 ecn"
            )


def _service(number: int, levels: Mapping[int, int], weights: Mapping[int, int]) -> str:
    if number in levels:
        return f"priority level {levels[number]}"
    return f"bandwidth remaining percent {weights.get(number, 0)}"


def _network_qos(lossless: Queue) -> tuple[str, ...]:
    return (
        "policy-map type network-qos trainyard-network",
        f"  class type network-qos c-8q-nq{lossless.number}",
        f"    pause pfc-cos {lossless.number}",
        "    mtu 9216",
    )


def _system(network: tuple[str, ...]) -> Iterator[str]:
    yield "system qos"
    yield "  service-policy type queuing output trainyard-queues"
    yield from (f"  service-policy type network-qos {name}" for name in network)


def _port(port: PlannedPort, plan: StaticPlan) -> Iterator[str]:
    yield f"interface {port.name}"
    yield f"  service-policy type qos input trainyard-{'dscp' if port.is_trusted else 'unbelieved'}"
    if plan.lossless:
        yield f"  priority-flow-control mode {'on' if port.is_trusted else 'off'}"


def _checks(plan: StaticPlan) -> Iterator[str]:
    yield "show running-config ipqos"
    yield from (f"show queuing interface {port.name}" for port in plan.ports)
    if plan.lossless:
        yield "show interface priority-flow-control"
