from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import eventlet
import pytest

from controller.loop.loop import COALESCE_SECONDS
from controller.loop.metrics import Metrics, Samples, counted
from controller.model import Ordering, Snapshot
from controller.planner import PlanError
from controller.policies.base import Policy
from controller.policies.fifo import Fifo
from controller.refusals import Invalid, NotFound
from controller.wire import HostReport, JobSpec, Settings
from evaluation.bench.support.waiting import wait_until
from tests.support.controller.yard import Yard


@pytest.fixture
def yard() -> Iterator[Yard]:
    running = Yard().start()
    yield running
    running.stop()


def test_each_registration_is_soon_in_the_network_and_a_sample(yard: Yard) -> None:
    for i in range(60):
        yard.put(f"j{i}", 5000 + i)
        wait_until(lambda i=i: f"j{i}" in {rule.job for rule in yard.network.held}, sleep=eventlet.sleep)
    latency = yard.metrics.change_to_rule.latency()
    assert latency.count == 60
    assert latency.p50 is not None and latency.p50 >= COALESCE_SECONDS


def test_what_comes_together_shares_a_plan(yard: Yard) -> None:
    before, plans = len(yard.network.applied), yard.plans()
    for i in range(10):
        yard.put(f"j{i}", 5000 + i)
    wait_until(lambda: len(yard.network.held) == 10, sleep=eventlet.sleep)
    assert len(yard.network.applied) == before + 1
    wait_until(lambda: yard.plans() > plans, sleep=eventlet.sleep)
    assert yard.plans() == plans + 1, "a plan is one, whatever it was made for"
    assert counted(yard.metrics.plan_causes.labels(cause="registration")) == 10
    assert yard.metrics.change_to_rule.latency().count == 10


def test_an_unchanged_plan_sends_nothing(yard: Yard) -> None:
    yard.put("a", 5000)
    wait_until(lambda: len(yard.network.held) == 1, sleep=eventlet.sleep)
    sent, plans, epoch = counted(yard.metrics.flow_mods), yard.plans(), yard.loop.epoch
    yard.network.listeners[0]("switch 1 is back")
    wait_until(lambda: yard.plans() > plans, sleep=eventlet.sleep)
    assert counted(yard.metrics.flow_mods) == sent
    assert yard.loop.epoch == epoch
    assert yard.metrics.change_to_rule.latency().count == 1


@pytest.mark.parametrize(("rate_bps", "classes"), [(5e8, {"a": 0, "b": 1}), (None, {"a": 0, "b": 0})])
def test_jobs_that_share_only_a_link_between_switches_are_kept_apart_there(rate_bps, classes) -> None:
    hosts = [{"name": f"h{i}", "address": f"10.0.0.{i}", "switch": 1 + i % 2, "port": i} for i in (1, 2, 3, 4)]
    links = [{"a": 1, "a_port": 9, "b": 2, "b_port": 9, "rate_bps": rate_bps}]
    yard = Yard(forwarding="paths", hosts=hosts, links=links).start()
    try:
        for job, src, dst in (("a", "h2", "h1"), ("b", "h4", "h3")):
            spec = {"demand": [{"src": src, "dst": dst, "bytes": 1e6}]}
            yard.registry.put_job(job, JobSpec.model_validate(spec), time.monotonic())
        wait_until(lambda: len(yard.loop.classes) == 2, sleep=eventlet.sleep)
        assert yard.loop.classes == classes
        dry, _ = yard.loop.planning.dry_run(Fifo())
        assert dry.classes == classes
    finally:
        yard.stop()


def test_a_plan_that_changes_no_rule_is_no_sample_of_its_way_to_the_rules(yard: Yard) -> None:
    yard.put("a", 5000)
    wait_until(lambda: yard.metrics.report_to_plan.latency().count == 1, sleep=eventlet.sleep)
    yard.put("a", 5001)
    wait_until(lambda: yard.metrics.report_to_plan.latency().count == 2, sleep=eventlet.sleep)
    assert yard.metrics.change_to_rule.latency().count == 1


def test_only_what_came_by_a_report_is_a_sample_of_report_to_rule(yard: Yard) -> None:
    def samples() -> tuple[int, int]:
        return yard.metrics.report_to_rule.latency().count, yard.metrics.change_to_rule.latency().count

    for i, job in enumerate("abc"):
        yard.put(job, 5000 + i)
    wait_until(lambda: samples() == (0, 3), sleep=eventlet.sleep)
    part = {"job": "a", "ended": True}
    report = HostReport.model_validate({"session": "s", "seq": 1, "sent_at": time.time(), "jobs": [part]})
    yard.registry.report("h1", report, time.monotonic())
    wait_until(lambda: samples() == (1, 3), sleep=eventlet.sleep)
    yard.registry.delete_job("b", time.monotonic())
    wait_until(lambda: samples() == (1, 4), sleep=eventlet.sleep)
    yard.put("d", 5005)
    wait_until(lambda: samples() == (1, 5), sleep=eventlet.sleep)
    yard.loop.change(Settings(policy="fair"), time.monotonic())
    wait_until(lambda: samples() == (1, 6), sleep=eventlet.sleep)
    yard.network.listeners[0]("switch 1 is back")
    plans = yard.plans()
    wait_until(lambda: yard.plans() > plans, sleep=eventlet.sleep)
    assert samples() == (1, 6)
    assert yard.metrics.report_to_plan.latency().count == 7


@pytest.mark.parametrize(
    ("budget", "said"),
    [
        (10, None),
        (8, "hosts with jobs need 10 rules at a switch beside 0 for flows, table_budget is 8: "
            "traffic between hosts of different jobs is other traffic"),
        (6, "hosts that share jobs need 7 rules at a switch beside 0 for flows, table_budget is 6: "
            "what their jobs send in other ways than TCP is other traffic"),
    ],
)  # fmt: skip
def test_hosts_for_which_switches_have_no_room_are_said(
    budget: int, said: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    yard = Yard(mode="marked", table_budget=budget).start()
    try:
        yard.put("a", 5000, "h1")
        yard.put("b", 5000, "h3")
        wait_until(lambda: {"a", "b"} <= yard.loop.classes.keys(), sleep=eventlet.sleep)
        assert yard.loop.planning.left_out == said
        assert (said in caplog.messages) is (said is not None)
    finally:
        yard.stop()


def test_the_period_plans_and_renews_by_itself() -> None:
    yard = Yard(period_seconds=0.1).start()
    try:
        plans, gates = yard.plans(), yard.network.gates
        wait_until(lambda: yard.plans() >= plans + 3 and yard.network.gates >= gates + 3, sleep=eventlet.sleep)
        assert counted(yard.metrics.gate_renewals) == yard.network.gates
        assert counted(yard.metrics.flow_mods) == 0
    finally:
        yard.stop()


class Faulty(Policy):
    name = "faulty"

    def order(self, snapshot: Snapshot, previous: Ordering | None) -> Ordering:
        raise PlanError(f"faulty left out a job after {previous and previous.policy}: {len(snapshot.jobs) > 0}")


def test_a_policy_that_fails_leaves_the_last_plan(yard: Yard, caplog: pytest.LogCaptureFixture) -> None:
    yard.put("a", 5000)
    wait_until(lambda: len(yard.network.held) == 1, sleep=eventlet.sleep)
    held = yard.network.held
    yard.loop.settings.policy = Faulty()
    for i in range(3):
        yard.put(f"b{i}", 6000 + i)
        wait_until(lambda i=i: counted(yard.metrics.plan_errors) == i + 1, sleep=eventlet.sleep)
    assert yard.network.held == held
    assert yard.loop.plan is not None
    assert yard.loop.failure == "PlanError: faulty left out a job after None: True"
    assert len([r for r in caplog.records if "faulty left out a job" in r.message]) == 1
    yard.loop.settings.policy = Fifo()
    yard.put("c", 7000)
    wait_until(lambda: len(yard.network.held) == 5, sleep=eventlet.sleep)
    assert yard.loop.failure is None


@pytest.mark.parametrize("refusal", ["switch 1: table full", RuntimeError("the cable was cut")])
def test_a_network_that_refuses_does_not_end_the_loop(yard: Yard, refusal: Any) -> None:
    yard.network.refusal = refusal
    yard.put("a", 5000)
    wait_until(lambda: yard.loop.failure is not None, sleep=eventlet.sleep)
    assert str(refusal) in str(yard.loop.failure)
    yard.network.refusal = None
    yard.put("b", 5001)
    wait_until(lambda: len(yard.network.held) == 2, sleep=eventlet.sleep)
    assert yard.loop.failure is None


def test_policy_and_period_change_at_run_time(yard: Yard) -> None:
    yard.put("a", 5000)
    yard.put("b", 5001)
    wait_until(lambda: yard.loop.classes == {"a": 0, "b": 1}, sleep=eventlet.sleep)
    view = yard.loop.change(Settings(policy="fair", period_seconds=0.2), time.monotonic())
    assert (view.policy, view.period_seconds) == ("fair", 0.2)
    wait_until(lambda: yard.loop.classes == {"a": 0, "b": 0}, sleep=eventlet.sleep)
    plans = yard.plans()
    wait_until(lambda: yard.plans() > plans + 1, seconds=3.0, sleep=eventlet.sleep)


@pytest.mark.parametrize(
    ("wanted", "field"),
    [
        ({"policy": "nope"}, "policy"),
        ({"policy": "fair", "policy_options": {"x": 1}}, "policy_options"),
        ({"period_seconds": 100.0}, "period_seconds"),
    ],
)
def test_a_bad_change_changes_nothing(yard: Yard, wanted: dict[str, Any], field: str) -> None:
    before = yard.loop.settings.view()
    with pytest.raises(Invalid) as caught:
        yard.loop.change(Settings.model_validate(wanted), time.monotonic())
    assert caught.value.errors[0][0] == field
    assert yard.loop.settings.view() == before


def test_a_dry_run_applies_nothing(yard: Yard) -> None:
    yard.put("a", 5000)
    yard.put("b", 5001)
    wait_until(lambda: len(yard.network.held) == 2, sleep=eventlet.sleep)
    applied = len(yard.network.applied)
    yard.loop.settings.change(Settings(policy="fair"))
    plan, _ = yard.loop.planning.dry_run(Fifo())
    assert plan.classes == {"a": 0, "b": 1}
    assert len(yard.network.applied) == applied


def test_a_host_epoch_changes_with_its_own_marks_only(yard: Yard) -> None:
    plans = yard.loop.host_plans
    first, tag = plans.get("h3")
    yard.put("a", 5000)
    wait_until(lambda: plans.get("h1")[0].epoch == 2, sleep=eventlet.sleep)
    assert plans.get("h3") == (first, tag)
    assert plans.get("h1")[0].marks[0].job == "a"
    with pytest.raises(NotFound):
        plans.get("h9")


def test_a_long_poll_wakes_with_the_change(yard: Yard) -> None:
    _, tag = yard.loop.host_plans.get("h1")
    waiter = eventlet.spawn(yard.loop.host_plans.get, "h1", known=tag, wait=3600.0)
    eventlet.sleep(0.05)
    assert not waiter.dead
    yard.put("a", 5000)
    wait_until(lambda: waiter.dead, sleep=eventlet.sleep, what="it does not wait until its time is over")
    plan, new_tag = waiter.wait()
    assert plan.marks
    assert new_tag != tag
    assert yard.loop.host_plans.get("h1", known=new_tag, wait=0.05)[1] == new_tag


def test_a_restart_makes_the_same_plan_and_keeps_epochs_and_settings(tmp_path: Path) -> None:
    path = tmp_path / "j.db"
    before = Yard(path).start()
    before.put("a", 5000)
    before.put("b", 5001)
    before.loop.change(Settings(policy="las", policy_options={"factor": 3.0}, period_seconds=2.0), 0.0)
    wait_until(lambda: before.loop.plan is not None and before.loop.plan.ordering.policy == "las", sleep=eventlet.sleep)
    tags = {host: before.loop.host_plans.get(host) for host in ("h1", "h2", "h3")}
    held, epoch, memory = before.network.held, before.loop.epoch, before.loop.plan.ordering.memory
    before.stop()
    after = Yard(path)
    assert after.loop.plan is not None
    assert after.loop.plan.ordering.memory == memory
    after.start()
    try:
        assert {host: after.loop.host_plans.get(host) for host in tags} == tags
        assert after.network.held == held
        assert after.loop.epoch == epoch
        assert after.loop.settings.view() == Settings(
            policy="las", policy_options={"first_seconds": 1.0, "factor": 3.0}, period_seconds=2.0, pause=False
        )
    finally:
        after.stop()


def test_a_changed_file_wins_over_what_was_set_at_run_time(tmp_path: Path) -> None:
    before = Yard(tmp_path / "j.db").start()
    before.loop.change(Settings(policy="fair"), 0.0)
    before.stop()
    after = Yard(tmp_path / "j.db", policy="las")
    assert after.loop.settings.policy.name == "las"
    after.store.close()


def test_quantiles_are_exact() -> None:
    samples: Samples = Metrics().report_to_rule
    assert samples.latency().p50 is None
    for i in range(1, 101):
        samples.add(i / 1000)
    latency = samples.latency()
    assert (latency.count, latency.p50, latency.p99, latency.max) == (100, 0.050, 0.099, 0.1)
