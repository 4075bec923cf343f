"""Rules with other DSCPs than the default ones: those that other programs use, too, are left as they are."""

from __future__ import annotations

from dataclasses import replace

import pytest

from controller.code_points import CLASS_SELECTORS, DCB, POOL_2, CodePoints, code_points
from controller.model import Flow, Host, Job, Snapshot, Switch
from controller.rules.compiler import Rule, SetDscp, compile_rules
from controller.rules.fabric import Link, inner_ports
from controller.rules.marking import FlowMark, marks
from controller.rules.rule import Table
from tests.support.controller.dataplane.fake_switch import FakeNetwork, FakeSwitch, Packet, Verdict

CS7, CS6 = 56, 48
LINK = Link(1, 101, 2, 101)
ROUTER = 9
"""A port to which no host of the settings is connected."""


def host(n: int, switch: int = 1) -> Host:
    return Host(f"h{n}", address=f"10.0.0.{n}", switch=switch, switch_port=n)


def snapshot(points: CodePoints, *switches: Switch, **more: object) -> Snapshot:
    hosts = {each.name: each for each in (host(1), host(2), host(3, 2))}
    job = Job("a", flows=(Flow("a", "h1", "h2", dst_port=5000), Flow("a", "h1", "h3", dst_port=5000)))
    switches = switches or (Switch(1),)
    return replace(Snapshot(0.0, hosts, (job,), switches=switches, code_points=points, has_places=False), **more)


def rules(shot: Snapshot, mode: str, service_class: int = 1) -> frozenset[Rule]:
    return compile_rules(shot, {"a": service_class}, mode=mode, forwarding="normal")


def packet(dscp: int, dst_port: int = 9999, src: int = 1, dst: int = 2) -> Packet:
    return Packet(ipv4_src=f"10.0.0.{src}", ipv4_dst=f"10.0.0.{dst}", tcp_src=1, tcp_dst=dst_port, ip_dscp=dscp)


def outcome(verdict: Verdict) -> tuple[int | None, int | None]:
    return verdict.service_class, verdict.packet.ip_dscp


@pytest.mark.parametrize("points", [CLASS_SELECTORS, DCB, POOL_2])
def test_a_job_gets_the_dscp_that_its_class_has(points: CodePoints) -> None:
    switch = FakeSwitch(1, rules(snapshot(points), "classified"))
    assert outcome(switch.receive(packet(0, 5000), 1)) == (1, points.classes[1])
    assert marks(snapshot(points), {"a": 1})["h1"][0] == FlowMark("a", 1, points.classes[1], None, "10.0.0.2", 5000)


def test_the_same_job_changes_its_rules_with_the_dscps() -> None:
    job = snapshot(POOL_2)
    for points in (POOL_2, CLASS_SELECTORS, POOL_2):
        (found,) = {
            action.dscp
            for rule in rules(replace(job, code_points=points), "classified")
            if rule.job == "a"
            for action in rule.actions
            if isinstance(action, SetDscp)
        }
        assert found == points.classes[1]


def test_another_programs_dscp_passes_unharmed_and_gives_no_class() -> None:
    switch = FakeSwitch(1, rules(snapshot(CLASS_SELECTORS), "classified"))
    for dscp in range(64):
        assert outcome(switch.receive(packet(dscp), 1)) == (None, dscp)


@pytest.mark.parametrize("mode", ["classified", "marked"])
def test_no_rule_clears_a_dscp_that_others_use(mode: str) -> None:
    found = rules(snapshot(CLASS_SELECTORS, Switch(1, trusted_ports=frozenset({1}))), mode)
    assert not [
        rule
        for rule in found
        if rule.table is Table.CLASSIFY and rule.job is None and any(isinstance(each, SetDscp) for each in rule.actions)
    ]


@pytest.mark.parametrize("degraded", [False, True])
def test_marks_are_believed_at_the_ports_of_hosts_alone(degraded: bool) -> None:
    shot = snapshot(CLASS_SELECTORS, degraded=degraded)
    switch = FakeSwitch(1, rules(shot, "classified" if degraded else "marked"))
    for k, dscp in enumerate(CLASS_SELECTORS.classes):
        for port in (1, 2):
            assert outcome(switch.receive(packet(dscp), port)) == (k, dscp)
        # The port number of a host at another switch, and that of a router, which sends its protocols as CS6.
        for port in (3, ROUTER):
            assert outcome(switch.receive(packet(dscp), port)) == (None, dscp)


def test_marks_of_a_host_that_is_not_trusted_are_not_believed() -> None:
    switch = FakeSwitch(1, rules(snapshot(CLASS_SELECTORS, Switch(1, trusted_ports=frozenset({2, ROUTER}))), "marked"))
    verdicts = [outcome(switch.receive(packet(CS7), port)) for port in (1, 2, ROUTER)]
    assert verdicts == [(None, CS7), (0, CS7), (None, CS7)]


def test_where_nobody_else_uses_the_dscps_every_port_is_believed_as_before() -> None:
    switch = FakeSwitch(1, rules(snapshot(DCB), "marked"))
    assert [outcome(switch.receive(packet(47), port)) for port in (1, ROUTER)] == [(1, 47), (1, 47)]
    switch = FakeSwitch(1, rules(snapshot(DCB), "classified"))
    assert outcome(switch.receive(packet(47), 1)) == (None, 0)
    assert outcome(switch.receive(packet(51), 1)) == (None, 51), "it is in pool 2, and none of these"


def test_the_class_is_kept_over_the_link_between_switches() -> None:
    switches = tuple(Switch(dpid, inner_ports((LINK,), dpid)) for dpid in (1, 2))
    for mode, sent in (("classified", 0), ("marked", CS6)):
        shot = snapshot(CLASS_SELECTORS, *switches)
        found = compile_rules(shot, {"a": 1}, mode=mode, forwarding="paths", links=(LINK,))
        network = FakeNetwork({dpid: FakeSwitch(dpid, found) for dpid in (1, 2)}, (LINK,))
        hops, left = network.send(packet(sent, 5000, dst=3), 1, 1)
        assert left == (2, 3)
        assert [outcome(hop.verdict) for hop in hops] == [(1, CS6), (1, CS6)]


@pytest.mark.parametrize(
    ("acknowledgements", "expected"),
    [(63, (0, 63)), (None, (1, CS6)), (46, (1, CS6))],
    ids=["its own", "that of class 0", "one that others use"],
)
def test_packets_without_data_are_believed_by_a_dscp_that_is_nobody_elses(
    acknowledgements: int | None, expected: tuple[int, int]
) -> None:
    points = code_points(CLASS_SELECTORS.classes, acknowledgements)
    switch = FakeSwitch(1, rules(snapshot(points, acknowledging=frozenset({"h1"})), "classified"))
    assert outcome(switch.receive(packet(points.without_data, 5000), 1)) == expected


def test_of_mixed_dscps_only_those_for_local_use_are_cleared_to_that_of_other_traffic() -> None:
    points = code_points((59, CS6), 63, other=8)
    switch = FakeSwitch(1, rules(snapshot(points, classes=2), "classified", 0))
    verdicts = [outcome(switch.receive(packet(dscp), 1)) for dscp in (59, 63, CS6, 0, 8)]
    assert verdicts == [(None, 8), (None, 8), (None, CS6), (None, 0), (None, 8)]
    switch = FakeSwitch(1, rules(snapshot(points, classes=2), "marked", 0))
    assert [outcome(switch.receive(packet(dscp), 1)) for dscp in (59, 63, CS6)] == [(0, 59), (0, 63), (1, CS6)]
    assert [outcome(switch.receive(packet(dscp), ROUTER)) for dscp in (59, 63, CS6)] == [
        (None, 8),
        (None, 8),
        (None, CS6),
    ]
