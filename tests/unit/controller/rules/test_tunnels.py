"""Tunnels between hosts that several jobs share: the class by the outer DSCP, and who is believed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from controller.code_points import CLASS_SELECTORS, POOL_2
from controller.model import Host, Job, Role, Snapshot, Switch, Task
from controller.rules.compiler import compile_rules
from controller.rules.rule import ETH_IPV6, PROTO_UDP, Rule
from tests.support.controller.dataplane.fake_switch import FakeSwitch, Packet

LAST = 6
VXLAN, OWN_PORT, ROCE = 4789, 4444, 4791
FIRST, SECOND = POOL_2.classes[:2]


def host(n: int) -> Host:
    return Host(f"h{n}", address=f"10.0.0.{n}", more_addresses=(f"fd00::{n}",), switch=1, switch_port=n)


HOSTS = {f"h{n}": host(n) for n in range(1, 5)}


def job(name: str, *members: int) -> Job:
    return Job(name, tasks=tuple(Task(Role.PEER, f"h{n}") for n in members))


def snapshot(**more: object) -> Snapshot:
    """Two jobs on hosts 1 and 2, of which one also has host 3. Hosts 1 and 3 mark what their tunnels send."""
    marking = {"h1": (VXLAN, OWN_PORT), "h3": (VXLAN,), "gone": (VXLAN,)}
    jobs = (job("a", 1, 2, 3), job("b", 1, 2))
    return replace(Snapshot(0.0, HOSTS, jobs, switches=(Switch(1),), tunnels=marking), **more)


def compiled(shot: Snapshot, mode: str = "classified") -> frozenset[Rule]:
    return compile_rules(shot, {"a": 4, "b": 2}, mode=mode, forwarding="normal")


def sent(shot: Snapshot, src: int, dst: int, dscp: int, *, udp: int = VXLAN, port: int | None = None) -> set[object]:
    """Returns the classes and DSCPs that a packet gets, over both address families."""
    switch = FakeSwitch(1, compiled(shot))
    packet = Packet(ip_proto=PROTO_UDP, udp_dst=udp, ip_dscp=dscp)
    over = (
        replace(packet, ipv4_src=f"10.0.0.{src}", ipv4_dst=f"10.0.0.{dst}"),
        replace(packet, eth_type=ETH_IPV6, ipv6_src=f"fd00::{src}", ipv6_dst=f"fd00::{dst}"),
    )
    verdicts = [switch.receive(each, port or src) for each in over]
    return {(verdict.service_class, verdict.packet.ip_dscp) for verdict in verdicts}


def test_where_jobs_share_a_pair_the_outer_dscp_tells_them_apart() -> None:
    shot = snapshot()
    assert sent(shot, 1, 2, SECOND) == {(1, SECOND)}
    assert sent(shot, 1, 2, FIRST) == {(0, FIRST)}
    assert sent(shot, 1, 2, SECOND, udp=OWN_PORT) == {(1, SECOND)}, "a port that no standard names"
    # Without a mark of a job, and with that of another program, it is as without tunnels.
    assert sent(shot, 1, 2, 0) == {(LAST, POOL_2.classes[LAST])}
    assert sent(shot, 1, 2, 46) == {(LAST, 46)}
    # A pair that one job alone uses needs no DSCP, and its class does not depend on one.
    assert {k for k, _ in sent(shot, 1, 3, FIRST) | sent(shot, 3, 1, 0)} == {4}


def test_nobody_else_gets_a_class_by_an_outer_dscp() -> None:
    shot, cleared = snapshot(), {(LAST, POOL_2.classes[LAST])}
    assert sent(shot, 2, 1, FIRST) == cleared, "this host's agent does not mark tunnels"
    assert sent(shot, 1, 2, FIRST, udp=ROCE) == cleared, "and this one's marks nothing but tunnels"
    assert sent(shot, 1, 2, FIRST, port=4) == {(None, 0)}, "nobody sends in another's name"
    assert sent(shot, 3, 2, FIRST, udp=OWN_PORT) != {(0, FIRST)}, "each host marks its own ports"
    untrusted = snapshot(switches=(Switch(1, trusted_ports=frozenset({2, 3})),))
    assert sent(untrusted, 1, 2, FIRST) == cleared
    assert sent(shot, 1, 4, FIRST) == {(None, FIRST)}, "a host without a job gets the floor"


def test_a_dscp_that_other_programs_use_is_not_taken_for_a_class() -> None:
    shot = snapshot(code_points=CLASS_SELECTORS)
    for dscp in CLASS_SELECTORS.classes:
        assert sent(shot, 1, 2, dscp) == {(LAST, dscp)}


@pytest.mark.parametrize("mode", ["classified", "marked"])
def test_without_such_hosts_and_where_dscps_are_believed_there_are_no_rules_for_them(mode: str) -> None:
    plain = compiled(snapshot(tunnels={}), mode)
    assert compiled(snapshot(tunnels={"gone": (VXLAN,)}), mode) == plain
    more = compiled(snapshot(), mode) - plain
    # Three of each host's ports by two addresses; one port's kind, and each class, over two families.
    assert len(more) == (0 if mode == "marked" else 3 * 2 + 2 + 7 * 2)


def test_what_is_believed_stays_believed_at_the_next_switch() -> None:
    edge = FakeSwitch(1, compiled(snapshot()))
    packet = Packet(ip_proto=PROTO_UDP, udp_dst=VXLAN, ip_dscp=SECOND, ipv4_src="10.0.0.1", ipv4_dst="10.0.0.2")
    onward = edge.receive(packet, 1).packet
    inner = FakeSwitch(1, compiled(snapshot(switches=(Switch(1, inner_ports=frozenset({9})),))))
    assert inner.receive(onward, 9).service_class == 1
