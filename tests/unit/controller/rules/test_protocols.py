"""Traffic that is not TCP and that jobs declare: what switches do with it, and what hosts mark."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.code_points import CNP_DSCP, POOL_2
from controller.model import ROCEV2_PORT, Flow, Host, Job, Listeners, Snapshot, Switch, TrafficProtocol
from controller.rules.compiler import compile_rules
from controller.rules.marking import FlowMark, PortMarks, marks
from controller.rules.rule import ETH_IPV6, PROTO_ICMP, PROTO_TCP, PROTO_UDP, Rule, Table
from controller.rules.table_budget import Step, TableBudget, by_pair, by_port
from tests.support.controller.dataplane.fake_switch import FakeSwitch, Packet

HOSTS = {
    f"h{n}": Host(f"h{n}", address=f"10.0.0.{n}", more_addresses=(f"fd00::{n}",), switch=1, switch_port=n)
    for n in range(1, 6)
}
CLASSES = {"a": 2, "b": 1, "c": 4}
LAST = 6
NIC_DSCP = 26
# Jobs b and c use all these hosts, too, so that the hosts alone do not say whose a packet is.
B = Job("b", flows=tuple(Flow("b", f"h{n}", "h1", dst_port=5000) for n in range(2, 6)))
C = Job("c", listeners=Listeners((("h1", 6000),), tuple(HOSTS)))


def flow(src: int, dst: int, protocol: TrafficProtocol, **ports: int) -> Flow:
    return Flow("a", f"h{src}", f"h{dst}", protocol=protocol, **ports)


def snapshot(*jobs: Job) -> Snapshot:
    return Snapshot(0.0, HOSTS, jobs, switches=(Switch(1),))


def switch(*jobs: Job) -> FakeSwitch:
    return FakeSwitch(1, compile_rules(snapshot(*jobs), CLASSES, mode="classified", forwarding="normal"))


def packet(src: int, dst: int, proto: int = PROTO_UDP, **fields: int) -> Packet:
    return Packet(ip_proto=proto, ipv4_src=f"10.0.0.{src}", ipv4_dst=f"10.0.0.{dst}", **fields)


def rocev2(src: int, dst: int, dscp: int = 0) -> Packet:
    return packet(src, dst, udp_src=50000, udp_dst=ROCEV2_PORT, ip_dscp=dscp)


def place(made: FakeSwitch, sent: Packet, port: int | None = None) -> tuple[int | None, int | None]:
    """Returns a packet's class and its DSCP behind the switch; ``port`` is where it comes in, else at its source's."""
    source = sent.ipv4_src or sent.ipv6_src
    assert source is not None
    done = made.receive(sent, int(source[-1]) if port is None else port)
    return done.service_class, done.packet.ip_dscp


# Switches ------------------------------------------------------------------------------------------------------------


def test_rocev2_is_known_by_its_hosts_and_keeps_the_dscp_of_a_lossless_class() -> None:
    made = switch(Job("a", flows=(flow(2, 1, "rocev2"),)), B, C)
    assert place(made, rocev2(2, 1)) == (2, POOL_2.classes[2])
    assert place(made, rocev2(2, 1, NIC_DSCP)) == (2, NIC_DSCP)
    over_ipv6 = Packet(eth_type=ETH_IPV6, ip_proto=PROTO_UDP, ipv6_src="fd00::2", ipv6_dst="fd00::1",
                       udp_dst=ROCEV2_PORT)  # fmt: skip
    assert place(made, over_ipv6) == (2, POOL_2.classes[2])


def test_what_is_not_declared_keeps_its_place() -> None:
    made = switch(Job("a", flows=(flow(2, 1, "rocev2"),)), B, C)
    for other in (rocev2(1, 2), rocev2(3, 1), packet(2, 1, udp_src=ROCEV2_PORT, udp_dst=9)):
        assert place(made, other) == (LAST, POOL_2.classes[LAST]), other
    assert place(made, packet(2, 1, PROTO_TCP, tcp_dst=5000)) == (1, POOL_2.classes[1])
    assert place(made, rocev2(2, 1), port=3)[0] is None, "another host sends in the name of h2"


def test_a_notice_of_congestion_is_left_alone() -> None:
    alone, declared = switch(B, C), switch(Job("a", flows=(flow(2, 1, "rocev2"), flow(1, 2, "any"))), B, C)
    for sent in (rocev2(2, 1, CNP_DSCP), rocev2(1, 2, CNP_DSCP)):
        assert place(declared, sent) == place(alone, sent) == (LAST, CNP_DSCP)


def test_a_dscp_of_ours_that_a_program_sets_is_not_believed() -> None:
    made = switch(Job("a", flows=(flow(2, 1, "rocev2"), flow(3, 1, "any"))), B, C)
    assert place(made, rocev2(2, 1, POOL_2.classes[0])) == (2, POOL_2.classes[2])
    assert place(made, packet(3, 1, udp_dst=9, ip_dscp=POOL_2.classes[0])) == (2, POOL_2.classes[2])


@pytest.mark.parametrize("protocol", ["rocev2", "any"])
def test_what_two_jobs_declare_alike_is_of_neither(protocol: TrafficProtocol) -> None:
    a, b = Job("a", flows=(flow(2, 1, protocol),)), replace(B, flows=(Flow("b", "h2", "h1", protocol=protocol),))
    assert place(switch(a, b), rocev2(2, 1)) == place(switch(b, a), rocev2(2, 1)) == (LAST, POOL_2.classes[LAST])
    # Without the other job it is the first one's.
    assert place(switch(a), rocev2(2, 1))[0] == 2
    assert marks(snapshot(a, b), CLASSES) == {}


def test_udp_is_known_by_its_ports() -> None:
    a = Job("a", flows=(flow(2, 1, "udp", dst_port=7000), flow(1, 2, "udp", src_port=7000)))
    made = switch(a, B, C)
    assert place(made, packet(2, 1, udp_src=1, udp_dst=7000)) == (2, POOL_2.classes[2])
    assert place(made, packet(1, 2, udp_src=7000, udp_dst=1)) == (2, POOL_2.classes[2])
    assert place(made, packet(2, 1, udp_src=7000, udp_dst=1))[0] == LAST
    # The same number is another job's as a port of TCP.
    assert place(made, packet(2, 1, PROTO_TCP, tcp_dst=7000))[0] == LAST


def test_any_is_all_that_nothing_else_tells_apart() -> None:
    made = switch(
        Job("a", flows=(flow(2, 1, "any"),)), Job("b", flows=(*B.flows, Flow("b", "h2", "h1", protocol="rocev2"))), C
    )
    for sent in (packet(2, 1, udp_dst=9), packet(2, 1, 132), packet(2, 1, 47), packet(2, 1, PROTO_TCP, tcp_dst=22)):
        assert place(made, sent) == (2, POOL_2.classes[2]), sent
    assert place(made, packet(2, 1, PROTO_ICMP, icmpv4_type=8))[0] == 2
    assert place(made, packet(2, 1, PROTO_ICMP, icmpv4_type=3)) == (0, 0), "errors of ICMP go first"
    assert place(made, packet(2, 1, PROTO_TCP, tcp_dst=5000))[0] == 1
    assert place(made, packet(2, 1, PROTO_TCP, tcp_dst=6000))[0] == 4
    assert place(made, rocev2(2, 1))[0] == 1


def test_listening_ports_of_udp_are_no_ports_of_tcp() -> None:
    listeners = Listeners((("h1", 6000), ("h2", 6000)), tuple(HOSTS))
    made = switch(Job("a", udp_listeners=listeners), B, C)
    for src, dst in ((4, 1), (3, 2)):
        assert place(made, packet(src, dst, udp_src=1, udp_dst=6000)) == (2, POOL_2.classes[2])
        assert place(made, packet(dst, src, udp_src=6000, udp_dst=1)) == (2, POOL_2.classes[2])
    assert place(made, packet(4, 1, PROTO_TCP, tcp_dst=6000)) == (4, POOL_2.classes[4])


PORTS = st.none() | st.integers(1, 2)
FLOWS = st.lists(
    st.tuples(st.integers(1, 2), st.integers(1, 2), st.sampled_from(["tcp", "udp"]), PORTS, PORTS).filter(
        lambda drawn: drawn[0] != drawn[1] and drawn[3:] != (None, None)
    )
    | st.tuples(st.integers(1, 2), st.integers(1, 2), st.sampled_from(["rocev2", "any"]), st.none(), st.none()).filter(
        lambda drawn: drawn[0] != drawn[1]
    ),
    max_size=5,
)


def owner(jobs: list[Job], sent: Packet) -> str | None:
    """Returns the job of a packet: by its ports, else RoCEv2 of one job alone, else anything of one job alone."""
    is_tcp = sent.ip_proto == PROTO_TCP
    ends = (f"h{str(sent.ipv4_src)[-1]}", f"h{str(sent.ipv4_dst)[-1]}")
    between = [each for job in jobs for each in job.flows if (each.src, each.dst) == ends]
    by_ports = [each for each in between if each.protocol == ("tcp" if is_tcp else "udp") and has_ports(each, sent)]
    for named in ((True, True), (False, True), (True, False)):
        for each in by_ports:
            if (each.src_port is not None, each.dst_port is not None) == named:
                return each.job
    for protocol in ("rocev2", "any") if not is_tcp and sent.udp_dst == ROCEV2_PORT else ("any",):
        claiming = {each.job for each in between if each.protocol == protocol}
        if len(claiming) == 1:
            return claiming.pop()
    return None


def has_ports(each: Flow, sent: Packet) -> bool:
    src, dst = (sent.tcp_src, sent.tcp_dst) if sent.ip_proto == PROTO_TCP else (sent.udp_src, sent.udp_dst)
    return each.src_port in {None, src} and each.dst_port in {None, dst}


@settings(max_examples=100, deadline=None)
@given(st.lists(FLOWS, min_size=1, max_size=3))
def test_each_packet_is_of_the_job_that_says_most_about_it(drawn: list[list[Any]]) -> None:
    jobs = [
        Job(name, flows=tuple(Flow(name, f"h{src}", f"h{dst}", sport, dport, protocol)
                              for src, dst, protocol, sport, dport in dict.fromkeys(flows)))
        for name, flows in zip("abc", drawn, strict=False)
    ]  # fmt: skip
    shot = replace(snapshot(*jobs), has_places=False)
    made = FakeSwitch(1, compile_rules(shot, CLASSES, mode="classified", forwarding="normal"))
    for src, dst, port, other in product((1, 2), (1, 2), (1, 2, 3), (1, 2, ROCEV2_PORT)):
        for sent in (
            packet(src, dst, udp_src=port, udp_dst=other),
            packet(src, dst, PROTO_TCP, tcp_src=port, tcp_dst=other),
        ):
            if src != dst:
                job = owner(jobs, sent)
                assert place(made, sent)[0] == (None if job is None else CLASSES[job]), sent


def test_a_new_class_changes_the_rules_of_its_job_alone() -> None:
    shot = snapshot(Job("a", flows=(flow(2, 1, "rocev2"), flow(2, 1, "udp", dst_port=7))), B)
    before, after = (compile_rules(shot, CLASSES | {"a": k}, mode="classified", forwarding="normal") for k in (2, 3))
    assert {(rule.table, rule.job) for rule in before ^ after} == {(Table.CLASSIFY, "a"), (Table.KINDS, "a")}
    assert {rule.key for rule in before} == {rule.key for rule in after}


def test_by_marks_alone_no_pair_has_a_rule() -> None:
    shot = snapshot(Job("a", flows=(flow(2, 1, "rocev2"), flow(2, 1, "any"), flow(2, 1, "udp", dst_port=7))))
    made = compile_rules(shot, CLASSES, mode="marked", forwarding="normal")
    assert not [rule for rule in made if _is_of_pair(rule)]
    # Where the job alone uses the pair, a kind that jobs use has its class all the same.
    assert place(FakeSwitch(1, made), rocev2(2, 1))[0] == 2


def _is_of_pair(rule: Rule) -> bool:
    return rule.match.ipv4_src is not None and rule.match.ipv4_dst is not None


# Hosts ---------------------------------------------------------------------------------------------------------------


def test_hosts_mark_what_their_kernel_sends() -> None:
    a = Job(
        "a",
        flows=(flow(2, 1, "any"), flow(2, 3, "rocev2"), flow(2, 1, "udp", dst_port=7), flow(2, 1, "tcp", dst_port=8)),
    )
    hosts = {name: replace(host, more_addresses=()) for name, host in HOSTS.items()}
    of_job = ("a", 2, POOL_2.classes[2])
    assert marks(replace(snapshot(a), hosts=hosts), CLASSES) == {
        "h2": (
            FlowMark(*of_job, None, "10.0.0.1", 7, "udp"),
            FlowMark(*of_job, None, "10.0.0.1", 8),
            FlowMark(*of_job, None, "10.0.0.3", ROCEV2_PORT, "udp"),
            FlowMark(*of_job, None, "10.0.0.1", None, "any"),
        )
    }


def test_packets_to_many_listening_ports_of_udp_are_marked_as_udp() -> None:
    a = Job("a", udp_listeners=Listeners((("h1", 6000),), ("h1", "h2")))
    of_job, ends = ("a", 2, POOL_2.classes[2]), (("10.0.0.1", 6000), ("fd00::1", 6000))
    marked = marks(snapshot(a), CLASSES)
    assert marked["h2"] == (PortMarks(*of_job, ends, "udp"),)
    assert FlowMark(*of_job, 6000, None, None, "udp") in marked["h1"]
    assert {mark.protocol for mark in PortMarks(*of_job, ends, "udp").each()} == {"udp"}


# The room for rules --------------------------------------------------------------------------------------------------


def test_declared_traffic_of_every_protocol_counts_in_the_budget() -> None:
    flows = (flow(2, 1, "rocev2"), flow(2, 1, "any"), flow(2, 1, "udp", dst_port=7))
    a = Job("a", flows=flows, udp_listeners=Listeners((("h1", 6000),), ("h1", "h2")))
    # Each for two families; listening ports have a rule from the port and one to it.
    needs = 2 * (len(flows) + 2)
    fitted = TableBudget(needs).fit(snapshot(a), 0.0)
    assert (fitted.step, fitted.needs) == (Step.LINKS, needs)
    assert TableBudget(needs - 1).fit(snapshot(a), 0.0).step is Step.MARKED
    made = compile_rules(replace(snapshot(a), has_places=False), CLASSES, mode="classified", forwarding="normal")
    assert len([rule for rule in made if rule.job == "a"]) == needs


def test_found_connections_become_fewer_though_another_job_declares_udp_between_the_hosts_but_not_any() -> None:
    found = tuple(Flow("b", "h2", "h1", 40_000 + n, 50_000 + n) for n in range(5))
    b = Job("b", found=found)
    for other, reduced in (("udp", 1), ("rocev2", 1), ("any", 5)):
        ports = {"dst_port": 50_000} if other == "udp" else {}
        assert len(by_pair([Job("a", flows=(flow(2, 1, other, **ports),)), b])[1]) == reduced, other
    same_port = Job("b", found=tuple(Flow("b", "h2", "h1", 40_000 + n, 5000) for n in range(5)))
    assert len(by_port([Job("a", flows=(flow(2, 1, "udp", dst_port=5000),)), same_port])[1]) == 1
