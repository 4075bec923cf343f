"""The calls on parts of jobs: what single hosts know of the jobs that their agents have found."""

from __future__ import annotations

from http import HTTPStatus

from controller.access.caller import Role
from controller.api.auth import EARLIEST_SECONDS, require_host, require_known
from controller.api.bodies.body import read_part
from controller.api.bodies.query import number
from controller.api.http import Call, Reply
from controller.api.services import Services
from controller.api.tenants import check_bounds, require_name, require_seen
from controller.declared.parts.joined import join
from controller.declared.parts.part import Part
from controller.registry.parts import PartChange
from controller.wire import PartAnswer

LATEST = 1e12
"""The greatest arrival that a part may tell."""


def put_part(services: Services, call: Call) -> Reply:
    """Register or replace what one host knows of a job; the controller joins the parts of all hosts."""
    job_id, host = call.path["id"], call.path["host"]
    require_host(call, host)
    part = read_part(services, call)
    registry = services.registry
    _check_tenant(services, call, part)
    # Only operators may say that a job has waited for long, and so goes before others.
    earliest = None if call.caller.role is Role.OPERATOR else services.loop.now() - EARLIEST_SECONDS
    by_host = call.caller.host is not None
    change = registry.parts.put(job_id, host, part, call.received_at, by_host=by_host, earliest=earliest)
    services.journal.commit()
    answer = PartAnswer(
        job=job_id, host=host, joined=change is not PartChange.REGISTERED_WHOLE, parts=registry.parts.count(job_id)
    )
    return Reply.of(answer, HTTPStatus.CREATED if change is PartChange.CREATED else HTTPStatus.OK)


def delete_part(services: Services, call: Call) -> Reply:
    """Remove what one host knows of a job; the job ends where it runs on no other host."""
    job_id, host = call.path["id"], call.path["host"]
    require_host(call, host)
    require_known(call, job_id, services.registry.job_hosts(job_id))
    require_seen(call.caller, job_id, services.registry.job_user(job_id))
    arrival = number(call.query, "arrival", 0.0, LATEST, default=LATEST)
    services.registry.parts.remove(job_id, host, arrival, call.received_at)
    services.journal.commit()
    return Reply(HTTPStatus.NO_CONTENT)


def _check_tenant(services: Services, call: Call, part: Part) -> None:
    """Raises HttpError 403 where a tenant would have a part in a job of others, or beyond its bounds."""
    caller, job_id, registry = call.caller, call.path["id"], services.registry
    if caller.tenancy is None:
        return
    if registry.job_hosts(job_id) is not None:
        require_name(caller, job_id, registry.job_user(job_id))
    spec = join(registry.parts.preview(job_id, call.path["host"], part))
    check_bounds(
        caller,
        job_id,
        spec,
        registry.live_job(job_id),
        registry.running(),
        put_stages=registry.put_stages,
        now=services.loop.now(),
    )
