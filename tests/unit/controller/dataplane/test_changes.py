"""Somebody else deletes or changes what a switch holds: what notices it, how soon, and what is done."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from ryu.controller import ofp_event
from ryu.lib import hub
from ryu.ofproto import ofproto_v1_3 as ofp
from ryu.ofproto import ofproto_v1_3_parser as parser

from controller.app import Trainyard
from controller.dataplane.plane import Dataplane
from controller.dataplane.rule_table import MOST_UNLIKE
from controller.dataplane.values import Settings
from controller.rules.rule import Table
from evaluation.bench.support.waiting import wait_until
from tests.support.controller.dataplane.dataplane_world import (
    connect,
    held_rules,
    make_plane,
    ready,
    rules_for,
    wanted_rules,
)
from tests.support.controller.dataplane.fake_datapath import Behaviour, FakeDatapath, Key

JOBS = {"a": 0, "b": 1, "c": 2}
DEFAULT = Settings().audit_seconds


@pytest.fixture
def plane() -> Iterator[Dataplane]:
    """One that looks at rules as often as the product does."""
    made = make_plane(audit_seconds=DEFAULT)
    yield made
    made.close()


@pytest.fixture
def seldom() -> Iterator[Dataplane]:
    """One that looks only when it is told of something."""
    made = make_plane(audit_seconds=600.0)
    yield made
    made.close()


def started(plane: Dataplane, **more: Any) -> FakeDatapath:
    switch = connect(plane, **more)
    ready(plane)
    assert plane.apply(rules_for(JOBS)).errors == ()
    switch.messages.clear()
    return switch


def keys(switch: FakeDatapath, table: int, *, of_jobs: bool) -> list[Key]:
    found = [key for key, m in switch.table.items() if m.table_id == table and not m.hard_timeout]
    return [key for key in found if bool(switch.table[key].cookie & 0xFFFFFFFF) is of_jobs]


def gate(switch: FakeDatapath) -> Key | None:
    return next((key for key, m in switch.table.items() if m.hard_timeout), None)


def is_whole(switch: FakeDatapath) -> bool:
    return held_rules(switch) == wanted_rules(rules_for(JOBS)) and gate(switch) is not None


def repairs(plane: Dataplane) -> int:
    return plane.status()[0].repairs


@pytest.mark.parametrize("table", [Table.GATE, Table.CLASSIFY, Table.FORWARD])
def test_a_lost_rule_of_the_pipeline_is_back_at_once(seldom: Dataplane, table: Table) -> None:
    switch = started(seldom)
    lost = keys(switch, table, of_jobs=False)[:1]
    switch.remove(*lost)
    wait_until(lambda: is_whole(switch), sleep=hub.sleep)
    assert len(switch.flow_mods()) == 1, "the rest stays as it is"
    assert repairs(seldom) == 1


def test_a_gate_that_somebody_deletes_is_opened_at_once(seldom: Dataplane) -> None:
    switch = started(seldom)
    switch.remove(*filter(None, [gate(switch)]))
    wait_until(lambda: is_whole(switch), sleep=hub.sleep)
    assert switch.flow_mods() == []
    assert "the gate had been deleted" in seldom.status()[0].problems[0]


def test_a_gate_that_times_out_is_not_opened_by_a_look() -> None:
    plane = make_plane(audit_seconds=0.02, gate_seconds=1)
    switch = started(plane)
    plane.renew_gates()
    wait_until(lambda: plane.status()[0].ready, sleep=hub.sleep)
    hub.sleep(1.05)
    switch.remove(*filter(None, [gate(switch)]), reason=ofp.OFPRR_HARD_TIMEOUT)
    hub.sleep(0.1)
    assert gate(switch) is None, "only the loop keeps it open, so it closes when the loop stands still"
    assert (repairs(plane), plane.status()[0].ready) == (0, True)
    plane.close()


def test_a_lost_rule_of_a_job_is_back_after_the_next_audit(plane: Dataplane) -> None:
    switch = started(plane)
    switch.remove(keys(switch, Table.CLASSIFY, of_jobs=True)[0])
    wait_until(lambda: is_whole(switch), sleep=hub.sleep)
    assert len(switch.flow_mods()) == 1


def test_an_emptied_table_forwards_again_before_it_orders_again(seldom: Dataplane) -> None:
    many = rules_for({chr(0x100 + i): i % 7 for i in range(200)})
    switch = connect(seldom)
    ready(seldom)
    seldom.apply(many)
    switch.messages.clear()
    switch.remove()
    wait_until(lambda: held_rules(switch) == wanted_rules(many) and gate(switch) is not None, sleep=hub.sleep)
    tags = [m.cookie & 0xFFFFFFFF for m in switch.flow_mods()]
    pipeline = tags.count(0)
    assert pipeline == len(rules_for({}))
    assert not any(tags[:pipeline])
    commits = [i for i, m in enumerate(switch.messages) if getattr(m, "type", None) == ofp.ONF_BCT_COMMIT_REQUEST]
    assert len(commits) == 2, "the pipeline does not wait for the jobs' rules"
    assert repairs(seldom) == 1


@pytest.mark.parametrize("of_jobs", [True, False])
def test_a_rule_that_somebody_changes_in_its_place_is_put_back(plane: Dataplane, of_jobs: bool) -> None:
    switch = started(plane)
    key = keys(switch, Table.CLASSIFY, of_jobs=of_jobs)[0]
    good = switch.table[key]
    switch.table[key] = parser.OFPFlowMod(
        switch, cookie=good.cookie, table_id=good.table_id, priority=good.priority, match=good.match, instructions=[]
    )
    wait_until(lambda: switch.table[key].instructions, sleep=hub.sleep)
    assert len(switch.flow_mods()) == 1
    assert repairs(plane) == 1


def test_a_gate_that_drops_is_put_back(plane: Dataplane) -> None:
    switch = started(plane)
    key = gate(switch)
    assert key is not None
    switch.table[key].instructions = []
    wait_until(lambda: switch.table[key].instructions, sleep=hub.sleep)


def test_a_rule_of_somebody_else_in_the_place_of_ours_goes(plane: Dataplane) -> None:
    switch = started(plane)
    key = keys(switch, Table.FORWARD, of_jobs=False)[0]
    good = switch.table[key]
    switch.table[key] = parser.OFPFlowMod(
        switch, cookie=0xBEEF, table_id=good.table_id, priority=good.priority, match=good.match, instructions=[]
    )
    wait_until(lambda: is_whole(switch), sleep=hub.sleep)


def test_our_own_changes_are_no_losses_and_unchanged_rules_cost_nothing() -> None:
    plane = make_plane(audit_seconds=0.02)
    switch = connect(plane)
    ready(plane)
    few = frozenset(rule for rule in rules_for({}) if rule.match.ip_dscp is None)
    for rules in (rules_for(JOBS), few, rules_for({"b": 4}), rules_for(JOBS)):
        assert plane.apply(rules).errors == ()
        hub.sleep(0.05)
    switch.messages.clear()
    plane.renew_gates()
    wait_until(
        lambda: sum(isinstance(m, parser.OFPAggregateStatsRequest) for m in switch.messages) > 3, sleep=hub.sleep
    )
    assert switch.flow_mods() == []
    assert (repairs(plane), plane.status()[0].problems) == (0, ())
    plane.close()


def test_a_storm_of_messages_is_one_look(seldom: Dataplane) -> None:
    switch = started(seldom)
    lost = keys(switch, Table.FORWARD, of_jobs=False)[0]
    told = parser.OFPFlowRemoved(switch, cookie=switch.table[lost].cookie, match=parser.OFPMatch())
    told.xid = 0
    switch.remove(lost)
    for _ in range(5000):
        seldom.deliver(told)
    wait_until(lambda: is_whole(switch), sleep=hub.sleep)
    hub.sleep(0.1)
    asked = [m for m in switch.messages if isinstance(m, parser.OFPAggregateStatsRequest)]
    assert len(asked) <= 2
    assert (len(switch.flow_mods()), repairs(seldom)) == (1, 1)


def test_the_app_hands_over_what_switches_tell_of_lost_rules() -> None:
    assert ofp_event.EventOFPFlowRemoved in Trainyard._on_answer.callers


def test_what_others_lose_is_not_our_concern(seldom: Dataplane) -> None:
    switch = started(seldom)
    told = parser.OFPFlowRemoved(switch, cookie=0xBEEF, match=parser.OFPMatch())
    told.xid = 0
    seldom.deliver(told)
    hub.sleep(0.05)
    assert switch.messages == []


def test_a_repair_that_is_refused_is_said(seldom: Dataplane) -> None:
    switch = started(seldom)
    switch.behaviour.refuses = lambda _: True
    switch.remove()
    wait_until(lambda: not seldom.switches(), sleep=hub.sleep)
    assert "refused a rule in table 6" in str(seldom.status()[0].reason)
    assert repairs(seldom) == 0, "nothing was put back"
    hub.sleep(0.2)
    assert seldom.switches() == (), "it is asked again, and refuses again"
    switch.behaviour.refuses = lambda _: False
    wait_until(lambda: is_whole(switch), sleep=hub.sleep)
    ready(seldom)


def test_before_the_first_plan_only_the_pipeline_is_put_back() -> None:
    first = make_plane()
    switch = started(first)
    first.close()
    successor = make_plane(audit_seconds=600.0)
    switch.deliver = successor.deliver
    successor.connected(switch)
    ready(successor)
    switch.remove(keys(switch, Table.FORWARD, of_jobs=False)[0], keys(switch, Table.CLASSIFY, of_jobs=True)[0])
    wait_until(lambda: held_rules(switch) >= wanted_rules(rules_for({})), sleep=hub.sleep)
    assert len(keys(switch, Table.CLASSIFY, of_jobs=True)) == len(JOBS) - 1, "what the plan wants is not known yet"
    assert successor.apply(rules_for(JOBS)).flow_mods == 1
    successor.close()


def test_a_look_without_an_answer_costs_no_readiness(plane: Dataplane) -> None:
    switch = started(plane)
    switch.behaviour.silent = True
    hub.sleep(DEFAULT + 0.4)
    switch.behaviour.silent = False
    assert [s.dpid for s in plane.switches()] == [1]


def test_a_switch_that_tells_its_rules_otherwise_is_not_corrected_for_ever() -> None:
    plane = make_plane(audit_seconds=0.02)
    switch = started(plane, behaviour=Behaviour(forgets_actions=True))
    wait_until(
        lambda: plane.status()[0].problems and "read otherwise than they were sent" in plane.status()[0].problems[-1],
        sleep=hub.sleep,
    )
    wait_until(lambda: repairs(plane) == MOST_UNLIKE, sleep=hub.sleep)
    switch.messages.clear()
    hub.sleep(0.2)
    assert switch.flow_mods() == []
    switch.remove(keys(switch, Table.CLASSIFY, of_jobs=True)[0])
    wait_until(lambda: is_whole(switch), sleep=hub.sleep)
    plane.close()


def test_every_repair_is_in_the_log_once(seldom: Dataplane, caplog: pytest.LogCaptureFixture) -> None:
    switch = started(seldom)
    for count in range(1, 4):
        switch.remove(keys(switch, Table.FORWARD, of_jobs=False)[0])
        wait_until(lambda count=count: repairs(seldom) == count, sleep=hub.sleep)
    lines = [message for message in caplog.messages if "somebody else changed it" in message]
    assert lines == [
        "switch 0000000000000001: somebody else changed it: 1 rule that had been deleted or changed was put back "
        "(1 in table 6)"
    ], "those of the minute after it are told at its end"
    assert seldom.status()[0].problems[0].startswith("somebody else changed it 0 s ago: 1 rule")
