"""The calls on hosts, plans and settings."""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from controller.api.auth import require_host
from controller.api.bodies.body import read_report, read_settings
from controller.api.bodies.query import number
from controller.api.http import Call, Reply
from controller.api.services import Services
from controller.declared.json_texts import texts_of, with_members
from controller.loop.loop import Loop
from controller.model import Host, Snapshot
from controller.ordering.waiting import PIECE, LongestWait, longest_waits
from controller.pieces import Steps
from controller.planner import Plan
from controller.policies.base import Policy
from controller.policies.registry import PolicyError, make
from controller.refusals import Invalid, NotFound, Unavailable
from controller.steps import in_steps
from controller.wire import EVERY_ADDRESS, EVERY_PROTOCOL, JOB_DSCP, Peers, PlanView

LOG = logging.getLogger("trainyard.api")
MAX_WAIT_SECONDS = 60.0
_TAGS = {EVERY_ADDRESS: "+", EVERY_PROTOCOL: "p"}
"""What is added to the entity tag of a plan for each preference. Two forms of a plan have two tags (RFC 9110, section
8.8.3)."""


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
    form = "".join(mark for preference, mark in _TAGS.items() if prefers(call, preference))
    known = _tag_of_plan(call.header("If-None-Match"), form)
    wait = number(call.query, "wait", 0.0, MAX_WAIT_SECONDS, default=0.0)
    began = time.monotonic()
    services.loop.host_plans.heard_of(host, knows_job_dscps=prefers(call, JOB_DSCP))
    plan, tag = services.loop.host_plans.get(host, known=known, wait=wait if known is not None else 0.0)
    waited = time.monotonic() - began
    headers = {"ETag": f'{tag[:-1]}{form}"', "Vary": "Prefer"}
    if plan is None:
        return Reply(HTTPStatus.NOT_MODIFIED, headers=headers, waited=waited)
    if not prefers(call, EVERY_ADDRESS):
        plan = plan.over_ipv4()
    if not prefers(call, EVERY_PROTOCOL):
        plan = plan.of_tcp()
    body = plan.model_dump_json(exclude=plan.as_absent())
    return Reply(HTTPStatus.OK, body.encode(), headers=headers | {"Cache-Control": "no-cache"}, waited=waited)


def _tag_of_plan(known: str | None, form: str) -> str | None:
    """Returns the tag of the plan that a caller knows; empty: it knows another form of a plan."""
    if known is None or not form:
        return known
    end = f'{form}"'
    return f'{known.removesuffix(end)}"' if known.endswith(end) else ""


def prefers(call: Call, preference: str) -> bool:
    """Returns whether a call has a preference (RFC 7240)."""
    return preference in (call.header("Prefer") or "").replace(" ", "").split(",")


def host_peers(services: Services, call: Call) -> Reply:
    """Read the addresses of all hosts, for an agent that finds connections; with If-None-Match only if changed."""
    require_host(call, call.path["host"])
    if call.path["host"] not in services.registry.servers:
        raise NotFound(f"there is no host {call.path['host']}")
    peers = peers_of(services.registry.hosts, every=prefers(call, EVERY_ADDRESS))
    body = peers.model_dump_json(exclude=peers.as_absent()).encode()
    tag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
    headers = {"ETag": tag, "Vary": "Prefer"}
    if call.header("If-None-Match") == tag:
        return Reply(HTTPStatus.NOT_MODIFIED, headers=headers)
    return Reply(HTTPStatus.OK, body, headers=headers | {"Cache-Control": "no-cache"})


def peers_of(hosts: Mapping[str, Host], *, every: bool) -> Peers:
    """Returns the addresses of all interfaces, and which interface it is where a host has several.

    An agent of an earlier version understands neither IPv6 addresses nor interfaces. So there are none, unless
    ``every`` address is asked for.
    """
    by_address = {address: host for host in hosts.values() for address in host.addresses if every or ":" not in address}
    several = {address: host for address, host in by_address.items() if every and host.name != host.server}
    return Peers(
        addresses={address: host.server for address, host in by_address.items()},
        interfaces={address: host.interface for address, host in several.items() if host.interface is not None},
    )


def get_plan(services: Services, call: Call) -> Reply:
    """Read the plan in force, or the plan that another policy would make now."""
    loop = services.loop
    name = call.query.get("policy")
    if name is None:
        if loop.plan is None:
            raise Unavailable("; ".join(("no plan is in force yet; ask again in a second", *loop.refusals)))
        view = _view(services, loop.plan, loop.snapshot, loop.settings.policy, applied=_is_applied(services))
        return Reply(HTTPStatus.OK, view.encode())
    policy = policy_named(loop, name)
    if loop.plan is None or loop.snapshot is None:
        plan, snapshot = loop.planning.dry_run(policy)
        return Reply(HTTPStatus.OK, _view(services, plan, snapshot, policy, applied=False).encode())
    # Of what the plan in force was made of, so that the two can be compared.
    in_force, snapshot = loop.plan, loop.snapshot
    now = _view(services, in_force, snapshot, loop.settings.policy, applied=_is_applied(services))
    plan = loop.planning.dry_run_of(snapshot, in_force, policy)
    text = with_members(_view(services, plan, snapshot, policy, applied=False), in_force=now)
    return Reply(HTTPStatus.OK, text.encode())


def _is_applied(services: Services) -> bool:
    return not services.loop.refusals and not services.config.enforcement.observes


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


def _view(services: Services, plan: Plan, snapshot: Snapshot | None, policy: Policy, *, applied: bool) -> str:
    """Returns a plan as the JSON of a ``wire.PlanView``. Other green threads run while the jobs are written.

    ``snapshot`` is what the plan was made of; None: it is from before a restart, and nobody's wait is known.
    """
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
        mode=services.loop.planning.mode,
        degraded=services.loop.planning.degraded,
    )
    waits = {} if snapshot is None else in_steps(waits_of(snapshot, plan))
    ordering = plan.ordering
    texts = in_steps(texts_of(order=ordering.bands, classes=plan.classes, reasons=ordering.reasons, waits=waits))
    return with_members(view.model_dump_json(exclude={"waits", "in_force"}), **texts)


def waits_of(snapshot: Snapshot, plan: Plan) -> Steps[dict[str, dict[str, Any]]]:
    """Returns the members of a ``wire.JobWait`` for each job of a plan that has demand. Yields where others go on."""
    waits = yield from longest_waits(snapshot, plan.classes)
    found = {}
    for job, wait in waits.items():
        found[job] = wait_facts(wait)
        if len(found) % PIECE == 0:
            yield
    return found


def wait_facts(wait: LongestWait) -> dict[str, Any]:
    """Returns the members of a ``wire.JobWait``."""
    return {
        "port": f"{wait.port.host} {wait.port.direction}",
        "seconds_before": wait.seconds_before,
        "seconds_beside": wait.seconds_beside,
        "seconds_until_served": wait.seconds_until_served,
        "before_count": wait.before_count,
        "first": wait.first,
        "alike_count": wait.alike_count,
    }
