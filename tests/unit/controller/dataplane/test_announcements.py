"""Hosts announce themselves at switches: which packets come through, as long as they are asked for."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from ryu.lib import hub
from ryu.ofproto import ofproto_v1_3_parser as parser

from controller.dataplane import openflow
from controller.dataplane.plane import Dataplane
from controller.dataplane.values import Settings
from controller.model import Snapshot, Switch
from controller.rules.compiler import compile_rules
from controller.rules.rule import Rule
from controller.wire.announcement import ETH_LLDP, Announcement, frame_of
from evaluation.bench.support.waiting import wait_until
from tests.support.controller.dataplane.dataplane_world import HOSTS, connect, ready
from tests.support.controller.dataplane.fake_datapath import Behaviour, FakeDatapath
from tests.support.controller.dataplane.fake_switch import FakeSwitch, Packet

ANNOUNCED = Announcement("02:00:00:00:00:07", "0123456789abcdef" * 2)
FRAME = frame_of(ANNOUNCED, "h7")
Heard = list[tuple[int, int, Announcement]]


def rules(switch: Switch, *, announcements: bool = True) -> frozenset[Rule]:
    known = Snapshot(0.0, HOSTS, (), switches=(switch,))
    return compile_rules(known, {}, mode="classified", forwarding="normal", announcements=announcements)


@pytest.fixture
def plane() -> Iterator[Dataplane]:
    quick = Settings(queues="existing", answer_seconds=0.2, retry_seconds=0.05, audit_seconds=0.1, queue_seconds=60.0)
    made = Dataplane(quick, rules)
    yield made
    made.close()


@pytest.fixture
def heard(plane: Dataplane) -> Heard:
    found: Heard = []
    plane.subscribe_to_announcements(lambda *each: found.append(each))
    return found


def started(plane: Dataplane, behaviour: Behaviour | None = None) -> FakeDatapath:
    switch = connect(plane, behaviour=behaviour)
    ready(plane)
    return switch


def test_a_host_is_heard_at_its_port_while_it_is_listened_for(plane: Dataplane, heard: Heard) -> None:
    switch = started(plane)
    plane.listen(is_listening=True)
    switch.receive(FRAME, in_port=2)
    assert heard == [(1, 2, ANNOUNCED)]
    plane.listen(is_listening=False)
    switch.receive(FRAME, in_port=2)
    assert len(heard) == 1
    plane.listen(is_listening=True)
    switch.receive(FRAME, in_port=1)
    assert heard[1:] == [(1, 1, ANNOUNCED)]


def test_other_frames_of_the_same_type_are_nobodys(plane: Dataplane, heard: Heard) -> None:
    switch = started(plane)
    plane.listen(is_listening=True)
    switch.receive(FRAME.replace(b"trainyard", b"something"), in_port=2)
    assert heard == []


def test_who_listens_for_nobody_tells_each_switch_so_once(plane: Dataplane) -> None:
    switch = started(plane)
    for _ in range(3):
        plane.listen(is_listening=False)
    assert [message for message in switch.messages if isinstance(message, parser.OFPSetAsync)] != []
    assert len([message for message in switch.messages if isinstance(message, parser.OFPSetAsync)]) == 1


def test_a_switch_that_comes_back_is_told_anew(plane: Dataplane, heard: Heard) -> None:
    first = started(plane)
    plane.listen(is_listening=False)
    plane.disconnected(first)
    second = started(plane)
    assert second.hands_on
    plane.listen(is_listening=False)
    assert not second.hands_on


def test_ports_and_removed_rules_are_told_as_before() -> None:
    for is_listening in (False, True):
        message = openflow.listen(FakeDatapath(1, lambda _: None), is_listening=is_listening)
        assert message.port_status_mask == [0b111, 0b111]
        assert message.flow_removed_mask[0] == 0b1111


def test_the_rule_is_kept_and_read_as_it_was_made(plane: Dataplane) -> None:
    switch = started(plane)
    lost = [key for key, each in switch.table.items() if each.match.get("eth_type") == ETH_LLDP]
    assert len(lost) == 1
    switch.messages.clear()
    hub.sleep(0.35)  # several looks at the rules
    assert switch.flow_mods() == []
    switch.remove(*lost)
    wait_until(lambda: lost[0] in switch.table, sleep=hub.sleep)


def test_one_rule_a_switch_and_none_without_enrolment() -> None:
    more = rules(Switch(1)) - rules(Switch(1), announcements=False)
    assert len(more) == 1


@pytest.mark.parametrize("gate", [True, False])
def test_announcements_go_to_the_controller_and_all_else_goes_on(gate: bool) -> None:
    switch = FakeSwitch(1, rules(Switch(1)), gate=gate)
    lldp = Packet(eth_type=ETH_LLDP, ip_proto=None, ip_dscp=None)
    announced = switch.receive(lldp, in_port=2)
    assert (announced.is_for_controller, announced.normal) == (True, False)
    other = switch.receive(Packet(ipv4_src="10.0.0.1", ipv4_dst="10.0.0.2"), in_port=2)
    assert (other.is_for_controller, other.normal) == (False, True)
