"""The plan in force, the policy behind it, and the jobs."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from typing import get_args

from prometheus_client.core import Metric

from controller.api.exposition.families import gauge, gauges, info
from controller.api.services import Services
from controller.pieces import Steps
from controller.planner import Plan
from controller.registry.agents.leases import AgentWord
from controller.registry.job.view import StateWord
from controller.steps import in_steps
from controller.wire.hosts import EnrolmentState


def plans(services: Services) -> Iterator[Metric]:
    """Yields the families on plans and jobs."""
    loop = services.loop
    yield info("trainyard_policy", "The policy that plans are made by", {"policy": loop.settings.policy.name})
    yield gauge(
        "trainyard_period_seconds", "Progress is used for a plan once in this time", loop.settings.period_seconds
    )
    yield gauge(
        "trainyard_plan_failing",
        "1 while the newest plan could not be made or applied, and the one before is in force",
        loop.failure is not None,
    )
    yield from _in_force(loop.plan)
    in_class = Counter(loop.classes.values())
    yield gauges(
        "trainyard_planned_jobs",
        "Jobs in the plan in force by class; class 0 is served first",
        ("service_class",),
        [((str(number),), in_class[number]) for number in range(services.config.classes)],
    )
    states, diverged = in_steps(_states(services))
    yield gauges(
        "trainyard_jobs",
        "Jobs that have not ended: waiting for a first report, running, or lost, because their hosts are silent",
        ("state",),
        [((word,), states[word]) for word in get_args(StateWord) if word != "ended"],
    )
    yield gauge("trainyard_diverged_jobs", "Jobs that have not ended and said that they have diverged", diverged)
    yield gauge("trainyard_stages", "Stages that were put or have running jobs", len(services.registry.stages()))
    agents = Counter(services.registry.agents())
    yield gauges(
        "trainyard_hosts",
        "Hosts of the settings, and approved ones, by their agent: it reports, is silent for longer than its lease, or "
        "was never heard of",
        ("agent",),
        [((word,), agents[word]) for word in get_args(AgentWord)],
    )
    states_of_hosts = Counter(each.state for each in services.hosts.enrolments)
    yield gauges(
        "trainyard_enrolments",
        "Hosts that have asked to be added: they wait for a decision, were approved, or were refused",
        ("state",),
        [((word,), states_of_hosts[word]) for word in get_args(EnrolmentState)],
    )
    yield gauge(
        "trainyard_enrolment_wait_seconds",
        "How long the host has waited that waits longest for a decision; 0: none waits",
        services.hosts.enrolments.longest_wait,
    )
    yield gauge(
        "trainyard_hosts_misplaced",
        "Approved hosts that announce themselves at another port than is known, and are not followed",
        len(services.hosts.enrolments.misplaced),
    )


def _in_force(plan: Plan | None) -> Iterator[Metric]:
    yield gauge(
        "trainyard_plan_timestamp_seconds",
        "When the plan in force was made, in seconds since 1970",
        plan.made_at if plan is not None else None,
    )
    yield gauge(
        "trainyard_plan_objective_seconds",
        "The weighted mean time until a job's ports have served all that it has left, in the order in force",
        _known(plan.objective_seconds) if plan is not None else None,
    )
    yield gauge(
        "trainyard_plan_lower_bound_seconds",
        "What no order can be better than, for the same weighted mean",
        _known(plan.lower_bound_seconds) if plan is not None else None,
    )
    yield gauge(
        "trainyard_plan_inversions",
        "Pairs of jobs that meet at a port and that too few classes do not keep in their order",
        plan.inversions if plan is not None else None,
    )


def _known(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _states(services: Services) -> Steps[tuple[Counter[StateWord], int]]:
    """Returns how many jobs are in each state, and how many have diverged."""
    states: Counter[StateWord] = Counter()
    diverged = 0
    for job, _ in services.registry.progress_and_bytes():
        states[job.state] += 1
        diverged += job.diverged
        yield
    return states, diverged
