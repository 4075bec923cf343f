"""The DSCPs of the settings in a host's plan, and what agents of earlier versions get of them."""

from __future__ import annotations

import json
from typing import Any

import eventlet
import pytest

from controller.access.caller import Caller
from controller.api.calls.plans import prefers
from controller.api.http import Call
from controller.code_points import CLASS_SELECTORS, DCB, POOL_2, CodePoints, code_points
from controller.config.config import Config
from controller.config.current import CurrentSettings
from controller.loop.host_plans import HostPlans
from controller.wire import EVERY_ADDRESS, HostPlan, InterfacePlan, Mark
from evaluation.bench.support.waiting import wait_until
from tests.support.controller.yard import Yard

NEW = {"acknowledgement_dscp", "other_dscp", "exclusive_dscp"}


def host_plan(**settings: Any) -> tuple[HostPlan, str]:
    config = Config.model_validate({"hosts": [{"name": "h1", "address": "10.0.0.1"}]} | settings)
    plans = HostPlans(CurrentSettings(config), {})
    plans.update("fifo", {})
    plan, tag = plans.get("h1")
    assert plan is not None
    return plan, tag


@pytest.mark.parametrize(
    ("settings", "points"),
    [
        ({}, POOL_2),
        ({"classes": 3}, POOL_2.first(3)),
        ({"dscp": "class-selectors"}, CLASS_SELECTORS),
        ({"dscp": "dcb", "classes": 2}, DCB.first(2)),
        ({"dscp": {"acknowledgements": 46, "other": 8}}, code_points(POOL_2.classes, 46, 8)),
    ],
)
def test_an_agent_reads_the_dscps_of_the_settings(settings: dict[str, Any], points: CodePoints) -> None:
    plan, _ = host_plan(**settings)
    assert plan.code_points == points
    sent = plan.model_dump_json(exclude=plan.as_absent())
    assert HostPlan.model_validate_json(sent).code_points == points, "what is left out is what its absence says"


def test_an_agent_of_an_earlier_version_understands_the_default_and_refuses_the_rest() -> None:
    plan, _ = host_plan(classes=3)
    assert not NEW & json.loads(plan.model_dump_json(exclude=plan.as_absent())).keys()
    for dscp in ("class-selectors", {"acknowledgements": None}, {"other": 1}):
        plan, _ = host_plan(dscp=dscp)
        assert NEW & json.loads(plan.model_dump_json(exclude=plan.as_absent())).keys()


def test_a_plan_of_an_earlier_controller_has_the_default_dscps() -> None:
    earlier = {"host": "h1", "epoch": 1, "policy": "fifo", "mode": "marked", "class_dscp": [59, 51]}
    plan = HostPlan.model_validate(earlier | {"class_floor": 0.01, "other_floor": 0.1, "egress_bps": 1e9})
    assert plan.code_points == POOL_2.first(2)


def test_a_plan_is_made_with_the_dscps_of_the_settings() -> None:
    yard = Yard(dscp="class-selectors").start()
    try:
        yard.put("a", 5000)
        wait_until(lambda: "a" in yard.loop.classes, sleep=eventlet.sleep)
        assert yard.loop.snapshot is not None and yard.loop.snapshot.code_points == CLASS_SELECTORS
        plan, _ = yard.loop.host_plans.get("h1")
        assert plan is not None and {mark.dscp for mark in plan.marks} == {56}
    finally:
        yard.stop()


def test_other_dscps_are_another_plan() -> None:
    tags = {host_plan(dscp=dscp)[1] for dscp in ("pool-2", "dcb", {"acknowledgements": None}, {"other": 1})}
    assert len(tags) == 4


def test_an_agent_of_an_earlier_version_gets_no_mark_by_an_ipv6_address_and_no_field_of_one_interface() -> None:
    plan, _ = host_plan()
    marks = [
        Mark(job="a", service_class=0, dscp=59, remote=remote, remote_port=80)
        for remote in ("10.0.0.2", "fd00::2", None)
    ]
    both = plan.model_copy(update={"marks": tuple(marks)})
    assert both.over_ipv4().marks == (marks[0], marks[2]) and plan.over_ipv4() is plan
    assert "interfaces" in both.as_absent()
    rails = both.model_copy(update={"interfaces": (InterfacePlan(name="eth0", egress_bps=1e9),)})
    assert HostPlan.model_validate_json(rails.model_dump_json(exclude=rails.as_absent())) == rails
    # An agent of today says so in a header, which a controller of an earlier version leaves aside.
    asked = Call({"HTTP_PREFER": f"wait=5, {EVERY_ADDRESS}"}, {}, {}, Caller("h1", "host", "h1"), 0.0)
    assert prefers(asked, EVERY_ADDRESS) and not prefers(asked, "every")
