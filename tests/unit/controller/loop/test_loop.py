from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import eventlet
import pytest

from controller.config.config import Config
from controller.dataplane.values import Applied, SwitchStatus
from controller.journal.store import Store
from controller.journal.writer import Journal
from controller.loop.loop import Loop
from controller.loop.metrics import Metrics, Samples, counted
from controller.model import Ordering, Snapshot, Switch
from controller.planner import PlanError
from controller.policies.base import Policy
from controller.policies.fifo import Fifo
from controller.refusals import Invalid, NotFound
from controller.registry.registry import Registry
from controller.rules.compiler import Match, Rule, Table
from controller.wire import HostReport, JobSpec, Settings


class MemoryNetwork:
    """A network of one switch whose table is a set; it can refuse, and it can be slow."""

    def __init__(self) -> None:
        self.held: frozenset[Rule] = frozenset()
        self.applied: list[frozenset[Rule]] = []
        self.gates = 0
        self.refusal: Exception | str | None = None
        self.listeners: list[Callable[[str], None]] = []

    def switches(self) -> tuple[Switch, ...]:
        return (Switch(1),)

    def apply(self, rules: frozenset[Rule]) -> Applied:
        if isinstance(self.refusal, Exception):
            raise self.refusal
        if self.refusal is not None:
            return Applied(0, (self.refusal,))
        changes = len(self.held ^ rules)
        self.held = rules
        self.applied.append(rules)
        return Applied(changes)

    def renew_gates(self) -> int:
        self.gates += 1
        return 1

    def subscribe(self, listener: Callable[[str], None]) -> None:
        self.listeners.append(listener)

    def status(self) -> tuple[SwitchStatus, ...]:
        return ()

    def class_bytes(self) -> dict[tuple[int, int | None], int]:
        return {}


def one_rule_a_job(_snapshot: Snapshot, classes: Mapping[str, int]) -> frozenset[Rule]:
    return frozenset(Rule(1, Table.CLASSIFY, 10 + k, Match(), job=job) for job, k in classes.items())


class Yard:
    """A running loop over a network in memory."""

    def __init__(self, journal: Path | None = None, **settings: Any) -> None:
        hosts = [{"name": f"h{i}", "address": f"10.0.0.{i}"} for i in (1, 2, 3)]
        body = {
            "hosts": hosts,
            "policy": "fifo",
            "period_seconds": 60.0,
            "gate_seconds": 121,
            "lease_seconds": 60.0,
        } | settings
        self.config = Config.model_validate(body)
        self.store = Store(journal)
        self.registry = Registry(self.config.host_map(), self.store, time.time)
        self.network = MemoryNetwork()
        self.metrics = Metrics()
        self.loop = Loop(
            self.registry, self.network, self.config, self.store, self.metrics, compile_rules=one_rule_a_job
        )
        self.journal = Journal(self.store)

    def start(self) -> Yard:
        self.journal.start()
        self.loop.start()
        eventually(lambda: self.loop.snapshot is not None)
        return self

    def start_refused(self) -> Yard:
        """Start over a network that refuses the first plan."""
        self.journal.start()
        self.loop.start()
        eventually(lambda: self.loop.failure is not None)
        return self

    def stop(self) -> None:
        self.loop.stop()
        self.journal.stop()

    def put(self, job: str, port: int, host: str = "h1") -> None:
        spec = {"tasks": [{"role": "ps", "host": host, "port": port}, {"role": "worker", "host": "h2"}]}
        self.registry.put_job(job, JobSpec.model_validate(spec), time.monotonic())

    def plans(self) -> int:
        return int(counted(self.metrics.plans))


def eventually(condition: Callable[[], bool], seconds: float = 5.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not come true in time"
        eventlet.sleep(0.002)


@pytest.fixture
def yard() -> Iterator[Yard]:
    running = Yard().start()
    yield running
    running.stop()


def test_a_registration_is_in_the_network_within_100_ms(yard: Yard) -> None:
    for i in range(60):
        yard.put(f"j{i}", 5000 + i)
        eventually(lambda i=i: f"j{i}" in {rule.job for rule in yard.network.held})
    latency = yard.metrics.change_to_rule.latency()
    assert latency.count == 60
    assert latency.p99 is not None
    assert 0.01 <= latency.p99 < 0.1


def test_what_comes_together_shares_a_plan(yard: Yard) -> None:
    before, plans = len(yard.network.applied), yard.plans()
    for i in range(10):
        yard.put(f"j{i}", 5000 + i)
    eventually(lambda: len(yard.network.held) == 10)
    assert len(yard.network.applied) == before + 1
    eventually(lambda: yard.plans() > plans)
    assert yard.plans() == plans + 1, "a plan is one, whatever it was made for"
    assert counted(yard.metrics.plan_causes.labels(cause="registration")) == 10
    assert yard.metrics.change_to_rule.latency().count == 10


def test_an_unchanged_plan_sends_nothing(yard: Yard) -> None:
    yard.put("a", 5000)
    eventually(lambda: len(yard.network.held) == 1)
    sent, plans, epoch = counted(yard.metrics.flow_mods), yard.plans(), yard.loop.epoch
    yard.network.listeners[0]("switch 1 is back")
    eventually(lambda: yard.plans() > plans)
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
        eventually(lambda: len(yard.loop.classes) == 2)
        assert yard.loop.classes == classes
        dry, _ = yard.loop.dry_run(Fifo())
        assert dry.classes == classes
    finally:
        yard.stop()


def test_a_plan_that_changes_no_rule_is_no_sample_of_its_way_to_the_rules(yard: Yard) -> None:
    yard.put("a", 5000)
    eventually(lambda: yard.metrics.report_to_plan.latency().count == 1)
    yard.put("a", 5001)
    eventually(lambda: yard.metrics.report_to_plan.latency().count == 2)
    assert yard.metrics.change_to_rule.latency().count == 1


def test_only_what_came_by_a_report_is_a_sample_of_report_to_rule(yard: Yard) -> None:
    def samples() -> tuple[int, int]:
        return yard.metrics.report_to_rule.latency().count, yard.metrics.change_to_rule.latency().count

    for i, job in enumerate("abc"):
        yard.put(job, 5000 + i)
    eventually(lambda: samples() == (0, 3))
    part = {"job": "a", "ended": True}
    report = HostReport.model_validate({"session": "s", "seq": 1, "sent_at": time.time(), "jobs": [part]})
    yard.registry.report("h1", report, time.monotonic())
    eventually(lambda: samples() == (1, 3))
    yard.registry.delete_job("b", time.monotonic())
    eventually(lambda: samples() == (1, 4))
    yard.put("d", 5005)
    eventually(lambda: samples() == (1, 5))
    yard.loop.change(Settings(policy="fair"), time.monotonic())
    eventually(lambda: samples() == (1, 6))
    yard.network.listeners[0]("switch 1 is back")
    plans = yard.plans()
    eventually(lambda: yard.plans() > plans)
    assert samples() == (1, 6)
    assert yard.metrics.report_to_plan.latency().count == 7


def test_the_period_plans_and_renews_by_itself() -> None:
    yard = Yard(period_seconds=0.1).start()
    try:
        plans, gates = yard.plans(), yard.network.gates
        eventually(lambda: yard.plans() >= plans + 3 and yard.network.gates >= gates + 3)
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
    eventually(lambda: len(yard.network.held) == 1)
    held = yard.network.held
    yard.loop.settings.policy = Faulty()
    for i in range(3):
        yard.put(f"b{i}", 6000 + i)
        eventually(lambda i=i: counted(yard.metrics.plan_errors) == i + 1)
    assert yard.network.held == held
    assert yard.loop.plan is not None
    assert yard.loop.failure == "PlanError: faulty left out a job after None: True"
    assert len([r for r in caplog.records if "faulty left out a job" in r.message]) == 1
    yard.loop.settings.policy = Fifo()
    yard.put("c", 7000)
    eventually(lambda: len(yard.network.held) == 5)
    assert yard.loop.failure is None


@pytest.mark.parametrize("refusal", ["switch 1: table full", RuntimeError("the cable was cut")])
def test_a_network_that_refuses_does_not_end_the_loop(yard: Yard, refusal: Any) -> None:
    yard.network.refusal = refusal
    yard.put("a", 5000)
    eventually(lambda: yard.loop.failure is not None)
    assert str(refusal) in str(yard.loop.failure)
    yard.network.refusal = None
    yard.put("b", 5001)
    eventually(lambda: len(yard.network.held) == 2)
    assert yard.loop.failure is None


def test_policy_and_period_change_at_run_time(yard: Yard) -> None:
    yard.put("a", 5000)
    yard.put("b", 5001)
    eventually(lambda: yard.loop.classes == {"a": 0, "b": 1})
    view = yard.loop.change(Settings(policy="fair", period_seconds=0.2), time.monotonic())
    assert (view.policy, view.period_seconds) == ("fair", 0.2)
    eventually(lambda: yard.loop.classes == {"a": 0, "b": 0})
    plans = yard.plans()
    eventually(lambda: yard.plans() > plans + 1, seconds=3.0)


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
    eventually(lambda: len(yard.network.held) == 2)
    applied = len(yard.network.applied)
    yard.loop.settings.change(Settings(policy="fair"))
    plan, _ = yard.loop.dry_run(Fifo())
    assert plan.classes == {"a": 0, "b": 1}
    assert len(yard.network.applied) == applied


def test_a_host_epoch_changes_with_its_own_marks_only(yard: Yard) -> None:
    plans = yard.loop.host_plans
    first, tag = plans.get("h3")
    yard.put("a", 5000)
    eventually(lambda: plans.get("h1")[0].epoch == 2)
    assert plans.get("h3") == (first, tag)
    assert plans.get("h1")[0].marks[0].job == "a"
    with pytest.raises(NotFound):
        plans.get("h9")


def test_a_long_poll_wakes_with_the_change(yard: Yard) -> None:
    _, tag = yard.loop.host_plans.get("h1")
    waiter = eventlet.spawn(yard.loop.host_plans.get, "h1", known=tag, wait=10.0)
    eventlet.sleep(0.05)
    assert not waiter.dead
    began = time.monotonic()
    yard.put("a", 5000)
    plan, new_tag = waiter.wait()
    assert time.monotonic() - began < 1.0
    assert plan.marks
    assert new_tag != tag
    assert yard.loop.host_plans.get("h1", known=new_tag, wait=0.05)[1] == new_tag


def test_a_restart_makes_the_same_plan_and_keeps_epochs_and_settings(tmp_path: Path) -> None:
    path = tmp_path / "j.db"
    before = Yard(path).start()
    before.put("a", 5000)
    before.put("b", 5001)
    before.loop.change(Settings(policy="las", policy_options={"factor": 3.0}, period_seconds=2.0), 0.0)
    eventually(lambda: before.loop.plan is not None and before.loop.plan.ordering.policy == "las")
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
            policy="las", policy_options={"first_seconds": 1.0, "factor": 3.0}, period_seconds=2.0
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
