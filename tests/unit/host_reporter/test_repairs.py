"""When what somebody else has changed is put back, and that it is said; the thread that looks."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence

import pytest

from controller.wire import HostPlan
from evaluation.bench.support.waiting import wait_until
from host_reporter.marking.enforcement import Enforcement, Marking
from host_reporter.marking.reconciler import Reconciler
from host_reporter.notices import Notices
from host_reporter.repairs import CALM_SECONDS, LONGEST_WAIT_SECONDS, QUICK_REPAIRS, Pace, Repairs


def test_the_first_repairs_are_quick_and_those_after_them_ever_seldomer() -> None:
    pace, waits = Pace(), list[float]()
    now = 0.0
    while len(waits) < 14:
        assert pace.is_due(now)
        waits.append(pace.repaired(now))
        now += waits[-1]
        assert not waits[-1] or not pace.is_due(now - 0.1)
    assert waits[: QUICK_REPAIRS - 1] == [0.0] * (QUICK_REPAIRS - 1)
    assert waits[QUICK_REPAIRS - 1 : QUICK_REPAIRS + 2] == [2.0, 4.0, 8.0]
    assert waits[-1] == LONGEST_WAIT_SECONDS
    now += LONGEST_WAIT_SECONDS + CALM_SECONDS + 1
    assert pace.repaired(now) == 0.0, "after a calm a repair is quick again"


class Thing:
    """Something installed that is changed before each look."""

    def __init__(self) -> None:
        self.was: tuple[str, ...] = ("a rule was gone",)
        self.put = 0
        self.refuses = False

    def changed(self) -> Sequence[str]:
        return self.was

    def put_back(self) -> None:
        self.put += 1
        if self.refuses:
            raise ValueError("refused")


def test_each_repair_is_said_and_a_fight_is_slowed_down(caplog: pytest.LogCaptureFixture) -> None:
    now = 0.0
    repairs = Repairs("the thing", Notices(logging.getLogger("test")), lambda: now)
    thing = Thing()
    for _ in range(600):
        repairs.look(thing)
        now += 1.0
    said = [record.getMessage() for record in caplog.records]
    assert len(said) == thing.put < 25
    assert said[0] == "somebody else has changed the thing: a rule was gone; it is put back"
    assert said[QUICK_REPAIRS - 2] == said[0]
    assert "that was repair 5 in a row: the next one comes in 2 s at the earliest" in said[QUICK_REPAIRS - 1]
    now += 1000.0
    thing.was = ()
    assert repairs.look(thing)
    assert len(caplog.records) == len(said)


def test_what_is_refused_is_not_said_to_be_back_nor_tried_all_the_time(caplog: pytest.LogCaptureFixture) -> None:
    now = 0.0
    repairs = Repairs("the thing", Notices(logging.getLogger("test")), lambda: now)
    thing = Thing()
    thing.refuses = True
    refused = 0
    for _ in range(600):
        try:
            repairs.look(thing)
        except ValueError:
            refused += 1
        now += 1.0
    assert refused == thing.put < 25
    assert not caplog.records


class Looked(Enforcement):
    def __init__(self) -> None:
        super().__init__(None, None, Notices(logging.getLogger("test")))
        self.looks = 0
        self.fault: Exception | None = None

    def apply(self, plan: HostPlan, *, look: bool = True) -> bool:
        return True

    def reconcile(self) -> None:
        self.looks += 1
        if self.fault is not None:
            raise self.fault


def test_the_host_is_looked_at_once_a_period_which_may_change() -> None:
    enforcement, faults, told = Looked(), list[Exception](), list[Marking]()
    period = 0.01
    reconciler = Reconciler(enforcement, period=lambda: period, failed=faults.append, marked=told.append)
    reconciler.start()
    wait_until(lambda: enforcement.looks >= 5)
    period = 60.0
    reconciler.stop()
    looks = enforcement.looks
    time.sleep(0.1)
    assert enforcement.looks == looks
    assert set(told) == {Marking(jobs=False)}, "what is marked after each look"
    assert not faults


def test_a_fault_of_its_own_is_told() -> None:
    enforcement, faults, told = Looked(), list[Exception](), list[Marking]()
    enforcement.fault = ZeroDivisionError("a fault")
    reconciler = Reconciler(enforcement, period=lambda: 0.01, failed=faults.append, marked=told.append)
    reconciler.start()
    wait_until(lambda: faults)
    reconciler.stop()
    assert (enforcement.looks, told) == (1, [])
