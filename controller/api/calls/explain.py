"""The call that explains why a job has its class, and what it waits for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from http import HTTPStatus
from typing import Any

from controller.access.caller import Caller
from controller.api.access import Access
from controller.api.bodies.query import real, reals
from controller.api.calls.outcomes import Planned, outcomes
from controller.api.calls.plans import policy_named
from controller.api.calls.predicted import check
from controller.api.calls.state import why_not_enforced
from controller.api.http import Call, HttpError, Reply
from controller.api.services import Services
from controller.api.shared_traffic import shared_traffic
from controller.api.tenants import ANOTHER, may_see, require_seen, without_others
from controller.api.unseen import Unseen
from controller.families.sentence import sentence
from controller.model import Job, Port, Prediction, Snapshot, by_id
from controller.ordering.loads import busiest_port
from controller.ordering.pace import pace
from controller.ordering.waiting import JobWaits, OtherJob, waits
from controller.planner import Plan
from controller.refusals import Unavailable
from controller.steps import in_steps
from controller.wire import MAX_METRIC, MAX_POSITIVE, MIN_POSITIVE, Explanation, JobAtPort, JobPace, PortWait

WEIGHTS = "weights"
MOST_WEIGHTS = 8
"""Try at most this many weights in one call."""
UserOf = Mapping[str, str | None]


def explain(services: Services, call: Call) -> Reply:
    """Explain why a job has its class, and what it waits for, with the numbers."""
    job_id = call.path["id"]
    require_seen(call.caller, job_id, services.registry.job_user(job_id))
    state = services.registry.job_state(job_id)
    if state.state in ("ended", "lost"):
        raise HttpError(HTTPStatus.CONFLICT, f"job {job_id} is {state.state}: it is not in the plan")
    base = _in_force(services)
    tried = _tried(services, call, base)
    # Several weights are beside each other; one change is what the rest of the answer is about.
    plan, snapshot = tried[0] if len(tried) == 1 and WEIGHTS not in call.query else base
    users = {other: services.registry.job_user(other) for band in plan.ordering.bands for other in band}
    unseen = Unseen.now(services.registry).of_job(job_id)
    problems = state.problems + shared_traffic(services, job_id) + unseen
    answer = explanation(job_id, plan, snapshot, call.caller, users=users, problems=problems)
    found = in_steps(outcomes(job_id, base, tried)) if tried else ()
    more = {
        "found": state.found_by(),
        "unit": state.spec.unit,
        "prediction": check(state.spec.predicted, answer.pace, state.spec.unit, state.iterations_of_epoch),
        "outcomes": found,
        "epoch": services.loop.epoch,
        "planned_at": base[0].made_at,
        "not_enforced": None if call.query else why_not_enforced(services),
    }
    return Reply.of(answer.model_copy(update=more if call.caller.tenancy is None else more | {"epoch": None}))


def _in_force(services: Services) -> Planned:
    plan, snapshot = services.loop.plan, services.loop.snapshot
    if plan is None or snapshot is None:
        raise Unavailable("there is no plan yet; ask again in a second")
    return plan, snapshot


def _tried(services: Services, call: Call, base: Planned) -> list[Planned]:
    """Returns the plans that would have been made if what the query names were otherwise. None of them is applied."""
    if not call.query:
        return []
    # A tenant would learn from it how other tenants' jobs stand.
    Access.READ.require(call.caller, f"GET /v1/jobs/{{id}}/explain with {', '.join(call.query)}")
    weights = reals(call.query, WEIGHTS, MIN_POSITIVE, MAX_POSITIVE, most=MOST_WEIGHTS) or (
        real(call.query, "weight", MIN_POSITIVE, MAX_POSITIVE),
    )
    target = real(call.query, "target", -MAX_METRIC, MAX_METRIC)
    loop = services.loop
    name = call.query.get("policy")
    policy = loop.settings.policy if name is None else policy_named(loop, name)
    changed = [with_job_changed(call.path["id"], weight, target, base[1]) for weight in weights]
    return [(loop.planning.dry_run_of(known, base[0], policy), known) for known in changed]


def with_job_changed(job_id: str, weight: float | None, target: float | None, known: Snapshot) -> Snapshot:
    """Returns what is known, with another weight or target of a job. None: it stays."""
    wanted = {"weight": weight, "target": target}
    changes: dict[str, Any] = {name: value for name, value in wanted.items() if value is not None}
    return replace(known, jobs=tuple(replace(job, **changes) if job.id == job_id else job for job in known.jobs))


def explanation(
    job_id: str, plan: Plan, snapshot: Snapshot, caller: Caller, *, users: UserOf, problems: tuple[str, ...]
) -> Explanation:
    """Returns why a job has its class in a plan, as a caller may see it. ``users``: the users of all jobs of the plan.

    ``snapshot`` is what the plan was made of. ``problems`` are the job's. Raises Unavailable where the
    job is not in the plan yet.
    """
    job = by_id(snapshot.jobs).get(job_id)
    if job is None:
        raise Unavailable(f"job {job_id} is not in the plan yet; ask again in a second")
    port, seconds = busiest_port(job, snapshot)
    measured = pace(job, seconds, snapshot.now)
    waiting = waits(snapshot, plan.classes, job_id)
    bands = plan.ordering.bands
    position = next(i for i, band in enumerate(bands) if job_id in band)
    return Explanation(
        job=job_id,
        policy=plan.ordering.policy,
        service_class=plan.classes[job_id],
        dscp=job.dscp,
        position=position,
        jobs_before=tuple(other for band in bands[:position] for other in band if may_see(caller, other, users[other])),
        reason=without_others(caller, plan.ordering.reasons[job_id], users),
        bottleneck_port=_name(port) if port is not None else None,
        bottleneck_seconds_per_iteration=seconds,
        iterations_done=job.iterations_done,
        iterations_left=job.iterations_left,
        target=job.target,
        diverged=job.diverged,
        family=job.family.name if job.family is not None else None,
        earlier_runs=sentence(job.family) if job.family is not None else None,
        problems=problems,
        ports=_ports(waiting, caller, users),
        before_count=waiting.before_count,
        alike_count=waiting.alike_count,
        reached_at=reached_at(job, plan.ordering.predictions.get(job_id, ())),
        pace=JobPace(**measured._asdict()) if measured is not None else None,
    )


def reached_at(job: Job, predictions: Iterable[Prediction]) -> dict[str, float]:
    """Returns when a job has reported the iteration of each target that it has reached, by the target's name."""
    found: dict[str, float] = {}
    for each in predictions:
        # An iteration between two reports was done when the later one came.
        times = (point.time for point in job.progress if point.iteration >= each.iteration)
        if each.is_reached and (time := next(times, None)) is not None:
            found[each.target] = time
    return found


def _ports(waiting: JobWaits, caller: Caller, users: UserOf) -> tuple[PortWait, ...]:
    def shown(other: OtherJob) -> JobAtPort:
        name = other.job if may_see(caller, other.job, users[other.job]) else ANOTHER
        return JobAtPort(job=name, service_class=other.service_class, seconds_left=other.seconds_left)

    return tuple(
        PortWait(
            port=_name(wait.port),
            own_seconds_per_iteration=wait.own_seconds,
            own_seconds_left=wait.own_seconds_left,
            seconds_before=wait.seconds_before,
            seconds_beside=wait.seconds_beside,
            before=tuple(map(shown, wait.before)),
            before_count=wait.before_count,
            alike=tuple(map(shown, wait.alike)),
            alike_count=wait.alike_count,
            after_count=wait.after_count,
        )
        for wait in waiting.ports
    )


def _name(port: Port) -> str:
    return f"{port.host} {port.direction}"
