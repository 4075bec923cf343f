"""The calls on hosts, plans and settings."""

from __future__ import annotations

import hashlib
import logging
import time
from http import HTTPStatus

from controller.api.auth import require_host
from controller.api.bodies.body import read_report, read_settings
from controller.api.bodies.query import number
from controller.api.http import Call, Reply
from controller.api.services import Services
from controller.declared.json_texts import texts_of, with_members
from controller.loop.loop import Loop
from controller.planner import Plan
from controller.policies.base import Policy
from controller.policies.registry import PolicyError, make
from controller.refusals import Invalid, NotFound, Unavailable
from controller.steps import in_steps
from controller.wire import Peers, PlanView

LOG = logging.getLogger("trainyard.api")
MAX_WAIT_SECONDS = 60.0


def post_report(services: Services, call: Call) -> Reply:
    """Receive one report of a host."""
    host = call.path["host"]
    require_host(call, host)
    batch = read_report(services, call)
    with services.reporting.of(host):
        answer = in_steps(services.registry.report_in_steps(host, batch, call.received_at))
    services.metrics.reports.labels(status=answer.status).inc()
    # An answered report is not sent again, so a restart must not lose it. The plan does not wait for this: it was
    # triggered before. A report without news need not be journalled: leases and growing counts come again.
    if batch.brings_news:
        services.journal.commit()
    return Reply.of(answer)


def host_plan(services: Services, call: Call) -> Reply:
    """Read a host's marking plan; with If-None-Match and ``wait``, as soon as it changes."""
    host = call.path["host"]
    require_host(call, host)
    known = call.header("If-None-Match")
    wait = number(call.query, "wait", 0.0, MAX_WAIT_SECONDS, default=0.0)
    began = time.monotonic()
    plan, tag = services.loop.host_plans.get(host, known=known, wait=wait if known is not None else 0.0)
    waited = time.monotonic() - began
    if plan is None:
        return Reply(HTTPStatus.NOT_MODIFIED, headers={"ETag": tag}, waited=waited)
    # An agent of an earlier version does not know the field.
    body = plan.model_dump_json(exclude=None if plan.paused else {"paused"})
    headers = {"ETag": tag, "Cache-Control": "no-cache"}
    return Reply(HTTPStatus.OK, body.encode(), headers=headers, waited=waited)


def host_peers(services: Services, call: Call) -> Reply:
    """Read the addresses of all hosts, for an agent that finds connections; with If-None-Match only if changed."""
    require_host(call, call.path["host"])
    hosts = services.registry.hosts
    if call.path["host"] not in hosts:
        raise NotFound(f"there is no host {call.path['host']}")
    peers = Peers(addresses={host.address: name for name, host in hosts.items() if host.address is not None})
    tag = f'"{hashlib.sha256(peers.model_dump_json().encode()).hexdigest()[:32]}"'
    if call.header("If-None-Match") == tag:
        return Reply(HTTPStatus.NOT_MODIFIED, headers={"ETag": tag})
    return Reply.of(peers, ETag=tag, Cache_Control="no-cache")


def get_plan(services: Services, call: Call) -> Reply:
    """Read the plan in force, or the plan that another policy would make now."""
    loop = services.loop
    name = call.query.get("policy")
    if name is None:
        if loop.plan is None:
            raise Unavailable("; ".join(("no plan is in force yet; ask again in a second", *loop.refusals)))
        is_applied = not loop.refusals and "switch" in services.config.enforce
        return _view(services, loop.plan, loop.settings.policy, applied=is_applied)
    policy = policy_named(loop, name)
    plan, _ = loop.dry_run(policy)
    return _view(services, plan, policy, applied=False)


def policy_named(loop: Loop, name: str) -> Policy:
    """Returns the policy in force if it has this name, else the policy of this name. Raises Invalid."""
    current = loop.settings.policy
    try:
        return current if name == current.name else make(name)
    except PolicyError as error:
        raise Invalid([("policy", str(error))]) from error


def get_settings(services: Services, _call: Call) -> Reply:
    """Read the settings that can change at run time."""
    return Reply.of(services.loop.settings.view())


def patch_settings(services: Services, call: Call) -> Reply:
    """Change the policy, its options or the period, or pause and resume."""
    was_paused = services.loop.settings.is_paused
    settings = services.loop.change(read_settings(services, call), call.received_at)
    services.journal.commit()
    if settings.pause is not was_paused:
        what = "paused: nothing is enforced" if settings.pause else "resumed: the plan is enforced again"
        LOG.warning("%s; by %s", what, call.caller.name)
    return Reply.of(settings)


def _view(services: Services, plan: Plan, policy: Policy, *, applied: bool) -> Reply:
    """Returns a plan as a ``wire.PlanView``. Other green threads run while the entries of the jobs are written."""
    view = PlanView.model_construct(
        policy=plan.ordering.policy,
        options=dict(policy.options()),
        applied=applied,
        epoch=services.loop.epoch,
        age_seconds=max(0.0, services.loop.now() - plan.made_at),
        objective_seconds=plan.objective_seconds,
        lower_bound_seconds=plan.lower_bound_seconds,
        inversions=plan.inversions,
        errors=services.loop.refusals if plan is services.loop.plan else (),
        mode="marked" if services.loop.degraded else services.config.mode,
        degraded=services.loop.degraded,
    )
    texts = in_steps(texts_of(order=plan.ordering.bands, classes=plan.classes, reasons=plan.ordering.reasons))
    return Reply(HTTPStatus.OK, with_members(view.model_dump_json(), **texts).encode())
