"""Faults that must not end a switch's life: a gate that is refused, a database that answers nonsense, a slow switch."""

from __future__ import annotations

import gc
import time
import weakref
from typing import Any

import pytest
from ryu.lib import hub

from controller.dataplane import openflow
from controller.dataplane.channel import PARTS_AT_ONCE, SENT_AT_ONCE, Channel, in_turns
from controller.dataplane.queues import ovsdb, probe
from controller.dataplane.queues.ovsdb import Database
from controller.dataplane.queues.ovsdb_select import OvsdbError, State
from controller.rules.rule import Match, Rule, Table
from evaluation.bench.support.waiting import wait_until
from tests.support.controller.dataplane.dataplane_world import (
    connect,
    held_rules,
    make_plane,
    ready,
    reason_of,
    rules_for,
    wanted_rules,
)
from tests.support.controller.dataplane.fake_datapath import Behaviour, FakeDatapath


def gates(switch: FakeDatapath) -> list[Any]:
    return [message for message in switch.table.values() if message.hard_timeout]


def test_a_switch_that_refuses_the_gate_is_not_ready() -> None:
    plane = make_plane()
    switch = connect(plane, behaviour=Behaviour(refuses=lambda m: bool(m.hard_timeout)))
    reason_of(plane, "it refused the gate: OFPBAC_BAD_OUT_PORT")
    assert (plane.switches(), plane.renew_gates()) == ((), 0)
    switch.behaviour.refuses = lambda _: False
    ready(plane)
    assert len(gates(switch)) == 1
    plane.close()


def test_a_table_without_room_for_the_gate_is_said() -> None:
    plane = make_plane()
    switch = FakeDatapath(1, plane.deliver, Behaviour(table_size=len(wanted_rules(rules_for({})))))
    plane.connected(switch)
    assert "flow table is full" in reason_of(plane, "it refused the gate")
    plane.close()


def test_a_gate_that_is_refused_at_a_renewal_is_not_counted() -> None:
    plane = make_plane()
    switch, other = connect(plane, 1), connect(plane, 2)
    ready(plane, 1, 2)
    assert plane.renew_gates() == 2
    switch.behaviour.refuses = lambda m: bool(m.hard_timeout)
    assert plane.renew_gates() == 1
    assert "it refused the gate" in str(plane.status()[0].reason)
    assert [s.dpid for s in plane.switches()] == [2]
    assert len(gates(other)) == 1
    plane.close()


def test_a_silent_switch_holds_up_no_other_gate() -> None:
    plane = make_plane(answer_seconds=20.0, gate_seconds=1)
    silent, _ = connect(plane, 1), connect(plane, 2)
    ready(plane, 1, 2)
    silent.behaviour.silent = True
    began = time.monotonic()
    assert plane.renew_gates() == 1
    assert time.monotonic() - began < 20.0 / 2
    plane.close()


def test_a_fault_that_nobody_foresaw_is_said_and_tried_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    plane = make_plane(queues="managed")
    answers: list[Any] = [ZeroDivisionError("a fault of ours"), ZeroDivisionError("a fault of ours")]

    def read(self: Database) -> State:
        if answers:
            raise answers.pop()
        return dict.fromkeys(("Bridge", "Port", "Interface", "QoS", "Queue"), ())

    monkeypatch.setattr(Database, "read", read)
    connect(plane)
    reason_of(plane, "ZeroDivisionError: a fault of ours")
    reason_of(plane, "no bridge in")
    assert len([r for r in caplog.records if r.exc_info and "looked after" in r.message]) == 1
    plane.close()


def test_a_fault_in_one_change_is_an_error_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    plane = make_plane()
    connect(plane)
    ready(plane)
    (session,) = plane._sessions.values()
    monkeypatch.setattr(session._rules, "_become", lambda *_args, **_more: 1 / 0)
    assert plane.apply(rules_for({"a": 0})).errors == ("ZeroDivisionError: division by zero",)
    plane.close()


class Refusing:
    DEVNULL = PIPE = None

    @staticmethod
    def Popen(*_args: Any, **_more: Any) -> Any:  # noqa: N802 - the standard library's name
        raise BlockingIOError(11, "Resource temporarily unavailable")


def test_a_program_that_cannot_be_started_is_one_clear_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ovsdb, "subprocess", Refusing)
    with pytest.raises(OvsdbError, match="ovs-vsctl cannot be run: Resource temporarily unavailable"):
        Database("unix:/x").run("show")


def test_a_refusal_that_is_repeated_counts_once() -> None:
    class Loud(FakeDatapath):
        def _error(self, kind: int, code: int, xid: int) -> None:
            for _ in range(10_000):
                super()._error(kind, code, xid)

    switch = Loud(1, print, Behaviour(refuses=lambda _message: True))
    channel = Channel(switch, answer_seconds=5.0)
    switch.deliver = channel.deliver
    added = [openflow.add(switch, rule, 0) for rule in sorted(rules_for({"a": 0}), key=repr)[:2]]
    assert [refusal.index for refusal in channel.settle(added)] == [0, 1]


@pytest.mark.parametrize("count", [0, 1, SENT_AT_ONCE - 1, SENT_AT_ONCE, 2 * SENT_AT_ONCE + 1])
def test_a_change_goes_to_the_switch_in_pieces_and_each_refusal_names_its_message(count: int) -> None:
    class Counting(FakeDatapath):
        pieces = 0

        def send_msg(self, message: Any) -> bool:
            self.pieces += 1
            return super().send_msg(message)

    refused = {0, 1, SENT_AT_ONCE - 1, SENT_AT_ONCE, 2 * SENT_AT_ONCE}
    switch = Counting(1, print, Behaviour(refuses=lambda message: message.priority in refused))
    channel = Channel(switch, answer_seconds=5.0)
    switch.deliver = channel.deliver
    rules = (Rule(1, Table.PAIRS, number, Match(), goto=Table.FORWARD) for number in range(count))
    refusals, xids = channel.settle_many((openflow.add(switch, rule, 0) for rule in rules), count)
    assert [refusal.index for refusal in refusals] == sorted(number for number in refused if number < count)
    assert len(xids) == count
    assert [message.priority for message in switch.flow_mods()] == list(range(count))
    assert switch.pieces == count // SENT_AT_ONCE + 1


def test_who_hands_on_what_switches_tell_does_not_wait_for_a_refused_ones_end() -> None:
    class Slow(FakeDatapath):
        def close(self) -> None:
            hub.sleep(60)  # as Ryu does while its queue of events is full, which only the caller empties

    plane = make_plane()
    switch = connect(plane)
    ready(plane)
    switch.behaviour.silent = True
    with hub.Timeout(5):
        for _ in range(2):
            plane.connected(Slow(1, plane.deliver))
    plane.close()


def test_a_ports_name_forges_no_line_of_the_log() -> None:
    assert probe.port_name(b"eth0\0\0\0") == "eth0"
    assert probe.port_name("prüf-1\nswitch 1 is ready\x1b[2J\0x".encode()) == "prüf-1�switch 1 is ready�[2J"
    assert probe.port_name(b"\xff\xfe") == "��"


@pytest.mark.parametrize("bundles", [True, False])
def test_a_refused_plan_and_a_lost_rule_leave_a_switch_ready_with_the_old_rules(bundles: bool) -> None:
    plane = make_plane(audit_seconds=0.05)
    try:
        switch = connect(plane, behaviour=Behaviour(bundles=bundles))
        ready(plane)
        small = rules_for({"a": 0})
        assert plane.apply(small).errors == ()
        switch.behaviour.table_size = len(switch.table)
        assert "flow table is full" in plane.apply(rules_for({"a": 0, "b": 1, "c": 2})).errors[0]
        news: list[str] = []
        plane.subscribe(news.append)
        switch.remove(next(key for key, rule in switch.table.items() if rule.cookie & 0xFFFFFFFF))
        wait_until(lambda: held_rules(switch) == wanted_rules(small), sleep=hub.sleep)
        wait_until(lambda: plane.status()[0].repairs == 1, sleep=hub.sleep)
        hub.sleep(0.2)
        assert [(status.ready, status.reason) for status in plane.status()] == [(True, None)]
        assert news == []
        plane.disconnected(switch)
        back = connect(plane, behaviour=Behaviour(bundles=bundles, table_size=switch.behaviour.table_size))
        ready(plane)
        assert held_rules(back) == wanted_rules(small)
    finally:
        plane.close()


def test_a_switch_that_goes_away_in_a_change_comes_back_with_the_last_rules_that_it_took() -> None:
    plane = make_plane()
    try:
        switch = connect(plane)
        ready(plane)
        plane.apply(rules_for({"a": 0}))
        switch.behaviour.silent = True
        assert plane.apply(rules_for({"b": 0})).errors
        plane.disconnected(switch)
        assert [status.reason for status in plane.status()] == ["not connected"]
        back = connect(plane)
        ready(plane)
        assert held_rules(back) == wanted_rules(rules_for({"a": 0}))
    finally:
        plane.close()


def test_nothing_of_a_switch_that_has_disconnected_stays_until_a_collection() -> None:
    plane = make_plane()
    gc.collect()
    gc.disable()
    try:
        switch = connect(plane)
        ready(plane)
        plane.apply(rules_for({"a": 0}))
        plane.class_bytes()
        gone = [weakref.ref(plane._sessions[1]), weakref.ref(plane._sessions[1]._rules)]
        plane.disconnected(switch)
        hub.sleep(0.05)
        assert [each() for each in gone] == [None, None]
    finally:
        gc.enable()
        plane.close()


def test_others_go_on_while_a_long_answer_is_gone_through() -> None:
    turns: list[int] = []

    def other() -> None:
        while True:
            turns.append(len(turns))
            hub.sleep(0)

    thread = hub.spawn(other)
    parts = list(range(10 * PARTS_AT_ONCE))
    assert list(in_turns(parts)) == parts
    hub.kill(thread)
    assert len(turns) >= 10
