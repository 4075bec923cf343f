"""Following the host's plan: what is carried out when, and what happens without a controller."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from controller.wire import HostPlan
from evaluation.bench.support.hosts.reporter_server import ReporterServer
from evaluation.bench.support.waiting import wait_until
from host_reporter.marking.enforcement import Enforcement, Marking
from host_reporter.marking.rules_text import Sent
from host_reporter.notices import Notices
from host_reporter.uplink.connection import Address
from host_reporter.uplink.plan_follower import PlanFollower

MARK = {"job": "a", "service_class": 0, "dscp": 59, "local_port": 5000, "remote": "10.0.0.2"}


def plan(epoch: int, **values: Any) -> dict[str, Any]:
    base = {"host": "h1", "epoch": epoch, "policy": "fifo", "mode": "classified", "class_dscp": [59, 51]}
    return base | {"class_floor": 0.01, "other_floor": 0.1, "egress_bps": 1e9, "marks": [MARK]} | values


class Recorder(Enforcement):
    """Carries nothing out on this machine; tests/lab does that in a namespace."""

    def __init__(self, notices: Notices) -> None:
        super().__init__(None, None, notices)
        self.did: list[str] = []
        self.fault: Exception | None = None
        self.marks = 0
        self.marks_first = False
        self.sent: Callable[[], Mapping[str, Sent]] = lambda: {"a": Sent(1000)}

    def apply(self, plan: HostPlan, *, look: bool = True) -> bool:
        if self.fault is not None:
            raise self.fault
        self.did.append(f"apply {plan.epoch}")
        self.marks = len(plan.marks)
        return True

    def sent_bytes(self) -> Mapping[str, Sent]:
        return self.sent()

    @property
    def marking(self) -> Marking:
        return Marking(self.marks > 0, self.marks_first)

    @property
    def is_marking(self) -> bool:
        return self.marks > 0

    def open(self) -> None:
        self.did.append("open")
        self.marks = 0

    def remove(self) -> None:
        self.did.append("remove")


class Plans:
    """A server of plans and a follower of them. ``timing`` are the follower's times."""

    def __init__(self, **timing: float) -> None:
        self.server = ReporterServer()
        notices = Notices(logging.getLogger("test"))
        self.enforcement = Recorder(notices)
        self.counted: list[Mapping[str, Sent]] = []
        self.marked: list[Marking] = []
        self.faults: list[Exception] = []
        self.paused: list[bool] = []
        self.followed: list[int] = []
        self.follower = PlanFollower(
            Address(self.server.url),
            "h1",
            self.enforcement,
            notices,
            count=self.counted.append,
            marked=self.marked.append,
            failed=self.faults.append,
            paused=self.paused.append,
            followed=self._note,
            **timing,
        )

    @property
    def did(self) -> list[str]:
        return self.enforcement.did

    def _note(self, plan: HostPlan) -> None:
        self.followed.append(plan.epoch)


@pytest.fixture
def plans(request: pytest.FixtureRequest) -> Iterator[Plans]:
    """A follower with the times that ``follows_with`` gives."""
    built = Plans(**getattr(request, "param", {}))
    yield built
    built.follower.stop()
    built.server.stop()


def follows_with(**timing: float) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("plans", [timing], indirect=True, ids=[""])


Warnings = Callable[[str], int]


@pytest.fixture
def warned(caplog: pytest.LogCaptureFixture) -> Warnings:
    return lambda words: sum(words in record.message for record in caplog.records)


@follows_with(count_seconds=0.1, again_seconds=3600.0)
def test_a_plan_is_carried_out_at_once_and_not_again(plans: Plans) -> None:
    plans.server.set_plan(plan(1))
    plans.follower.start()
    wait_until(lambda: plans.did == ["apply 1"])
    assert plans.server.plan_waits.wait(60)
    assert plans.marked[-1] == Marking(True, False)
    plans.enforcement.marks_first = True
    plans.server.set_plan(plan(2))
    wait_until(lambda: plans.did == ["apply 1", "apply 2"], what="the new plan ends the wait")
    wait_until(lambda: plans.marked[-1] == Marking(True, True), what="what is marked is told after each plan")
    counted = len(plans.counted)
    wait_until(lambda: len(plans.counted) >= counted + 3, what="bytes are counted meanwhile")
    assert plans.counted[-1] == {"a": Sent(1000)}
    assert plans.did == ["apply 1", "apply 2"], "the same plan again changes nothing"


@follows_with(again_seconds=0.1)
def test_the_host_is_made_equal_to_its_plan_again_from_time_to_time(plans: Plans) -> None:
    plans.server.set_plan(plan(1, marks=[]))
    plans.follower.start()
    wait_until(lambda: plans.did.count("apply 1") >= 3)


def test_jobs_are_told_of_a_plan_before_it_is_carried_out(plans: Plans) -> None:
    plans.enforcement.fault = RuntimeError("a fault")
    plans.server.set_plan(plan(1))
    plans.follower.start()
    wait_until(lambda: plans.faults)
    assert plans.followed == [1]


@follows_with(again_seconds=0.1, stale_seconds=3600.0)
def test_the_plan_in_force_is_told_again_with_and_without_a_controller(plans: Plans) -> None:
    plans.server.set_plan(plan(1, marks=[]))
    plans.follower.start()
    wait_until(lambda: len(plans.followed) >= 4)
    plans.server.stop()
    told = len(plans.followed)
    wait_until(lambda: len(plans.followed) >= told + 2)
    assert set(plans.followed) == {1}


@follows_with(stale_seconds=0.1)
def test_an_old_plan_is_told_no_more(plans: Plans) -> None:
    plans.server.set_plan(plan(1))
    plans.follower.start()
    wait_until(lambda: plans.did == ["apply 1"])
    plans.server.stop()
    wait_until(lambda: "open" in plans.did)
    told = len(plans.followed)
    time.sleep(0.5)
    assert len(plans.followed) == told


@follows_with(stale_seconds=0.4)
def test_the_last_plan_stays_for_a_while_without_a_controller(plans: Plans, warned: Warnings) -> None:
    plans.server.set_plan(plan(1))
    plans.follower.start()
    wait_until(lambda: plans.did == ["apply 1"])
    plans.server.stop()
    wait_until(lambda: warned("stays in force") == 1)
    assert plans.did == ["apply 1"]
    wait_until(lambda: plans.did == ["apply 1", "open"], what="but an old order must not last for ever")
    plans.server.start()
    wait_until(lambda: plans.did == ["apply 1", "open", "apply 1"], what="the same plan again is carried out")


@follows_with(stale_seconds=0.1)
def test_a_paused_plan_stays_without_a_controller(plans: Plans, warned: Warnings) -> None:
    plans.server.set_plan(plan(1))
    plans.follower.start()
    wait_until(lambda: plans.did == ["apply 1"])
    plans.enforcement.sent = lambda: {"a": Sent(3000)}
    plans.server.set_plan(plan(1, paused=True))
    wait_until(lambda: plans.did == ["apply 1", "apply 1"])
    assert plans.counted[-1] == {"a": Sent(3000)}, "the counters go with the marks"
    assert plans.paused == [False, True]
    plans.server.stop()
    wait_until(lambda: warned("stays in force") == 1)
    time.sleep(0.5)
    # Without a plan the agent would clear programs' DSCPs, which is to change the host.
    assert "open" not in plans.did


def test_a_plan_that_is_not_understood_changes_nothing(plans: Plans, warned: Warnings) -> None:
    plans.server.set_plan(plan(1))
    plans.follower.start()
    wait_until(lambda: plans.did == ["apply 1"])
    plans.server.set_plan(plan(2, mode="other"))
    wait_until(lambda: warned("not understood: mode") == 1)
    plans.server.set_plan(plan(3))
    wait_until(lambda: plans.did == ["apply 1", "apply 3"])


@follows_with(stop_seconds=60.0, count_seconds=3600.0)
def test_the_end_is_quick_while_it_waits_and_takes_everything_away(plans: Plans) -> None:
    plans.server.set_plan(plan(1))
    plans.follower.start()
    assert plans.server.plan_waits.wait(60)
    plans.follower.stop()
    assert plans.did == ["apply 1", "remove"], "it waits for no answer, which would come after an hour"
    assert plans.faults == []


def test_at_the_end_it_counts_once_more_before_the_counters_go(plans: Plans) -> None:
    plans.server.set_plan(plan(1))
    plans.follower.start()
    wait_until(lambda: plans.counted == [{"a": Sent(1000)}])

    def sent_bytes() -> Mapping[str, Sent]:
        plans.did.append("count")
        return {"a": Sent(2000)}

    plans.enforcement.sent = sent_bytes
    plans.follower.stop()
    assert plans.counted[1:] == [{"a": Sent(2000)}]
    assert plans.did == ["apply 1", "count", "remove"]


def test_counters_that_cannot_be_read_at_the_end_do_not_keep_the_marks(plans: Plans) -> None:
    plans.server.set_plan(plan(1))
    plans.follower.start()
    wait_until(lambda: plans.counted)

    def sent_bytes() -> Mapping[str, Sent]:
        raise RuntimeError("a fault")

    plans.enforcement.sent = sent_bytes
    plans.follower.stop()
    assert plans.did == ["apply 1", "remove"]
    assert [str(fault) for fault in plans.faults] == ["a fault"]


def test_a_fault_of_its_own_ends_it_and_takes_everything_away(plans: Plans) -> None:
    plans.enforcement.fault = RuntimeError("a fault")
    plans.server.set_plan(plan(1))
    plans.follower.start()
    wait_until(lambda: plans.did == ["remove"])
    assert [str(fault) for fault in plans.faults] == ["a fault"]
