"""Plans that switches refuse, and settings that would stop every plan."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import eventlet
import pytest

from controller.dataplane.values import Applied, SwitchChange
from controller.loop.metrics import counted
from controller.model import Ordering, Snapshot
from controller.policies.base import Policy
from controller.policies.fifo import Fifo
from controller.policies.registry import PolicyError, make
from controller.refusals import Invalid, Unavailable
from controller.rules.rule import Rule
from controller.wire import Settings
from evaluation.bench.support.waiting import wait_until
from tests.support.controller.yard import Yard


@pytest.fixture
def yard() -> Iterator[Yard]:
    running = Yard().start()
    yield running
    running.stop()


def test_a_refused_plan_is_not_in_force(tmp_path: Path) -> None:
    yard = Yard(tmp_path / "j.db").start()
    yard.put("a", 5000)
    wait_until(lambda: yard.loop.classes == {"a": 0}, sleep=eventlet.sleep)
    marks, tag = yard.loop.host_plans.get("h1")
    in_force, epoch = yard.loop.plan, yard.loop.epoch
    yard.network.refusal = "switch 1: table full"
    yard.put("b", 5001)
    wait_until(lambda: yard.loop.refusals == ("switch 1: table full",), sleep=eventlet.sleep)
    assert (yard.loop.plan, yard.loop.epoch) == (in_force, epoch)
    assert yard.loop.host_plans.get("h1") == (marks, tag)
    yard.stop()
    after = Yard(tmp_path / "j.db")
    assert after.loop.classes == {"a": 0}, "what the switches hold is what a restart begins with"
    after.network.refusal = "switch 1: table full"
    after.start_refused()
    try:
        # After the restart too, the hosts mark as the switches do.
        assert after.loop.host_plans.get("h1") == (marks, tag)
        after.network.refusal = None
        after.put("c", 5002)
        wait_until(lambda: after.loop.classes == {"a": 0, "b": 1, "c": 2}, sleep=eventlet.sleep)
        assert after.loop.refusals == ()
        assert {mark.job for mark in after.loop.host_plans.get("h1")[0].marks} == {"a", "b", "c"}
    finally:
        after.stop()


def test_hosts_follow_their_own_switch() -> None:
    hosts = [{"name": f"h{i}", "address": f"10.0.0.{i}", "switch": i, "port": 1} for i in (1, 2, 3)]
    yard = Yard(hosts=hosts).start()

    def one_refuses(_rules: frozenset[Rule]) -> Applied:
        changes = tuple(SwitchChange(dpid, 1, 0.0, ("2: table full",) if dpid == 2 else ()) for dpid in (1, 2, 3))
        return Applied(3, ("2: table full",), changes)

    try:
        yard.put("a", 5000)
        wait_until(lambda: yard.loop.classes == {"a": 0}, sleep=eventlet.sleep)
        yard.network.apply = one_refuses  # type: ignore[method-assign]
        yard.put("b", 5001)
        wait_until(lambda: bool(yard.loop.refusals), sleep=eventlet.sleep)
        told = {host: {mark.job for mark in yard.loop.host_plans.get(host)[0].marks} for host in ("h1", "h2")}
        assert told == {"h1": {"a", "b"}, "h2": {"a"}}
        assert yard.metrics.change_to_rule.latency().count == 1
    finally:
        yard.stop()


def test_what_a_refused_plan_was_made_for_took_until_a_later_one_was_in_force(yard: Yard) -> None:
    yard.network.refusal = "switch 1: table full"
    yard.put("a", 5000)
    wait_until(lambda: bool(yard.loop.refusals), sleep=eventlet.sleep)
    time.sleep(0.2)
    yard.network.refusal = None
    assert yard.metrics.change_to_rule.latency().count == 0
    yard.loop.trigger("switch", time.monotonic())
    wait_until(lambda: yard.loop.classes == {"a": 0}, sleep=eventlet.sleep)
    latency = yard.metrics.change_to_rule.latency()
    assert latency.count == 1
    assert latency.p50 is not None
    assert latency.p50 > 0.2
    yard.put("b", 5001)
    wait_until(lambda: yard.metrics.change_to_rule.latency().count == 2, sleep=eventlet.sleep)
    assert counted(yard.metrics.plan_causes.labels(cause="registration")) == 2, "each is told once"


class Alone(Fifo):
    """Takes a while, and notes whether another plan was made meanwhile."""

    def __init__(self) -> None:
        self.at_work = self.most = 0

    def order(self, snapshot: Snapshot, previous: Ordering | None) -> Ordering:
        self.at_work += 1
        self.most = max(self.most, self.at_work)
        time.sleep(0.05)
        self.at_work -= 1
        return super().order(snapshot, previous)


def test_no_two_plans_are_made_at_once(yard: Yard) -> None:
    policy = Alone()
    yard.loop.settings.policy = policy
    yard.put("a", 5000)
    asked = [eventlet.spawn(yard.loop.planning.dry_run, policy) for _ in range(3)]
    wait_until(lambda: yard.loop.classes == {"a": 0}, sleep=eventlet.sleep)
    for thread in asked:
        thread.wait()
    assert policy.most == 1


def test_a_plan_that_nobody_waits_for_any_more_is_ended_before_the_next(yard: Yard) -> None:
    policy = Alone()
    yard.put("a", 5000)
    turned_out = eventlet.spawn(yard.loop.planning.dry_run, policy)
    wait_until(lambda: policy.at_work == 1, sleep=eventlet.sleep)
    turned_out.kill()
    assert yard.loop.planning.dry_run(policy)[0].classes == {"a": 0}
    assert policy.most == 1


class Turns(Policy):
    """In the order of arrival, but each time it is asked the next job has the turn, and goes first."""

    name = "fifo"

    def order(self, snapshot: Snapshot, previous: Ordering | None) -> Ordering:
        turn = previous.memory.get("turn", 0.0) + 1 if previous is not None else 0.0
        jobs = sorted(job.id for job in snapshot.jobs)
        first = jobs[int(turn) % len(jobs) :] if jobs else []
        order = (*first, *jobs[: len(jobs) - len(first)])
        bands = tuple((job,) for job in order)
        return Ordering(self.name, bands, dict.fromkeys(jobs, "its turn"), memory={"turn": turn})


def test_while_one_switch_refuses_the_policy_goes_on_for_the_others(tmp_path: Path) -> None:
    yard = Yard(tmp_path / "j.db").start()
    plans: list[tuple[str, ...]] = []

    def one_refuses(rules: frozenset[Rule]) -> Applied:
        plans.append(tuple(str(rule.job) for rule in sorted(rules, key=lambda rule: rule.priority)))
        changes = tuple(SwitchChange(dpid, 1, 0.0, ("2: table full",) if dpid == 2 else ()) for dpid in (1, 2))
        return Applied(3, ("2: table full",), changes)

    def plan_again(of: Yard) -> None:
        before = len(plans)
        of.loop.trigger("switch", time.monotonic())
        wait_until(lambda: len(plans) > before, sleep=eventlet.sleep)

    for i, job in enumerate("abc"):
        yard.put(job, 5000 + i)
    wait_until(lambda: yard.loop.classes == {"a": 0, "b": 1, "c": 2}, sleep=eventlet.sleep)
    yard.loop.settings.policy = Turns()
    in_force = yard.loop.plan
    yard.network.apply = one_refuses  # type: ignore[method-assign]
    for _ in range(4):
        plan_again(yard)
    assert [plan[0] for plan in plans] == ["b", "c", "a", "b"], "not the same job each time"
    assert yard.loop.plan is in_force
    assert yard.loop.planning.dry_run(Turns())[0].ordering.bands[0] == ("c",), "what comes next, if it is asked now"
    yard.stop()
    after = Yard(tmp_path / "j.db")
    after.loop.settings.policy = Turns()
    after.network.apply = one_refuses  # type: ignore[method-assign]
    after.start_refused()
    try:
        assert after.loop.classes == {"a": 0, "b": 1, "c": 2}
        assert plans[-1][0] == "c", "nor does a restart set it back"
    finally:
        after.stop()


def test_before_any_plan_is_in_force_hosts_are_told_to_ask_again() -> None:
    yard = Yard()
    yard.loop.host_plans.first_plan_seconds = 0.05
    yard.network.refusal = "switch 1: table full"
    yard.start_refused()
    try:
        with pytest.raises(Unavailable, match="there is no plan yet"):
            yard.loop.host_plans.get("h1")
    finally:
        yard.stop()


class Brittle(Policy):
    """Takes its options, and fails on every job."""

    name = "fifo"

    def order(self, snapshot: Snapshot, previous: Ordering | None) -> Ordering:
        raise OverflowError(f"{len(snapshot.jobs)} jobs are too many")


@pytest.mark.parametrize(
    ("wanted", "field"),
    [
        ({"policy": "las"}, "policy"),
        ({"policy": "las", "policy_options": {"factor": 3.0}}, "policy_options"),
        ({"policy_options": {}}, "policy_options"),
    ],
)
def test_a_policy_that_would_stop_every_plan_is_not_taken(
    yard: Yard, monkeypatch: pytest.MonkeyPatch, wanted: dict[str, Any], field: str
) -> None:
    yard.put("a", 5000)
    wait_until(lambda: yard.loop.classes == {"a": 0}, sleep=eventlet.sleep)
    before = yard.loop.settings.view()
    monkeypatch.setattr("controller.loop.run_settings.make", lambda _name, _options: Brittle())
    with pytest.raises(Invalid, match="fails on the present jobs: OverflowError: 1 jobs are too many") as caught:
        yard.loop.change(Settings.model_validate(wanted), time.monotonic())
    assert [name for name, _ in caught.value.errors] == [field]
    assert yard.loop.settings.view() == before
    yard.put("b", 5001)
    wait_until(lambda: yard.loop.classes == {"a": 0, "b": 1}, sleep=eventlet.sleep)
    assert yard.loop.failure is None


HUGE = 10**400


@pytest.mark.parametrize(
    ("policy", "options"),
    [
        *(("jpas", {name: HUGE}) for name in ("margin", "uncertain", "new_job_seconds", "weight_95", "ageing_periods")),
        *(
            ("jpas", {name: True})
            for name in ("margin", "uncertain", "new_job_seconds", "weight_end", "ageing_periods")
        ),
        ("jpas", {"margin": float("nan")}),
        ("jpas", {"margin": "1"}),
        ("jpas", {"margin": -1}),
        ("jpas", {"uncertain": 0}),
        ("jpas", {"ageing_periods": 1.5}),
        ("jpas", {"variant": ["index"]}),
        *(("las", {name: value}) for name in ("factor", "first_seconds") for value in (HUGE, True, float("inf"), None)),
        ("las", {"factor": 1.0000000000000002}),
        ("las", {"first_seconds": 1e-300}),
    ],
)
def test_options_that_no_plan_could_use_are_refused(policy: str, options: dict[str, Any]) -> None:
    with pytest.raises(PolicyError, match=next(iter(options))):
        make(policy, options)


def test_a_period_longer_than_the_lease_is_refused() -> None:
    yard = Yard(period_seconds=1.0, gate_seconds=121, lease_seconds=5.0)
    with pytest.raises(Invalid, match="the hosts' lease of 5 s"):
        yard.loop.change(Settings(period_seconds=6.0), 0.0)
