"""Jobs with DSCPs of their own: a rule for each and none for a connection, whose class follows the plan."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

import pytest

from controller.code_points import POOL_2, CodePoints, code_points
from controller.enforcement import Mode
from controller.model import Flow, Host, Job, Ordering, Role, Snapshot, Switch, Task
from controller.planner import cut, plan
from controller.policies.fifo import Fifo
from controller.rules.compiler import Rule, compile_rules
from controller.rules.fabric import Link, inner_ports
from controller.rules.marking import FlowMark, marks
from controller.rules.own_dscps.host_jobs import HostJob, host_jobs
from controller.rules.own_dscps.order import order_of, together
from controller.rules.rule import ETH_IPV6, PROTO_UDP, SetClass, SetDscp, Table, difference
from tests.support.controller.dataplane.fake_switch import FakeNetwork, FakeSwitch, Packet, Verdict

ACK = 63
EF, CS6 = 46, 48
LAST = 6
LINK = Link(1, 101, 2, 101)
ROUTER = 9
"""A port to which no host of the settings is connected."""
ROCE = {"ip_proto": PROTO_UDP, "udp_dst": 4791}
LOCAL = code_points(POOL_2.classes, ACK, jobs=(3, 7, 11, 15, 19))
WIDE = code_points(POOL_2.classes, ACK, jobs=tuple(range(1, 63)))


def host(n: int, switch: int = 1) -> Host:
    return Host(f"h{n}", address=f"10.0.0.{n}", more_addresses=(f"fd00::{n}",), switch=switch, switch_port=n)


def job(name: str, dscp: int | None, *members: int) -> Job:
    flows = tuple(Flow(name, f"h{a}", f"h{b}", dst_port=5000 + a) for a in members for b in members if a != b)
    return Job(name, tasks=tuple(Task(Role.PEER, f"h{n}") for n in members), flows=flows, dscp=dscp)


JOBS = (job("a", 3, 1, 2), job("b", 7, 3, 4), job("c", EF, 1, 3))
CLASSES = {"a": 1, "b": 4, "c": 2}


def snapshot(points: CodePoints = WIDE, *switches: Switch, **more: object) -> Snapshot:
    hosts = {each.name: each for each in map(host, range(1, 6))}
    switches = switches or (Switch(1),)
    return replace(Snapshot(0.0, hosts, JOBS, switches=switches, code_points=points), **more)


def compiled(shot: Snapshot, classes: Mapping[str, int] = CLASSES) -> frozenset[Rule]:
    return compile_rules(shot, classes, mode="dscp", forwarding="normal")


def packet(dscp: int, src: int = 1, dst: int = 2, **fields: object) -> Packet:
    made = Packet(ipv4_src=f"10.0.0.{src}", ipv4_dst=f"10.0.0.{dst}", tcp_src=1, tcp_dst=9999, ip_dscp=dscp)
    return replace(made, **fields)


def outcome(verdict: Verdict) -> tuple[int | None, int | None]:
    return verdict.service_class, verdict.packet.ip_dscp


def test_a_switch_has_one_rule_for_each_job_and_family_and_none_for_a_connection() -> None:
    few = compiled(snapshot())
    of_dscps = Counter(rule.match.ip_dscp for rule in few if rule.table is Table.KINDS and rule.match.metadata)
    assert of_dscps == {3: 2, 7: 2, EF: 2, ACK: 2}
    assert not [rule for rule in few if rule.match.tcp_dst in (5001, 5002, 5003, 5004)]
    many = tuple(Flow("a", "h1", "h2", port, 80) for port in range(2000, 3000))
    jobs = (replace(JOBS[0], found=many), *JOBS[1:])
    assert compiled(snapshot(jobs=jobs)) == few


def test_a_packet_with_the_dscp_of_a_job_has_its_class_whatever_it_is() -> None:
    switch = FakeSwitch(1, compiled(snapshot()))
    for fields in ({}, ROCE, {"ip_proto": 132}, {"ipv4_src": "192.0.2.1"}, {"eth_type": ETH_IPV6, "ipv4_src": None}):
        assert outcome(switch.receive(packet(3, **fields), 1)) == (1, 3)
        assert outcome(switch.receive(packet(EF, **fields), 1)) == (2, EF)
        assert outcome(switch.receive(packet(ACK, **fields), 1)) == (0, ACK), "packets without data go first"


def test_a_dscp_of_no_job_is_as_good_as_none() -> None:
    switch = FakeSwitch(1, compiled(snapshot()))
    assert outcome(switch.receive(packet(11, 1, 2), 1)) == (LAST, 11), "between two hosts with jobs"
    assert outcome(switch.receive(packet(11, 1, 5), 1)) == (None, 11)


def test_a_plan_changes_only_the_rules_of_the_jobs_that_it_moves() -> None:
    change = difference(compiled(snapshot()), compiled(snapshot(), CLASSES | {"a": 5}))
    assert not change.remove
    assert {rule.table for rule in change.add} == {Table.KINDS, Table.PLACES}
    assert {action for rule in change.add for action in rule.actions} == {SetClass(5), SetDscp(3)}
    by_table = Counter(rule.table for rule in change.add)
    assert by_table == {Table.KINDS: 2, Table.PLACES: 3}, "one for each family, and the place of its hosts"
    assert marks(snapshot(), CLASSES)["h1"][0].dscp == marks(snapshot(), CLASSES | {"a": 5})["h1"][0].dscp == 3


def test_what_a_host_has_not_marked_has_its_place() -> None:
    switch = FakeSwitch(1, compiled(snapshot()))
    assert outcome(switch.receive(packet(0, 1, 2, **ROCE), 1)) == (1, 3), "it gets the DSCP of its job"
    assert outcome(switch.receive(packet(26, 1, 2, **ROCE), 1)) == (1, 26), "what a program has set stays"
    assert outcome(switch.receive(packet(0, 1, 2), 1)) == (LAST, 0), "no job has a DSCP for this"
    assert outcome(switch.receive(packet(0, 1, 4, **ROCE), 1)) == (LAST, 0)
    assert outcome(switch.receive(packet(0, 1, 5), 1)) == (None, 0)


@pytest.mark.parametrize("points", [LOCAL, WIDE], ids=["for local use", "that others use, too"])
def test_dscps_are_believed_by_port_and_cleared_elsewhere(points: CodePoints) -> None:
    switches = (Switch(1, trusted_ports=frozenset({2, 3, 4, ROUTER})),)
    found = compiled(snapshot(points, *switches, jobs=JOBS if points is WIDE else JOBS[:2]))
    switch = FakeSwitch(1, found)
    assert outcome(switch.receive(packet(3), 1)) == (LAST, 0), "its host is not trusted"
    assert outcome(switch.receive(packet(3, 2, 1), 2)) == (1, 3)
    assert outcome(switch.receive(packet(11, 1, 5), 1)) == (None, 0), "free ones are cleared, too"
    assert outcome(switch.receive(packet(ACK, 1, 5), 1)) == (None, 0)
    assert outcome(switch.receive(packet(EF, 1, 5), 1)) == (None, EF), "others have another meaning"
    expected = (1, 3) if points is LOCAL else (None, 0)
    assert outcome(switch.receive(packet(3, 9, 5), ROUTER)) == expected
    believed = [rule for rule in found if rule.table is Table.CLASSIFY and rule.match.in_port is not None]
    assert len(believed) == (4 if points is LOCAL else 3), "one rule a port, and none for each job there"


def test_a_dscp_that_left_the_pool_is_still_that_of_its_job() -> None:
    left = code_points(POOL_2.classes, ACK, jobs=(19, 23))
    switch = FakeSwitch(1, compiled(snapshot(left, Switch(1, trusted_ports=frozenset({2})))))
    assert outcome(switch.receive(packet(3, 2, 1), 2)) == (1, 3)
    assert outcome(switch.receive(packet(3, 1, 5), 1)) == (None, 0)


def test_inner_switches_map_the_same_dscp() -> None:
    switches = tuple(Switch(dpid, inner_ports((LINK,), dpid)) for dpid in (1, 2))
    hosts = {each.name: each for each in (host(1), host(2, 2), host(3), host(4))}
    shot = replace(snapshot(WIDE, *switches), hosts=hosts)
    found = compile_rules(shot, CLASSES, mode="dscp", forwarding="paths", links=(LINK,))
    network = FakeNetwork({dpid: FakeSwitch(dpid, found) for dpid in (1, 2)}, (LINK,))
    for sent in (packet(3), packet(0, **ROCE)):
        hops, left = network.send(sent, 1, 1)
        assert left == (2, 2)
        assert [outcome(hop.verdict) for hop in hops] == [(1, 3), (1, 3)]


@pytest.mark.parametrize("mode", ["classified", "marked", "dscp"])
def test_notifications_of_congestion_keep_their_queue_where_jobs_are_lossless(mode: Mode) -> None:
    notification = packet(CS6, 2, 1, **ROCE)
    for is_lossless in (False, True):
        shot = snapshot(POOL_2 if mode != "dscp" else WIDE, is_lossless=is_lossless)
        switch = FakeSwitch(1, compile_rules(shot, CLASSES, mode=mode, forwarding="normal"))
        verdict = switch.receive(notification, 2)
        queued = [action for rule in verdict.visited for action in rule.actions if isinstance(action, SetClass)]
        assert (queued == []) is is_lossless
        assert verdict.packet.ip_dscp == CS6
        assert outcome(switch.receive(packet(26, 1, 2, **ROCE), 1)) == (1, 26)


def test_jobs_that_share_a_dscp_have_the_best_of_their_classes() -> None:
    jobs = (job("a", 3, 1, 2), job("b", 3, 3, 4), job("c", 7, 1, 3), job("d", None, 2, 4))
    assert order_of(jobs, {"a": 5, "b": 2, "c": 3, "d": 0}) == {3: 2, 7: 3}
    assert together(jobs, {"a": 5, "b": 2, "c": 3, "d": 0}) == {"a": 2, "b": 2, "c": 3, "d": 0}
    ordering = Ordering("fifo", (("c",), ("d",), ("b",), ("a",)), dict.fromkeys("abcd", "it came"))
    shot = snapshot(jobs=jobs)
    for assign in ("layered", "top"):
        classes, _ = cut(shot, ordering, assign)
        assert classes["a"] == classes["b"]
        alone, _ = cut(replace(shot, jobs=tuple(replace(each, dscp=None) for each in jobs)), ordering, assign)
        assert classes == alone | {"a": min(alone["a"], alone["b"]), "b": min(alone["a"], alone["b"])}
    made = plan(shot, None, policy=Fifo(), compile_rules=compiled)
    assert made.classes["a"] == made.classes["b"]
    (k,) = {rule.actions[0] for rule in made.rules if rule.table is Table.KINDS and rule.match.ip_dscp == 3}
    assert k == SetClass(made.classes["a"])


def test_hosts_mark_with_the_dscp_of_the_job_and_know_all_of_theirs() -> None:
    assert marks(snapshot(), CLASSES)["h1"][:1] == (FlowMark("a", 1, 3, None, "10.0.0.2", 5001),)
    assert {mark.dscp for mark in marks(snapshot(), CLASSES)["h3"]} == {7, EF}
    own = host_jobs(snapshot(), {"a": 1, "c": 2})
    assert own["h1"] == (HostJob("a", 3, 1), HostJob("c", EF, 2))
    assert own["h4"] == (HostJob("b", 7, LAST),), "a job that is in no plan yet has its DSCP, too"
    assert "h5" not in own
    assert host_jobs(snapshot(jobs=(job("d", None, 1, 2),)), {"d": 0}) == {}


def test_a_job_on_several_interfaces_is_once_on_its_server() -> None:
    rails = [(n, i) for n in (1, 2) for i in (0, 1)]
    hosts = {f"h{n}/e{i}": replace(host(10 * n + i), name=f"h{n}/e{i}", interface=f"e{i}") for n, i in rails}
    flows = (Flow("a", "h1/e0", "h2/e0"), Flow("a", "h1/e1", "h2/e1"))
    shot = snapshot(hosts=hosts, jobs=(Job("a", flows=flows, dscp=3),))
    assert host_jobs(shot, {"a": 0}) == {"h1": (HostJob("a", 3, 0),), "h2": (HostJob("a", 3, 0),)}


def test_without_a_plan_a_switch_serves_acknowledgements_first_and_nothing_else() -> None:
    switch = FakeSwitch(1, compiled(snapshot(jobs=()), {}))
    assert outcome(switch.receive(packet(3), 1)) == (None, 3)
    assert outcome(switch.receive(packet(ACK), 1)) == (0, ACK)
