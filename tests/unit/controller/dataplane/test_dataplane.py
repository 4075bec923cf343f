"""The dataplane against a switch in pure Python: transactions, resynchronisation, the probe, slow switches."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from ryu.lib import hub
from ryu.ofproto import ofproto_v1_3 as ofp

from controller.code_points import CLASS_SELECTORS, POOL_2, CodePoints, code_points
from controller.dataplane import openflow
from controller.dataplane.plane import Dataplane
from controller.model import Switch
from controller.pieces import whole
from controller.rules.rule import Match, Normal, Output, Rule, SetClass, SetDscp, Table
from evaluation.bench.support.waiting import wait_until
from tests.support.controller.dataplane.dataplane_world import (
    connect,
    held_rules,
    make_plane,
    ready,
    rules_for,
    wanted_rules,
)
from tests.support.controller.dataplane.fake_datapath import Behaviour, FakeDatapath, as_read


@pytest.fixture
def plane() -> Iterator[Dataplane]:
    made = make_plane()
    yield made
    made.close()


def test_rules_survive_the_way_to_a_switch_and_back() -> None:
    rules = rules_for({"a": 0, "b": 6}) | {
        Rule(1, Table.FORWARD, 9, Match(in_port=3, eth_type=0x806, arp_tpa="10.0.0.1"), (Output(7),)),
        Rule(1, Table.CLASSIFY, 9, Match(ip_dscp=3, eth_type=0x800), (SetClass(None), SetDscp(0)), Table.FORWARD),
        Rule(1, Table.FORWARD, 1, Match(), (Normal(),)),
    }
    switch = FakeDatapath(1, lambda _: None)
    for rule in rules:
        switch.send_msg(openflow.add(switch, rule, 5))
    answers: list[Any] = []
    switch.deliver = answers.append
    switch.send_msg(openflow.read_request(switch))
    read = openflow.read_rules(1, answers)
    plain = frozenset(item.rule for item in read if item.rule is not None)
    assert len(plain) == len(rules)
    assert {rule.job for rule in plain} == {None}
    found, tags = whole(openflow.rules_and_tags(read))
    assert found == plain
    assert tags == {item.rule.key: item.tag for item in read if item.rule is not None and item.tag}
    assert whole(openflow.label(plain, tags, rules)) == rules
    assert whole(openflow.label(plain, tags, [])) == plain


def test_a_cookie_names_owner_epoch_and_job() -> None:
    value = openflow.cookie("a", 0x12345)
    assert (value >> 48, value >> 32 & 0xFFFF, value & 0xFFFFFFFF) == (openflow.OWNER, 0x2345, openflow.job_tag("a"))
    assert openflow.cookie(None, 0) & 0xFFFFFFFF == 0


def test_a_switch_is_ready_with_its_pipeline_its_queues_proven_and_its_gate_open(plane: Dataplane) -> None:
    reasons: list[str] = []
    plane.subscribe(reasons.append)
    switch = connect(plane)
    ready(plane)
    assert held_rules(switch) == wanted_rules(rules_for({}))
    gates = [m for m in switch.table.values() if m.hard_timeout]
    assert [(m.table_id, m.hard_timeout, m.instructions[0].table_id) for m in gates] == [(0, 15, 1)]
    (status,) = plane.status()
    assert [(proof.port, proof.problem) for proof in status.ports] == [(1, None), (2, None)]
    assert all(min(proof.packets.values()) >= 3 for proof in status.ports)
    assert reasons == ["switch 0000000000000001 is ready"]


def test_without_a_probe_a_switch_is_used_and_not_called_proven(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    plane = make_plane(probe=False)
    try:
        connect(plane, behaviour=Behaviour(obeys_queue=False))
        ready(plane)
        (status,) = plane.status()
        assert (status.ready, status.reason, status.ports) == (True, None, ())
        assert "switch 0000000000000001 is ready, its queues not proven" in caplog.messages
    finally:
        plane.close()


@pytest.mark.parametrize("bundles", [True, False])
def test_only_the_difference_is_sent(plane: Dataplane, bundles: bool) -> None:
    switch = connect(plane, behaviour=Behaviour(bundles=bundles))
    ready(plane)
    assert plane.apply(rules_for({"a": 0, "b": 1})).flow_mods == 2
    assert held_rules(switch) == wanted_rules(rules_for({"a": 0, "b": 1}))
    switch.messages.clear()
    assert plane.apply(rules_for({"a": 0, "b": 1})).flow_mods == 0
    assert switch.flow_mods() == []
    applied = plane.apply(rules_for({"a": 0, "c": 1}))
    assert (applied.flow_mods, applied.errors) == (2, ())
    assert held_rules(switch) == wanted_rules(rules_for({"a": 0, "c": 1}))
    assert plane.status()[0].bundles is bundles


@pytest.mark.parametrize("bundles", [True, False])
def test_a_refused_rule_takes_the_whole_change_back(plane: Dataplane, bundles: bool) -> None:
    switch = connect(plane, behaviour=Behaviour(bundles=bundles))
    ready(plane)
    plane.apply(rules_for({"a": 0, "b": 1}))
    before = held_rules(switch)
    switch.behaviour.refuses = lambda m: m.match.get("tcp_dst") == ord("d")
    applied = plane.apply(rules_for({"a": 5, "c": 1, "d": 2}))
    assert applied.errors == ("switch 0000000000000001 refused a rule in table 1 of job d: OFPBAC_BAD_OUT_PORT(4)",)
    assert held_rules(switch) == before
    switch.behaviour.refuses = lambda _: False
    assert plane.apply(rules_for({"a": 5, "c": 1, "d": 2})).errors == ()
    assert held_rules(switch) == wanted_rules(rules_for({"a": 5, "c": 1, "d": 2}))


@pytest.mark.parametrize("atomic", [True, False])
@pytest.mark.parametrize("bundles", [True, False])
def test_a_full_table_leaves_what_was_there(plane: Dataplane, bundles: bool, atomic: bool) -> None:
    switch = connect(plane, behaviour=Behaviour(bundles=bundles, atomic=atomic))
    ready(plane)
    plane.apply(rules_for({"a": 0}))
    before = held_rules(switch)
    switch.behaviour.table_size = len(switch.table) + 1
    applied = plane.apply(rules_for(dict.fromkeys("abcdef", 1)))
    assert "flow table is full" in applied.errors[0]
    assert held_rules(switch) == before
    assert plane.status()[0].rules == len(before)


def test_rules_of_others_are_left_alone(plane: Dataplane) -> None:
    switch = FakeDatapath(1, plane.deliver)
    foreign = as_read(switch, openflow.add(switch, Rule(1, Table.CLASSIFY, 7, Match(tcp_dst=9), goto=Table.FORWARD), 0))
    foreign.xid = None
    foreign.cookie = 0xBEEF
    switch.send_msg(foreign)
    plane.connected(switch)
    ready(plane)
    plane.apply(rules_for({"a": 0}))
    plane.apply(rules_for({}))
    assert foreign in switch.table.values()


def test_a_rule_of_ours_that_no_version_makes_is_deleted(plane: Dataplane) -> None:
    switch = FakeDatapath(1, plane.deliver)
    strange = as_read(switch, openflow.add(switch, Rule(1, Table.CLASSIFY, 7, Match(tcp_dst=9), goto=Table.FORWARD), 0))
    strange.xid = None
    strange.idle_timeout = 9
    strange.match = switch.ofproto_parser.OFPMatch(vlan_vid=3)
    switch.send_msg(strange)
    plane.connected(switch)
    ready(plane)
    assert held_rules(switch) == wanted_rules(rules_for({}))


def test_a_new_controller_disturbs_nothing_that_it_wants_too(plane: Dataplane) -> None:
    switch = connect(plane)
    ready(plane)
    plane.apply(rules_for({"a": 0, "b": 1, "c": 2}))
    plane.close()
    successor = make_plane()
    switch.deliver = successor.deliver
    switch.messages.clear()
    successor.connected(switch)
    ready(successor)
    assert switch.flow_mods() == []
    assert successor.apply(rules_for({"a": 0, "b": 1, "d": 2})).flow_mods == 2
    assert held_rules(switch) == wanted_rules(rules_for({"a": 0, "b": 1, "d": 2}))
    successor.close()


def test_a_switch_that_comes_back_empty_gets_its_rules_before_it_is_ready(plane: Dataplane) -> None:
    switch = connect(plane)
    ready(plane)
    plane.apply(rules_for({"a": 0}))
    plane.disconnected(switch)
    assert plane.switches() == ()
    assert [(s.connected, s.reason) for s in plane.status()] == [(False, "not connected")]
    back = connect(plane)
    ready(plane)
    assert held_rules(back) == wanted_rules(rules_for({"a": 0}))
    # The end of the old connection may be heard of only now.
    plane.disconnected(switch)
    assert len(plane.switches()) == 1


def test_rules_that_somebody_deleted_come_back() -> None:
    plane = make_plane(audit_seconds=0.02)
    switch = connect(plane)
    ready(plane)
    plane.apply(rules_for({"a": 0}))
    wanted = held_rules(switch)
    switch.table.clear()
    wait_until(lambda: held_rules(switch) == wanted, sleep=hub.sleep)
    plane.close()


def test_a_plan_that_does_not_know_a_switch_does_not_empty_it(plane: Dataplane) -> None:
    switch = connect(plane)
    ready(plane)
    plane.apply(rules_for({"a": 0}))
    before = held_rules(switch)
    assert plane.apply(frozenset()).per_switch == ()
    assert held_rules(switch) == before


def test_a_switch_that_ignores_set_queue_is_not_believed(plane: Dataplane) -> None:
    switch = connect(plane, behaviour=Behaviour(obeys_queue=False))
    reason = wait_until(
        lambda: (plane.status()[0].reason or "") != "being set up" and plane.status()[0].reason, sleep=hub.sleep
    )
    assert "the switch ignores set_queue" in reason
    assert plane.switches() == ()
    plane.renew_gates()
    assert not [m for m in switch.table.values() if m.hard_timeout]
    switch.behaviour.obeys_queue = True
    ready(plane)


def test_a_port_without_its_queues_is_named(plane: Dataplane) -> None:
    connect(plane, behaviour=Behaviour(queues=4))
    reason = wait_until(
        lambda: (plane.status()[0].reason or "") != "being set up" and plane.status()[0].reason, sleep=hub.sleep
    )
    assert "port eth1 has no queue 4, 5, 6, 7; it needs 0 to 7" in reason


def test_a_port_that_comes_up_is_proven_too(plane: Dataplane) -> None:
    switch = FakeDatapath(1, plane.deliver)
    switch.down.add(2)
    plane.connected(switch)
    ready(plane)
    assert [proof.port for proof in plane.status()[0].ports] == [1]
    switch.down.clear()
    plane.ports_changed(switch)
    wait_until(lambda: [proof.port for proof in plane.status()[0].ports] == [1, 2], sleep=hub.sleep)
    assert len(plane.switches()) == 1


def test_untrusted_ports_are_left_out_of_those_that_are_trusted() -> None:
    plane = make_plane(untrusted=frozenset({(1, 2)}))
    connect(plane)
    ready(plane)
    assert plane.switches() == (Switch(1, trusted_ports=frozenset({1})),)
    plane.close()


def test_a_switch_that_does_not_answer_holds_up_no_other_and_comes_back(plane: Dataplane) -> None:
    one, other = connect(plane, 1), connect(plane, 2)
    ready(plane, 1, 2)
    one.behaviour.silent = True
    applied = plane.apply(rules_for({"a": 0}, 1, 2))
    assert applied.errors == ("switch 0000000000000001 did not answer within 0.2 s",)
    assert held_rules(other) == wanted_rules(rules_for({"a": 0}, 2), 2)
    assert [s.dpid for s in plane.switches()] == [2]
    applied = plane.apply(rules_for({"b": 0}, 1, 2))
    assert [(change.dpid, change.errors) for change in applied.per_switch] == [(2, ())]
    one.behaviour.silent = False
    ready(plane, 1, 2)
    plane.apply(rules_for({"c": 0}, 1, 2))
    assert held_rules(one) == wanted_rules(rules_for({"c": 0}, 1))


def test_bytes_are_counted_by_class(plane: Dataplane) -> None:
    connect(plane)
    ready(plane)
    counted = plane.class_bytes()
    assert set(counted) == {(1, k) for k in (None, *range(7))}
    assert set(counted.values()) == {600}


@pytest.mark.parametrize("points", [POOL_2, code_points(CLASS_SELECTORS.classes, None, other=1)])
def test_probe_packets_carry_the_dscp_of_their_queue(points: CodePoints) -> None:
    plane = make_plane(code_points=points)
    switch = connect(plane)
    ready(plane)
    sent = {(m.actions[0].queue_id, m.data[15] >> 2) for m in switch.messages if m.msg_type == ofp.OFPT_PACKET_OUT}
    assert sent == {(0, points.other), *((k + 1, dscp) for k, dscp in enumerate(points.classes))}
    plane.close()
