"""The calls on jobs and stages."""

from __future__ import annotations

from http import HTTPStatus

from controller.api.auth import require_free, require_involved, require_known, require_modest, require_own
from controller.api.body import read
from controller.api.http import Call, HttpError, Reply
from controller.api.services import Services
from controller.job_flows import involved_hosts
from controller.model import bottleneck_seconds, by_id, load_seconds
from controller.refusals import Unavailable
from controller.registry import Change
from controller.wire import Explanation, JobList, JobSpec, StageSpec, StageState

_STATUS = {
    Change.CREATED: HTTPStatus.CREATED,
    Change.REPLACED: HTTPStatus.OK,
    Change.UNCHANGED: HTTPStatus.OK,
}


def put_job(services: Services, call: Call) -> Reply:
    """Register or replace a job."""
    job_id = call.path["id"]
    # Others are served while the body comes: what is checked before would be of a job that is another by then.
    spec = read(call, JobSpec)
    require_involved(call, job_id, involved_hosts(spec))
    if services.config.api.host_jobs == "own":
        require_own(call, spec)
    require_free(call, job_id, services.registry.job_hosts(job_id))
    require_modest(
        call,
        spec,
        services.registry.live_job(job_id),
        services.loop.now(),
        stages=services.config.api.host_stages,
        fillers=services.registry.stage_fillers(spec.stage, job_id),
    )
    change = services.registry.put_job(job_id, spec, call.received_at, registrar=call.identity.host)
    state = services.registry.job_state(job_id, services.loop.classes.get(job_id))
    services.journal.commit()
    return Reply.of(state, _STATUS[change])


def list_jobs(services: Services, _call: Call) -> Reply:
    """All jobs, those that ended lately included."""
    return Reply.of(JobList(jobs=services.registry.job_states(services.loop.classes)))


def get_job(services: Services, call: Call) -> Reply:
    """One job."""
    job_id = call.path["id"]
    return Reply.of(services.registry.job_state(job_id, services.loop.classes.get(job_id)))


def delete_job(services: Services, call: Call) -> Reply:
    """Remove a job."""
    job_id = call.path["id"]
    require_known(call, job_id, services.registry.job_hosts(job_id))
    services.registry.delete_job(job_id, call.received_at)
    services.journal.commit()
    return Reply(HTTPStatus.NO_CONTENT)


def put_stage(services: Services, call: Call) -> Reply:
    """Say which jobs are a stage."""
    stage_id = call.path["id"]
    change = services.registry.put_stage(stage_id, read(call, StageSpec), call.received_at)
    state = StageState(id=stage_id, jobs=services.registry.stage_jobs(stage_id))
    services.journal.commit()
    return Reply.of(state, _STATUS[change])


def delete_stage(services: Services, call: Call) -> Reply:
    """End a stage."""
    services.registry.delete_stage(call.path["id"], call.received_at)
    services.journal.commit()
    return Reply(HTTPStatus.NO_CONTENT)


def explain(services: Services, call: Call) -> Reply:
    """Why a job has its class, with the numbers."""
    job_id = call.path["id"]
    state = services.registry.job_state(job_id)
    if state.state in ("ended", "lost"):
        raise HttpError(HTTPStatus.CONFLICT, f"job {job_id} is {state.state}: it is not in the plan")
    plan, snapshot = services.loop.plan, services.loop.snapshot
    if plan is None or snapshot is None:
        raise Unavailable("there is no plan yet; ask again in a second")
    job = by_id(snapshot.jobs).get(job_id)
    if job is None:
        raise Unavailable(f"job {job_id} is not in the plan yet; ask again in a second")
    load = load_seconds(job, snapshot.hosts, snapshot.routes)
    port = max(sorted(load), key=lambda port: load[port], default=None)
    bands = plan.ordering.bands
    position = next(i for i, band in enumerate(bands) if job_id in band)
    return Reply.of(
        Explanation(
            job=job_id,
            policy=plan.ordering.policy,
            service_class=plan.classes[job_id],
            position=position,
            jobs_before=tuple(other for band in bands[:position] for other in band),
            reason=plan.ordering.reasons[job_id],
            bottleneck_port=f"{port.host} {port.direction}" if port is not None else None,
            bottleneck_seconds_per_iteration=bottleneck_seconds(load),
            iterations_done=job.iterations_done,
            iterations_left=job.iterations_left,
            problems=state.problems,
        )
    )
