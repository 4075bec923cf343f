"""The data of events on jobs, stages, hosts, switches and settings, from what the parts of the controller say. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from controller.dataplane.values import SwitchStatus
from controller.events.changes import targets_data
from controller.model import Prediction, Role
from controller.registry.job.view import JobDescription, JobProgress
from controller.wire import Settings

Facts = dict[str, Any]
MOST_HOSTS = MOST_PAIRS = 256
"""Events name at most so many hosts of a job, or pairs of them: the newest events must have room together."""


class LinkFacts(NamedTuple):
    """An interface of a host that has several: its name, its rates in bit/s, and where it is attached."""

    interface: str
    egress_bps: float
    ingress_bps: float
    switch: str | None
    port: int | None


class HostFacts(NamedTuple):
    """A host of the settings: whether its agent is alive and marks acknowledgements, its rates in bit/s, and
    where it is attached: a datapath id in hexadecimal, and a port number. ``links`` are the interfaces of a host that
    has several."""

    is_alive: bool
    marks_acknowledgements: bool
    egress_bps: float
    ingress_bps: float
    switch: str | None = None
    port: int | None = None
    links: tuple[LinkFacts, ...] = ()


def job_facts(
    job_id: str, progress: JobProgress | None, service_class: int | None, predictions: Sequence[Prediction]
) -> Facts:
    """Returns the data of the event ``job``. ``progress`` of None: the job was removed."""
    if progress is None:
        return {"id": job_id, "state": "removed", "progress": None, "service_class": None, "targets": {}}
    return {
        "id": job_id,
        "state": progress.state,
        "progress": {
            "iterations_done": progress.iterations_done,
            "iterations_total": progress.iterations_total,
            "last_metric": progress.last_metric,
            "last_report": progress.last_report,
            "diverged": progress.diverged,
            "ended_at": progress.ended_at,
        },
        "service_class": service_class,
        "targets": targets_data(predictions),
    }


def description_facts(described: JobDescription) -> Facts:
    """Returns what a job is, for the event ``job``."""
    spec = described.spec
    demand = spec.demand_in_force(described.measured)
    servers = {task.host for task in spec.tasks if task.role is Role.PS}
    return {
        "arrival": described.arrival,
        "user": spec.user,
        "stage": described.stage,
        "family": spec.family,
        "weight": spec.weight,
        "metric": {"name": spec.metric.name, "direction": spec.metric.direction},
        "target": spec.target,
        "compute_seconds": spec.compute_seconds,
        "hosts": sorted(spec.hosts) if len(spec.hosts) <= MOST_HOSTS else None,
        "servers": sorted(servers) if len(servers) <= MOST_HOSTS else None,
        "demand": [each._asdict() for each in demand] if 0 < len(demand) <= MOST_PAIRS else None,
        "launcher": described.launcher,
        "first_host": described.first_host,
    }


def stage_facts(stage: str, jobs: Sequence[str] | None, before: Sequence[str]) -> Facts:
    """Returns the data of the event ``stage``. ``jobs`` of None: it has ended, and had the jobs ``before``."""
    if jobs is None:
        return {"id": stage, "state": "ended", "jobs": list(before)}
    return {"id": stage, "state": "running", "jobs": list(jobs)}


def host_facts(host: str, state: HostFacts | None) -> Facts:
    """Returns the data of the event ``host``. ``state`` of None: it is not in the settings."""
    if state is None:
        return {"name": host, "state": "removed", "marks_acknowledgements": False}
    return {
        "name": host,
        "state": "alive" if state.is_alive else "silent",
        "marks_acknowledgements": state.marks_acknowledgements,
        "egress_bps": state.egress_bps,
        "ingress_bps": state.ingress_bps,
        "switch": state.switch,
        "port": state.port,
        **({"links": [link._asdict() for link in state.links]} if state.links else {}),
    }


def asking_facts(host: str, state: str | None) -> Facts:
    """Returns the data of the event ``host`` of a host that asks to be added. ``state`` of None: it was removed."""
    return {"name": host, "state": state or "removed", "marks_acknowledgements": False}


def switches(statuses: Sequence[SwitchStatus]) -> dict[str, Facts]:
    """Returns the data of the event ``switch`` of each switch, by datapath id."""
    return {
        f"{status.dpid:016x}": {
            "dpid": f"{status.dpid:016x}",
            "connected": status.connected,
            "ready": status.ready,
            "reason": status.reason,
            "problems": list(status.problems),
            "repairs": status.repairs,
        }
        for status in statuses
    }


def gone_switch(before: Mapping[str, Any]) -> Facts:
    """Returns the data of the event ``switch`` of a switch that nothing is known of any more."""
    return {**before, "connected": False, "ready": False, "reason": "not connected", "problems": []}


def settings_facts(settings: Settings, sha256: str | None, classes: int, enforce: Sequence[str]) -> Facts:
    """Returns the data of the event ``settings``."""
    present = {"settings_sha256": sha256, "classes": classes, "enforce": list(enforce)}
    return settings.model_dump(mode="json") | present
