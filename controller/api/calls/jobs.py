"""The calls on jobs and stages."""

from __future__ import annotations

from functools import partial
from http import HTTPStatus
from typing import Any

from controller.access.caller import Caller
from controller.api.auth import check_host_privileges, require_free, require_involved, require_known, require_own
from controller.api.bodies.body import read_job, read_stage
from controller.api.http import Call, HttpError, Reply
from controller.api.services import Services
from controller.api.tenants import check_bounds, may_see, require_name, require_seen, without_others
from controller.events.changes import targets_data
from controller.families.sentence import sentence
from controller.model import by_id
from controller.ordering.loads import busiest_port
from controller.pieces import Steps
from controller.refusals import Unavailable
from controller.registry.registry import Change
from controller.steps import in_steps
from controller.wire import Explanation, StageState

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
    for state in services.registry.job_states(services.loop.classes):
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


def explain(services: Services, call: Call) -> Reply:
    """Explain why a job has its class, with the numbers."""
    job_id = call.path["id"]
    require_seen(call.caller, job_id, services.registry.job_user(job_id))
    state = services.registry.job_state(job_id)
    if state.state in ("ended", "lost"):
        raise HttpError(HTTPStatus.CONFLICT, f"job {job_id} is {state.state}: it is not in the plan")
    plan, snapshot = services.loop.plan, services.loop.snapshot
    if plan is None or snapshot is None:
        raise Unavailable("there is no plan yet; ask again in a second")
    job = by_id(snapshot.jobs).get(job_id)
    if job is None:
        raise Unavailable(f"job {job_id} is not in the plan yet; ask again in a second")
    port, seconds = busiest_port(job, snapshot)
    bands = plan.ordering.bands
    users = {other: services.registry.job_user(other) for band in bands for other in band}
    position = next(i for i, band in enumerate(bands) if job_id in band)
    return Reply.of(
        Explanation(
            job=job_id,
            policy=plan.ordering.policy,
            service_class=plan.classes[job_id],
            position=position,
            jobs_before=tuple(
                other for band in bands[:position] for other in band if may_see(call.caller, other, users[other])
            ),
            reason=without_others(call.caller, plan.ordering.reasons[job_id], users),
            bottleneck_port=f"{port.host} {port.direction}" if port is not None else None,
            bottleneck_seconds_per_iteration=seconds,
            iterations_done=job.iterations_done,
            iterations_left=job.iterations_left,
            target=job.target,
            diverged=job.diverged,
            family=job.family.name if job.family is not None else None,
            earlier_runs=sentence(job.family) if job.family is not None else None,
            problems=state.problems,
        )
    )
