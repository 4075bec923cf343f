"""What each role sees of an event. Pure.

Operators see all, viewers all but the audit. A tenant sees what concerns its own jobs; no other job has a name there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from controller.access.caller import Caller, Role, Tenancy
from controller.events.event import Event, encoded

Viewer = Literal["operator", "viewer"] | Tenancy
"""Those who see the same of every event."""
UserOf = Callable[[str], str | None]
"""Returns the user of a job as it is now; None: none is named, or the job is gone."""


def viewer_of(caller: Caller) -> Viewer:
    """Returns what a caller sees events as."""
    if caller.tenancy is not None:
        return caller.tenancy
    return "operator" if caller.role is Role.OPERATOR else "viewer"


def shown(event: Event, viewer: Viewer, user_of: UserOf) -> bytes | None:
    """Returns the event in the form of the stream, as the viewer sees it; None: it sees nothing of it."""
    if viewer == "operator":
        return event.sent
    if viewer == "viewer":
        return event.sent if event.kind != "audit" else None
    if event.about is not None:
        return event.sent if viewer.owns(*event.about) else None
    data = _own(event, viewer, user_of)
    return encoded(event.id, event.kind, event.time, data) if data is not None else None


def _own(event: Event, tenancy: Tenancy, user_of: UserOf) -> dict[str, Any] | None:
    """Returns what an event about several jobs tells of the tenant's own; None: nothing."""

    def is_own(job: str) -> bool:
        return tenancy.owns(job, user_of(job))

    match event.kind:
        case "plan":
            data = event.data
            bands = ([job for job in band if is_own(job)] for band in data["order"])
            return data | {
                "order": [band for band in bands if band],
                "classes": {job: service_class for job, service_class in data["classes"].items() if is_own(job)},
                "moves": None,
                "objective_seconds": None,
                "lower_bound_seconds": None,
            }
        case "stage":
            data = event.data
            own = [job for job in data["jobs"] if is_own(job)]
            return data | {"jobs": own} if own else None
        case _:
            return None
