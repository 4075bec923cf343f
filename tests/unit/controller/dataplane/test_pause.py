"""While it is paused, the gates of all switches are closed, and stay so whatever else happens."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from ryu.lib import hub

from controller.dataplane.plane import Dataplane
from evaluation.bench.support.waiting import wait_until
from tests.support.controller.dataplane.dataplane_world import (
    connect,
    held_rules,
    make_plane,
    ready,
    rules_for,
    wanted_rules,
)
from tests.support.controller.dataplane.fake_datapath import Behaviour, FakeDatapath


@pytest.fixture
def plane() -> Iterator[Dataplane]:
    made = make_plane(audit_seconds=0.05)
    yield made
    made.close()


def gate_is_open(switch: FakeDatapath) -> bool:
    return any(message.hard_timeout for message in switch.table.values())


def test_the_gates_close_and_the_rules_stay(plane: Dataplane) -> None:
    first, second = connect(plane, 1), connect(plane, 2)
    ready(plane, 1, 2)
    rules = rules_for({"a": 0}, 1, 2)
    plane.apply(rules)
    assert plane.renew_gates() == 2
    plane.set_paused(True)
    assert plane.renew_gates() == 0
    assert not gate_is_open(first) and not gate_is_open(second)
    changed = rules_for({"a": 1, "b": 0}, 1, 2)
    assert plane.apply(changed).errors == ()
    hub.sleep(0.3)
    assert not gate_is_open(first)
    assert held_rules(first) == wanted_rules(changed, 1)
    assert [status.ready for status in plane.status()] == [True, True]
    assert plane.status()[0].repairs == 0, "a gate that is closed on purpose is no change by somebody else"
    plane.set_paused(False)
    assert plane.renew_gates() == 2
    assert gate_is_open(first) and gate_is_open(second)


def test_a_switch_that_comes_back_with_an_open_gate_has_it_closed(plane: Dataplane) -> None:
    switch = connect(plane)
    ready(plane)
    assert gate_is_open(switch)
    plane.disconnected(switch)
    plane.set_paused(True)
    again = FakeDatapath(1, plane.deliver, Behaviour())
    again.table = dict(switch.table)
    plane.connected(again)
    ready(plane)
    wait_until(lambda: not gate_is_open(again), sleep=hub.sleep)


def test_the_gate_of_a_switch_that_is_not_ready_closes_too(plane: Dataplane) -> None:
    switch = connect(plane)
    ready(plane)
    switch.behaviour.obeys_queue = False
    plane.disconnected(switch)
    again = FakeDatapath(1, plane.deliver, switch.behaviour)
    again.table = dict(switch.table)
    plane.connected(again)
    wait_until(lambda: "ignores set_queue" in (plane.status()[0].reason or ""), sleep=hub.sleep)
    assert gate_is_open(again)
    plane.set_paused(True)
    plane.renew_gates()
    assert not gate_is_open(again)
    assert "ignores set_queue" in (plane.status()[0].reason or "")
