"""DSCPs that jobs have for their life, in the hosts' plans: what changes with a plan, and who understands it."""

from __future__ import annotations

import json
from collections.abc import Iterator

import eventlet
import pytest

from controller.loop.host_plans import HostPlans
from controller.wire import HostJob, HostPlan
from evaluation.bench.support.waiting import wait_until
from tests.support.controller.yard import Yard


@pytest.fixture
def yard() -> Iterator[Yard]:
    made = Yard(identity="dscp").start()
    yield made
    made.stop()


def planned(yard: Yard, *jobs: str) -> None:
    wait_until(lambda: set(jobs) == set(yard.loop.classes), sleep=eventlet.sleep)


def plan_of(plans: HostPlans, host: str = "h1") -> HostPlan:
    plan, _ = plans.get(host)
    assert plan is not None
    return plan


def test_a_host_knows_the_dscp_of_each_of_its_jobs(yard: Yard) -> None:
    yard.put("b", 5001)
    yard.put("a", 5000)
    planned(yard, "a", "b")
    plan = plan_of(yard.loop.host_plans)
    assert plan.mode == "dscp"
    classes = yard.loop.classes
    assert plan.jobs == (
        HostJob(job="a", dscp=7, service_class=classes["a"]),
        HostJob(job="b", dscp=3, service_class=classes["b"]),
    )
    assert plan_of(yard.loop.host_plans, "h2").jobs == plan.jobs
    assert plan_of(yard.loop.host_plans, "h3").jobs == ()
    assert {(mark.job, mark.dscp) for mark in plan.marks} == {("a", 7), ("b", 3)}
    assert not {3, 7} & set(plan.exclusive_dscp), "a NIC with RDMA sets them itself"
    assert {11, 63} <= set(plan.exclusive_dscp), "nobody may set those of no job here"
    assert {3, 7} <= set(plan_of(yard.loop.host_plans, "h3").exclusive_dscp)


def test_another_class_changes_the_order_of_the_interface_and_no_mark(yard: Yard) -> None:
    yard.put("a", 5000)
    yard.put("b", 5001)
    planned(yard, "a", "b")
    before = plan_of(yard.loop.host_plans)
    yard.registry.delete_job("a", 0.0)
    planned(yard, "b")
    after = plan_of(yard.loop.host_plans)
    assert {mark.dscp for mark in after.marks} == {7}
    (b,) = after.jobs
    assert b.dscp == 7
    moved = before.model_copy(
        update={"jobs": tuple(job.model_copy(update={"service_class": 5}) for job in before.jobs)}
    )
    assert moved.code_points == before.code_points, "packet filters see no difference"
    assert moved.served_points != before.served_points
    assert dict(moved.served_points.order) == {3: 5, 7: 5}


def test_an_interface_serves_jobs_that_share_a_dscp_in_their_best_class(yard: Yard) -> None:
    plan = plan_of(yard.loop.host_plans)
    jobs = tuple(HostJob(job=name, dscp=3, service_class=k) for name, k in (("a", 4), ("b", 1), ("c", 6)))
    assert plan.model_copy(update={"jobs": jobs}).served_points.served() == {3: 1, 63: 0}


def test_an_agent_of_an_earlier_version_refuses_the_plan_and_one_of_today_reads_it_whole(yard: Yard) -> None:
    yard.put("a", 5000)
    planned(yard, "a")
    plan = plan_of(yard.loop.host_plans)
    sent = plan.model_dump_json(exclude=plan.as_absent())
    assert HostPlan.model_validate_json(sent) == plan
    assert json.loads(sent)["mode"] not in ("classified", "marked"), "earlier versions know no other"
    without = plan.model_copy(update={"jobs": ()})
    assert "jobs" not in json.loads(without.model_dump_json(exclude=without.as_absent()))


def test_a_paused_plan_has_the_jobs_all_the_same(yard: Yard) -> None:
    yard.put("a", 5000)
    planned(yard, "a")
    yard.loop.host_plans.set_paused(True)
    plan = plan_of(yard.loop.host_plans)
    assert plan.paused and [job.dscp for job in plan.jobs] == [3]


def test_who_does_not_understand_it_is_remembered_as_long_as_that_is_so(yard: Yard) -> None:
    plans = yard.loop.host_plans
    for host in ("h1", "h2", "h9"):
        plans.heard_of(host, knows_job_dscps=False)
    assert plans.earlier_agents == {"h1", "h2"}
    plans.heard_of("h1", knows_job_dscps=True)
    assert plans.earlier_agents == {"h2"}


def test_the_plan_of_a_refused_change_names_the_dscps_of_new_jobs() -> None:
    yard = Yard(identity="dscp").start()
    try:
        yard.put("a", 5000)
        planned(yard, "a")
        yard.network.refusal = "full"
        yard.put("b", 5001)
        wait_until(lambda: len(plan_of(yard.loop.host_plans).jobs) == 2, sleep=eventlet.sleep)
        assert yard.loop.classes.keys() == {"a"}
        assert [(job.job, job.dscp, job.service_class) for job in plan_of(yard.loop.host_plans).jobs][1] == ("b", 7, 6)
    finally:
        yard.stop()
