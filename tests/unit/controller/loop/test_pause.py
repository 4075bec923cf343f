"""An operator pauses: nothing is enforced any more, and everything is still planned."""

from __future__ import annotations

from pathlib import Path

import eventlet
import pytest

from controller.refusals import Invalid
from controller.wire import Settings
from evaluation.bench.support.waiting import wait_until
from tests.support.controller.yard import Yard


def test_plans_go_on_while_gates_and_hosts_are_told_at_once() -> None:
    yard = Yard().start()
    try:
        yard.put("a", 5000)
        wait_until(lambda: yard.loop.classes == {"a": 0}, sleep=eventlet.sleep)
        plan, tag = yard.loop.host_plans.get("h1")
        assert plan is not None and not plan.paused
        waiter = eventlet.spawn(yard.loop.host_plans.get, "h1", known=tag, wait=30.0)
        eventlet.sleep(0)
        assert yard.loop.change(Settings(pause=True), 0.0).pause
        paused, paused_tag = waiter.wait()
        assert paused.paused and paused_tag != tag
        assert yard.network.is_paused
        gates = yard.network.gates
        yard.put("b", 5001)
        wait_until(lambda: yard.loop.classes == {"a": 0, "b": 1}, sleep=eventlet.sleep)
        assert yard.network.gates == gates
        assert yard.loop.change(Settings(pause=False), 0.0).pause is False
        wait_until(lambda: yard.network.gates > gates, sleep=eventlet.sleep, what="a gate before the next period")
        plan, _ = yard.loop.host_plans.get("h1")
        assert plan is not None and not plan.paused
    finally:
        yard.stop()


def test_a_pause_during_a_renewal_of_the_gates_does_not_wait_for_the_next_period(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    yard = Yard()
    renewals: list[bool] = []

    def slow() -> int:
        renewals.append(yard.network.is_paused)
        eventlet.sleep(0.3)
        return 1

    monkeypatch.setattr(yard.network, "renew_gates", slow)
    yard.start()
    try:
        wait_until(lambda: renewals == [False], sleep=eventlet.sleep)
        yard.loop.change(Settings(pause=True), 0.0)
        wait_until(lambda: renewals == [False, True], 5, sleep=eventlet.sleep)
    finally:
        yard.stop()


def test_a_pause_outlives_restarts_and_changes_of_the_settings_file(tmp_path: Path) -> None:
    path = tmp_path / "j.db"
    before = Yard(path).start()
    before.loop.change(Settings(pause=True), 0.0)
    before.stop()
    after = Yard(path, policy="las").start()
    assert after.network.is_paused
    plan, _ = after.loop.host_plans.get("h1")
    assert plan is not None and plan.paused
    after.loop.change(Settings(pause=False), 0.0)
    after.stop()
    last = Yard(path)
    assert not last.loop.settings.is_paused
    last.store.close()


def test_a_refused_change_pauses_nothing() -> None:
    yard = Yard().start()
    try:
        with pytest.raises(Invalid):
            yard.loop.change(Settings(pause=True, period_seconds=3000.0), 0.0)
        assert not yard.network.is_paused
    finally:
        yard.stop()


def test_a_journal_that_was_degraded_gets_the_pause_with_the_rest(tmp_path: Path) -> None:
    path = tmp_path / "later" / "j.db"
    before = Yard(path).start()
    before.loop.change(Settings(pause=True), 0.0)
    path.parent.mkdir()
    before.stop()
    after = Yard(path)
    assert after.loop.settings.is_paused
    after.store.close()
