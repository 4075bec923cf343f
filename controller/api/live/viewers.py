"""What each role sees of an event. Pure.

Operators see all, viewers all but the audit. A tenant sees what concerns its own jobs; no other job has a name there.
"""

from __future__ import annotations

from typing import Any, Literal

from controller.access.caller import Caller, Role, Tenancy
from controller.events.event import Event, encoded

Viewer = Literal["operator", "viewer"] | Tenancy
"""Those who see the same of every event."""


def viewer_of(caller: Caller) -> Viewer:
    """Returns what a caller sees events as."""
    if caller.tenancy is not None:
        return caller.tenancy
    return "operator" if caller.role is Role.OPERATOR else "viewer"


def shown(event: Event, viewer: Viewer) -> bytes | None:
    """Returns the event in the form of the stream, as the viewer sees it; None: it sees nothing of it."""
    if viewer == "operator":
        return event.sent
    if viewer == "viewer":
        return event.sent if event.kind != "audit" else None
    own = {job for job, user in event.users.items() if viewer.owns(job, user)}
    if event.kind == "job":
        return event.sent if own else None
    data = _of_jobs(event, own)
    return encoded(event.id, event.kind, event.time, data) if data is not None else None


def _of_jobs(event: Event, own: set[str]) -> dict[str, Any] | None:
    """Returns what an event about several jobs tells of a tenant's own; None: nothing."""
    match event.kind:
        case "plan":
            data = event.data
            bands = ([job for job in band if job in own] for band in data["order"])
            return data | {
                "epoch": None,
                "order": [band for band in bands if band],
                "classes": {job: service_class for job, service_class in data["classes"].items() if job in own},
                "moves": None,
                "objective_seconds": None,
                "lower_bound_seconds": None,
            }
        case "stage":
            data = event.data
            jobs = [job for job in data["jobs"] if job in own]
            if own and not jobs:  # the others in it go on, and that is theirs
                return data | {"state": "ended", "jobs": sorted(own)}
            return data | {"jobs": jobs} if own else None
        case _:
            return None
