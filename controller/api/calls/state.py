"""The calls on the controller's own state."""

from __future__ import annotations

import logging
from http import HTTPStatus
from typing import Literal

from controller.api.http import Call, HttpError, Reply
from controller.api.services import Services
from controller.api.unseen import Unseen
from controller.config.dscp_costs import listed, unbelieved
from controller.dataplane.values import SwitchStatus
from controller.loop.metrics import Samples, counted
from controller.model import first_address
from controller.policies.registry import available
from controller.wire import HostState, LatencyState, PortState, Readiness, Status, SwitchState

LOG = logging.getLogger("trainyard.api")
MOST_NAMES = 10
"""Name so many hosts in one problem."""


def healthz(_services: Services, _call: Call) -> Reply:
    """Answer as long as the process is alive."""
    return Reply.of(Readiness(status="alive"))


def readyz(services: Services, _call: Call) -> Reply:
    """At least one switch is ready for rules (its queues proven, unless probe is false); 503 says what is missing.

    Where enforce names hosts alone, at least one agent marks packets. Where it is empty, the status is observing. What
    is wrong with a job makes nothing degraded, and is not told to everybody.
    """
    missing = missing_to_be_ready(services)
    if missing:
        raise HttpError(HTTPStatus.SERVICE_UNAVAILABLE, "; ".join(missing), headers={"Retry-After": "1"})
    problems = _causeless(own_problems(services))
    if services.config.enforcement.observes:
        return Reply.of(Readiness(status="observing", problems=tuple(problems)))
    return Reply.of(Readiness(status="degraded" if problems else "ready", problems=tuple(problems)))


def missing_to_be_ready(services: Services) -> list[str]:
    """Returns why nothing of what is to enforce the order does so, as sentences; empty: the controller is ready."""
    enforcement = services.config.enforcement
    if enforcement.switches:
        return [] if services.dataplane.switches() else _no_switch(services)
    return _no_marks(services) if enforcement.hosts else []


def why_not_enforced(services: Services) -> str | None:
    """Returns why nothing of the order is enforced now; None: it is."""
    if services.loop.settings.is_paused:
        return "an operator has paused"
    if services.config.enforcement.observes:
        return "the settings say to observe only (enforce: [])"
    return "; ".join(missing_to_be_ready(services)) or None


def _no_switch(services: Services) -> list[str]:
    return _causeless(_switch_problems(services)) or ["no switch has connected"]


def _no_marks(services: Services) -> list[str]:
    """Returns why no host orders its jobs. While an operator has paused, none is to mark packets."""
    reporting = list(filter(services.registry.host_alive, services.registry.servers))
    if not reporting:
        return ["no agent reports"]
    is_marked = services.loop.settings.is_paused or len(_unmarked(services)) < len(reporting)
    return [] if is_marked else ["no agent marks packets"]


def _unmarked(services: Services) -> list[str]:
    """Returns the hosts whose agents report, and say that they mark no packets of jobs."""
    return [name for name in services.registry.servers if services.registry.marks(name) is False]


def _causeless(problems: list[str]) -> list[str]:
    """Returns the problems without their causes, whose paths and addresses are for GET /v1/status only."""
    return list(dict.fromkeys(problem.partition(": ")[0] for problem in problems))


def status(services: Services, _call: Call) -> Reply:
    """Read the controller's state and problems."""
    loop, metrics = services.loop, services.metrics
    acknowledging, tunnels = services.registry.acknowledging(), services.registry.tunnels()
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
                    address=first_address(interfaces),
                    alive=services.registry.host_alive(name),
                    marks_acknowledgements=name in acknowledging,
                    tunnel_ports=tunnels.get(name, ()),
                    marks=services.registry.marks(name),
                    clock_offset_seconds=services.registry.clock_offset(name),
                )
                for name, interfaces in services.registry.servers.items()
            ),
            switches=tuple(map(_switch, services.dataplane.status())),
            mode=loop.planning.mode,
            flow_rules=loop.planning.fitted.rules if loop.planning.fitted is not None else 0,
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
    return own_problems(services) + _shared_dscps(services) + Unseen.now(services.registry).problems()


def own_problems(services: Services) -> list[str]:
    """Returns what is wrong with the controller and with what enforces the order, and not with jobs."""
    problems = ["an operator has paused, so nothing is enforced"] if services.loop.settings.is_paused else []
    problems += _switch_problems(services)
    problems += _unmarked_problems(services)
    problems += _mark_problems(services)
    problems += _earlier_agents(services)
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
    if not services.config.probe and services.config.enforcement.switches:
        problems.append("queues are not proven: probe is false")
    if services.store.failure is not None:
        problems.append(f"the journal cannot be written, the state is in memory only: {services.store.failure}")
    if services.config.enrolment is not None and not services.store.persistent:
        problems.append("hosts that enrol are forgotten at a restart: journal is not set")
    if misplaced := services.hosts.enrolments.misplaced:
        more = f" and {len(misplaced) - MOST_NAMES} more" if len(misplaced) > MOST_NAMES else ""
        problems.append(
            f"hosts have another cable than is known (trainyard hosts): {', '.join(misplaced[:MOST_NAMES])}{more}"
        )
    if services.audit.problem is not None:
        problems.append(services.audit.problem)
    if services.loop.planning.degraded is not None:
        problems.append(f"switches look at hosts' marks alone: {services.loop.planning.degraded}")
    if services.loop.planning.left_out is not None:
        problems.append(services.loop.planning.left_out)
    if services.loop.failure is not None:
        problems.append(f"the last plan could not be made or applied: {services.loop.failure}")
    return problems


def _switch_problems(services: Services) -> list[str]:
    if not services.config.enforcement.switches:
        return []
    return [
        f"switch {status.dpid:016x} is not ready: {status.reason or 'its queues are being checked'}"
        for status in services.dataplane.status()
        if not status.ready
    ]


def _unmarked_problems(services: Services) -> list[str]:
    is_due = services.config.enforcement.needs_marks and not services.loop.settings.is_paused
    if not (is_due and services.config.enforcement.hosts and (names := _unmarked(services))):
        return []
    why = "their agents mark no packets (the agent's log says why)"
    return [f"packets of jobs on some hosts are other traffic, because {why}: {listed(names)}"]


def _earlier_agents(services: Services) -> list[str]:
    """Returns that some agents refuse plans in which jobs have DSCPs of their own."""
    if not (services.config.enforcement.has_own_dscps and services.config.enforcement.hosts):
        return []
    registry, earlier = services.registry, services.loop.host_plans.earlier_agents
    if not (names := [name for name in registry.servers if name in earlier and registry.host_alive(name)]):
        return []
    return [f"agents of an earlier version do not mark the DSCPs of jobs, so update them: {listed(names)}"]


def _shared_dscps(services: Services) -> list[str]:
    return [
        f"{jobs} jobs share DSCP {dscp}, because no other one of dscp.jobs was free when they were registered: all "
        "have the best of their classes"
        for dscp, jobs in services.registry.users_of_dscps().items()
        if jobs > 1
    ]


def _mark_problems(services: Services) -> list[str]:
    if services.loop.planning.mode == "classified":
        return []
    if not (names := unbelieved(services.config, services.registry.hosts)):
        return []
    return [
        "packets of jobs on some hosts are other traffic at switches: other programs use the DSCPs, too, so switches "
        f"believe them at the ports of hosts alone, and where these are is not known: {listed(names)}"
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
