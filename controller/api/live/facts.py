"""The data of events on jobs, stages, hosts, switches and settings, from what the parts of the controller say. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from controller.dataplane.values import SwitchStatus
from controller.events.changes import targets_data
from controller.model import Prediction
from controller.registry.job.view import JobProgress
from controller.wire import Settings

Facts = dict[str, Any]


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
        },
        "service_class": service_class,
        "targets": targets_data(predictions),
    }


def stage_facts(stage: str, jobs: Sequence[str] | None, before: Sequence[str]) -> Facts:
    """Returns the data of the event ``stage``. ``jobs`` of None: it has ended, and had the jobs ``before``."""
    if jobs is None:
        return {"id": stage, "state": "ended", "jobs": list(before)}
    return {"id": stage, "state": "running", "jobs": list(jobs)}


def host_facts(host: str, state: tuple[bool, bool] | None) -> Facts:
    """Returns the data of the event ``host``.

    ``state``: whether the host is alive, and whether it marks acknowledgements; None: it is not in the settings.
    """
    if state is None:
        return {"name": host, "state": "removed", "marks_acknowledgements": False}
    is_alive, marks = state
    return {"name": host, "state": "alive" if is_alive else "silent", "marks_acknowledgements": marks}


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


def settings_facts(settings: Settings, sha256: str | None) -> Facts:
    """Returns the data of the event ``settings``."""
    return settings.model_dump(mode="json") | {"settings_sha256": sha256}
