"""The calls on jobs and stages."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from http import HTTPStatus
from typing import Any

from controller.access.caller import Caller
from controller.api.auth import (
    check_host_privileges,
    require_free,
    require_involved,
    require_known,
    require_no_others,
    require_own,
)
from controller.api.bodies.body import read_job, read_stage
from controller.api.http import Call, Reply
from controller.api.services import Services
from controller.api.shared_traffic import shared_traffic
from controller.api.tenants import check_bounds, may_see, require_name, require_seen
from controller.api.unseen import Unseen
from controller.events.changes import targets_data
from controller.pieces import Steps
from controller.registry.registry import Change
from controller.steps import in_steps
from controller.wire import StageState

_STATUS = {
    Change.CREATED: HTTPStatus.CREATED,
    Change.REPLACED: HTTPStatus.OK,
    Change.UNCHANGED: HTTPStatus.OK,
}


def put_job(services: Services, call: Call) -> Reply:
    """Register or replace a job."""
    job_id = call.path["id"]
    # Other requests run while the body is read, and may change the job. So all checks come after it.
    spec = read_job(services, call)
    require_involved(call, job_id, spec.hosts)
    if services.config.api.host_jobs == "own":
        require_own(call, spec)
    registry = services.registry
    require_free(call, job_id, registry.job_hosts(job_id))
    if registry.job_hosts(job_id) is not None:
        require_name(call.caller, job_id, registry.job_user(job_id))
    live = registry.live_job(job_id)
    check_host_privileges(
        call,
        spec,
        live,
        services.loop.now(),
        stages=services.config.api.host_stages,
        fillers=registry.stage_fillers(spec.stage, job_id),
    )
    check_bounds(
        call.caller, job_id, spec, live, registry.running(), put_stages=registry.put_stages, now=services.loop.now()
    )
    change = in_steps(
        registry.put_job_in_steps(
            job_id, spec, call.received_at, call.caller.host, is_known=partial(may_see, call.caller)
        )
    )
    services.journal.commit()
    state = registry.job_state(job_id, services.loop.classes.get(job_id))
    return Reply(_STATUS[change], in_steps(state.to_json(_targets(services, job_id))).encode())


def list_jobs(services: Services, call: Call) -> Reply:
    """List all jobs, including those that ended recently; a tenant's own for a tenant."""
    return Reply(HTTPStatus.OK, parts=in_steps(_listed(services, call.caller)))


def _listed(services: Services, caller: Caller) -> Steps[list[bytes]]:
    """Returns the JSON of a ``wire.JobList``, in parts."""
    parts = [b'{"jobs":[']
    unseen = Unseen.now(services.registry)
    for listed in services.registry.job_states(services.loop.classes):
        more = shared_traffic(services, listed.id) + unseen.of_job(listed.id)
        state = replace(listed, problems=listed.problems + more) if more else listed
        if not may_see(caller, state.id, state.spec.user):
            continue
        if len(parts) > 1:
            parts.append(b",")
        parts.append((yield from state.to_json(_targets(services, state.id))).encode())
        yield
    return [*parts, b"]}"]


def get_job(services: Services, call: Call) -> Reply:
    """Read a job."""
    job_id = call.path["id"]
    require_seen(call.caller, job_id, services.registry.job_user(job_id))
    state = services.registry.job_state(job_id, services.loop.classes.get(job_id))
    unseen = Unseen.now(services.registry).of_job(job_id)
    state = replace(state, problems=state.problems + shared_traffic(services, job_id) + unseen)
    return Reply(HTTPStatus.OK, in_steps(state.to_json(_targets(services, job_id))).encode())


def _targets(services: Services, job_id: str) -> dict[str, Any]:
    """Returns the targets that the plan in force predicts for a job."""
    plan = services.loop.plan
    return targets_data(plan.ordering.predictions.get(job_id, ())) if plan is not None else {}


def delete_job(services: Services, call: Call) -> Reply:
    """Remove a job."""
    job_id = call.path["id"]
    require_known(call, job_id, services.registry.job_hosts(job_id))
    require_seen(call.caller, job_id, services.registry.job_user(job_id))
    require_no_others(call, job_id, services.registry.part_hosts(job_id))
    services.registry.delete_job(job_id, call.received_at)
    services.journal.commit()
    return Reply(HTTPStatus.NO_CONTENT)


def put_stage(services: Services, call: Call) -> Reply:
    """Register or replace a stage and its jobs."""
    stage_id = call.path["id"]
    spec = read_stage(services, call)
    change = in_steps(services.registry.put_stage_in_steps(stage_id, spec, call.received_at))
    state = StageState(id=stage_id, jobs=services.registry.stage_jobs(stage_id))
    services.journal.commit()
    return Reply.of(state, _STATUS[change])


def delete_stage(services: Services, call: Call) -> Reply:
    """End a stage."""
    in_steps(services.registry.delete_stage_in_steps(call.path["id"], call.received_at))
    services.journal.commit()
    return Reply(HTTPStatus.NO_CONTENT)
