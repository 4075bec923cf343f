"""The whole controller, as it is started, with a real switch: a job over REST becomes rules, and restarts keep them."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Iterator

import pytest

from evaluation.bench.support.waiting import wait_until
from tests.lab.conftest import Stage
from tests.support.lab.controller_program import PERIOD_SECONDS, Controller, job
from tests.support.lab.switch_fixtures import Bridge

TRIGGERS = 48
"""So many registrations and removals tell what half of them take."""


@pytest.fixture(scope="module")
def controller(stage: Stage, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Controller]:
    stage.clear()
    made = Controller(tmp_path_factory.mktemp("controller"))
    yield made
    if made.process.poll() is None:
        made.stop()


@pytest.fixture(scope="module")
def bridge(controller: Controller) -> Iterator[Bridge]:
    made = Bridge(controller.openflow_port)
    yield made
    made.close()


def rules_of(bridge: Bridge, port: int) -> list[str]:
    return [rule for rule in bridge.flows() if f"tp_dst={port}" in rule or f"tp_src={port}" in rule]


def test_a_job_becomes_rules_and_its_end_takes_them_away(controller: Controller, bridge: Bridge) -> None:
    wait_until(controller.ready, 20, what="readiness")
    for name, port in (("first", 7001), ("second", 7002)):
        assert controller.call("PUT", f"/v1/jobs/{name}", job(port)).status_code == 201
    wait_until(lambda: len(rules_of(bridge, 7002)) == 4, 5, what="the second job's rules")
    # fifo: the first is served first.
    assert all("set_queue:1," in rule for rule in rules_of(bridge, 7001))
    assert all("set_queue:2," in rule for rule in rules_of(bridge, 7002))
    assert controller.call("DELETE", "/v1/jobs/first").status_code == 204
    wait_until(lambda: not rules_of(bridge, 7001), 5, what="the rules' end")
    wait_until(lambda: all("set_queue:1," in rule for rule in rules_of(bridge, 7002)), 5, what="the other's move")
    controller.call("DELETE", "/v1/jobs/second")


def test_an_unchanged_plan_sends_nothing_but_the_gate(controller: Controller, bridge: Bridge) -> None:
    controller.call("PUT", "/v1/jobs/still", job(7003))
    wait_until(lambda: len(rules_of(bridge, 7003)) == 4, 5, what="the job's rules")
    before = controller.get("/v1/status")
    wanted = before["plan_causes"]["period"] + 2
    wait_until(lambda: controller.get("/v1/status")["plan_causes"]["period"] >= wanted, 10, what="two periods")
    after = controller.get("/v1/status")
    assert after["flow_mods"] == before["flow_mods"]
    assert after["gate_renewals"] > before["gate_renewals"]
    controller.call("DELETE", "/v1/jobs/still")


def test_half_the_triggers_are_rules_long_before_the_next_period(
    controller: Controller, bridge: Bridge, capsys: pytest.CaptureFixture[str]
) -> None:
    wait_until(controller.ready, 20, what="readiness")
    for _ in range(TRIGGERS // 2):
        controller.call("PUT", "/v1/jobs/short", job(7004))
        wait_until(lambda: rules_of(bridge, 7004), 5, what="the job's rules")
        controller.call("DELETE", "/v1/jobs/short")
        wait_until(lambda: not rules_of(bridge, 7004), 5, what="the rules' end")
    latency = controller.get("/v1/status")["change_to_rule"]
    with capsys.disabled():
        sys.stdout.write(f"\nregistration or removal to rule: {latency}\n")
    assert latency["count"] >= TRIGGERS
    assert latency["p50_seconds"] < PERIOD_SECONDS / 2


def test_a_controller_that_is_killed_and_comes_back_disturbs_no_flow(controller: Controller, bridge: Bridge) -> None:
    for name, port in (("a", 7005), ("b", 7006)):
        controller.call("PUT", f"/v1/jobs/{name}", job(port))
    wait_until(lambda: len(rules_of(bridge, 7006)) == 4, 5, what="the jobs' rules")
    before, ages = bridge.flows(), bridge.ages()
    time.sleep(1.0)
    assert controller.stop(signal.SIGKILL) == -signal.SIGKILL
    assert bridge.pings()
    controller.start()
    wait_until(controller.ready, 20, what="readiness")
    wait_until(lambda: (controller.get("/v1/plan") or {}).get("classes") == {"a": 0, "b": 1}, 10, what="the plan")
    wait_until(lambda: controller.get("/v1/status")["plan_causes"].get("period", 0) >= 2, 10, what="two periods")
    assert bridge.flows() == before
    assert controller.get("/v1/status")["flow_mods"] == 0
    assert all(bridge.ages()[port] > age + 1.0 for port, age in ages.items())


def test_it_stops_cleanly(controller: Controller, bridge: Bridge) -> None:
    wait_until(controller.ready, 20, what="readiness")
    assert controller.stop(signal.SIGTERM) == 0
    assert bridge.pings()
    controller.start()
    wait_until(controller.ready, 20, what="readiness")
    assert controller.stop(signal.SIGINT) == 0
    assert "Traceback" not in (controller.folder / "controller.log").read_text()
