"""The calls on the controller's own state."""

from __future__ import annotations

import logging
from http import HTTPStatus
from typing import Literal

from controller.api.http import Call, HttpError, Reply
from controller.api.services import Services
from controller.dataplane.values import SwitchStatus
from controller.loop.metrics import Samples, counted
from controller.policies.registry import available
from controller.wire import HostState, LatencyState, PortState, Readiness, Status, SwitchState

LOG = logging.getLogger("trainyard.api")


def healthz(_services: Services, _call: Call) -> Reply:
    """Answer as long as the process is alive."""
    return Reply.of(Readiness(status="alive"))


def readyz(services: Services, _call: Call) -> Reply:
    """At least one switch is ready for rules (its queues proven, unless probe is false); 503 says what is missing.

    Where enforce names host alone, at least one agent reports. Where it is empty, the status is observing.
    """
    missing = missing_to_be_ready(services)
    if missing:
        raise HttpError(HTTPStatus.SERVICE_UNAVAILABLE, "; ".join(missing), headers={"Retry-After": "1"})
    problems = _causeless(all_problems(services))
    if not services.config.enforce:
        return Reply.of(Readiness(status="observing", problems=tuple(problems)))
    return Reply.of(Readiness(status="degraded" if problems else "ready", problems=tuple(problems)))


def missing_to_be_ready(services: Services) -> list[str]:
    """Returns why nothing of what is to enforce the order does so, as sentences; empty: the controller is ready."""
    enforce = services.config.enforce
    if "switch" in enforce and not services.dataplane.switches():
        return _causeless(_switch_problems(services)) or ["no switch has connected"]
    if enforce and "switch" not in enforce and not any(map(services.registry.host_alive, services.registry.hosts)):
        return ["no agent reports"]
    return []


def _causeless(problems: list[str]) -> list[str]:
    """Returns the problems without their causes, whose paths and addresses are for GET /v1/status only."""
    return list(dict.fromkeys(problem.partition(": ")[0] for problem in problems))


def status(services: Services, _call: Call) -> Reply:
    """Read the controller's state and problems."""
    loop, metrics = services.loop, services.metrics
    acknowledging = services.registry.acknowledging()
    causes = {
        sample.labels["cause"]: int(sample.value)
        for family in metrics.plan_causes.collect()
        for sample in family.samples
        if sample.name.endswith("_total") and sample.value
    }
    return Reply.of(
        Status(
            policy=loop.settings.policy.name,
            epoch=loop.epoch,
            plan_age_seconds=max(0.0, loop.now() - loop.plan.made_at) if loop.plan is not None else None,
            jobs=len(loop.classes),
            journal=_journal_state(services),
            problems=tuple(all_problems(services)),
            plans=int(counted(metrics.plans)),
            plan_causes=causes,
            plan_errors=int(counted(metrics.plan_errors)),
            flow_mods=int(counted(metrics.flow_mods)),
            gate_renewals=int(counted(metrics.gate_renewals)),
            report_to_rule=_latency(metrics.report_to_rule),
            change_to_rule=_latency(metrics.change_to_rule),
            report_to_plan=_latency(metrics.report_to_plan),
            bytes_by_class=class_bytes(services),
            hosts=tuple(
                HostState(
                    name=name,
                    address=host.address,
                    alive=services.registry.host_alive(name),
                    marks_acknowledgements=name in acknowledging,
                    clock_offset_seconds=services.registry.clock_offset(name),
                )
                for name, host in services.registry.hosts.items()
            ),
            switches=tuple(map(_switch, services.dataplane.status())),
            mode="marked" if loop.degraded else services.config.mode,
            flow_rules=loop.fitted.rules if loop.fitted is not None else 0,
            table_budget=services.config.table_budget,
            settings_sha256=services.reloader.sha256 if services.reloader is not None else None,
            settings_loaded_at=services.reloader.loaded_at if services.reloader is not None else None,
            paused=loop.settings.is_paused,
            not_ready=tuple(missing_to_be_ready(services)),
            policies=tuple(sorted(available())),
            enforce=services.config.enforce,
        )
    )


def all_problems(services: Services) -> list[str]:
    """Returns what an operator should look at, a sentence each, with its cause behind a colon."""
    problems = ["an operator has paused, so nothing is enforced"] if services.loop.settings.is_paused else []
    problems += _switch_problems(services)
    problems += [
        f"switch {status.dpid:016x} is ready, with a problem: {problem}"
        for status in services.dataplane.status()
        if status.ready
        for problem in status.problems
    ]
    if services.config.openflow.is_exposed:
        problems.append("switches connect without TLS: openflow.insecure is true; set openflow.tls")
    if services.config.api.is_readable:
        problems.append("the API's tokens can be read on their way: api.tls_certificate is not set")
    problems += services.certificate_problems()
    if services.reloader is not None:
        problems += services.reloader.problems()
    if not services.config.probe and "switch" in services.config.enforce:
        problems.append("queues are not proven: probe is false")
    if services.store.failure is not None:
        problems.append(f"the journal cannot be written, the state is in memory only: {services.store.failure}")
    if services.config.enrolment is not None and not services.store.persistent:
        problems.append("hosts that enrol are forgotten at a restart: journal is not set")
    if services.audit.problem is not None:
        problems.append(services.audit.problem)
    if services.loop.degraded is not None:
        problems.append(f"switches look at hosts' marks alone: {services.loop.degraded}")
    if services.loop.failure is not None:
        problems.append(f"the last plan could not be made or applied: {services.loop.failure}")
    return problems


def _switch_problems(services: Services) -> list[str]:
    if "switch" not in services.config.enforce:
        return []
    return [
        f"switch {status.dpid:016x} is not ready: {status.reason or 'its queues are being checked'}"
        for status in services.dataplane.status()
        if not status.ready
    ]


def _journal_state(services: Services) -> Literal["memory", "written", "degraded"]:
    if not services.store.persistent:
        return "memory"
    return "written" if services.store.failure is None else "degraded"


def _latency(samples: Samples) -> LatencyState:
    latency = samples.latency()
    return LatencyState(count=latency.count, p50_seconds=latency.p50, p99_seconds=latency.p99, max_seconds=latency.max)


def class_bytes(services: Services) -> dict[str, dict[str, int]]:
    """Returns the bytes that each switch has sent by class, by datapath id; empty where they cannot be read."""
    result: dict[str, dict[str, int]] = {}
    try:
        counts = services.dataplane.class_bytes()
    except Exception as error:  # a silent switch must not prevent the rest of the status
        LOG.warning("the switches' counters could not be read: %s: %s", type(error).__name__, error)
        return result
    for (dpid, service_class), count in counts.items():
        name = "other" if service_class is None else str(service_class)
        result.setdefault(f"{dpid:016x}", {})[name] = count
    return result


def _switch(status: SwitchStatus) -> SwitchState:
    return SwitchState(
        dpid=f"{status.dpid:016x}",
        connected=status.connected,
        ready=status.ready,
        reason=status.reason,
        rules=status.rules,
        bundles=status.bundles,
        ports=port_states(status),
        problems=status.problems,
        repairs=status.repairs,
    )


def port_states(status: SwitchStatus) -> tuple[PortState, ...]:
    """Returns the proofs of a switch's ports as the API shows them."""
    return tuple(
        PortState(
            port=port.port,
            name=port.name,
            packets={str(queue): count for queue, count in port.packets.items()},
            problem=port.problem,
        )
        for port in status.ports
    )
