"""Traffic between hosts of one job that no rule of a flow tells apart: its class, and what the rules for it cost."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.code_points import CLASS_SELECTORS, POOL_2, code_points
from controller.model import Demand, Flow, Host, Job, Listeners, Role, Snapshot, Switch, Task
from controller.rules.compiler import Rule, compile_rules
from controller.rules.fabric import Link, inner_ports
from controller.rules.pairs import groups as groups_module
from controller.rules.pairs.groups import NO_GROUP, RULES_A_HOST
from controller.rules.pairs.places import hosts_of, places
from controller.rules.pipeline import Endpoint
from controller.rules.rule import ETH_ARP, ETH_IPV6, PROTO_ICMP, PROTO_ICMPV6, PROTO_TCP, PROTO_UDP, Table, difference
from controller.rules.table_budget import BACK_SECONDS, Step, TableBudget
from tests.support.controller.dataplane.fake_switch import FakeNetwork, FakeSwitch, Packet, Verdict

LAST = 6
ROCE = {"ip_proto": PROTO_UDP, "udp_dst": 4791}
ECHO = {"ip_proto": PROTO_ICMP, "icmpv4_type": 8}


def host(n: int, **more: object) -> Host:
    return replace(Host(f"h{n}", address=f"10.0.0.{n}", switch=1, switch_port=n), **more)


HOSTS = {f"h{n}": host(n) for n in range(1, 9)}


def job(name: str, *members: int) -> Job:
    return Job(name, tasks=tuple(Task(Role.PEER, f"h{n}") for n in members))


def snapshot(*jobs: Job, **more: object) -> Snapshot:
    return replace(Snapshot(0.0, HOSTS, jobs, switches=(Switch(1),)), **more)


def compiled(shot: Snapshot, mode: str = "classified", **classes: int) -> frozenset[Rule]:
    return compile_rules(shot, classes, mode=mode, forwarding="normal")


def sent(
    rules: frozenset[Rule], src: int, dst: int, port: int | None = None, **fields: object
) -> tuple[object, object]:
    """The class of a packet and the DSCP that it leaves with."""
    packet = Packet(ipv4_src=f"10.0.0.{src}", ipv4_dst=f"10.0.0.{dst}")
    return outcome(FakeSwitch(1, rules).receive(replace(packet, **fields), port or src))


def outcome(verdict: Verdict) -> tuple[object, object]:
    return verdict.service_class, verdict.packet.ip_dscp


OTHER_KINDS = {
    "tcp": {"ip_proto": PROTO_TCP, "tcp_src": 9, "tcp_dst": 22},
    "udp": {"ip_proto": PROTO_UDP, "udp_dst": 53},
    "echo": ECHO,
    "sctp": {"ip_proto": 132},
    "ospf": {"ip_proto": 89},
    "bgp": {"ip_proto": PROTO_TCP, "tcp_src": 9, "tcp_dst": 179},
}
JOB_KINDS = {
    "roce": ROCE,
    "vxlan": {"ip_proto": PROTO_UDP, "udp_dst": 4789},
    "flannel": {"ip_proto": PROTO_UDP, "udp_dst": 8472},
    "geneve": {"ip_proto": PROTO_UDP, "udp_dst": 6081},
    "wireguard": {"ip_proto": PROTO_UDP, "udp_dst": 51820},
    "gre": {"ip_proto": 47},
    "ipip": {"ip_proto": 4},
    "6in4": {"ip_proto": 41},
    "esp": {"ip_proto": 50},
    "fragment": {"ip_proto": PROTO_TCP, "tcp_src": 0, "tcp_dst": 0},
}


@pytest.mark.parametrize("mode", ["classified", "marked"])
@pytest.mark.parametrize("kind", [*JOB_KINDS, *OTHER_KINDS])
def test_what_a_jobs_hosts_send_each_other_is_never_other_traffic(mode: str, kind: str) -> None:
    rules = compiled(snapshot(job("a", 1, 2), job("b", 3, 4)), mode, a=2, b=0)
    fields = {**JOB_KINDS, **OTHER_KINDS}[kind]
    service_class = 2 if kind in JOB_KINDS else LAST
    assert sent(rules, 1, 2, **fields) == (service_class, POOL_2.classes[service_class])
    assert sent(rules, 1, 3, **fields) == (LAST, POOL_2.classes[LAST]), "hosts of different jobs"
    for src, dst in ((1, 5), (5, 1), (5, 6)):
        assert sent(rules, src, dst, **fields) == (None, 0), "one has no job"
    assert sent(rules, 1, 2, port=5, **fields) == (None, 0), "nobody sends in another's name"


@pytest.mark.parametrize("kind", [ROCE, ECHO], ids=["roce", "echo"])
def test_hosts_that_two_jobs_share_get_the_last_class_and_others_their_jobs(kind: dict[str, int]) -> None:
    rules = compiled(snapshot(job("a", 1, 2, 3), job("b", 1, 2, 4)), a=2, b=0)
    assert sent(rules, 1, 2, **kind)[0] == LAST
    assert sent(rules, 1, 3, **kind)[0] == (2 if kind is ROCE else LAST)
    assert sent(rules, 4, 2, **kind)[0] == (0 if kind is ROCE else LAST)
    assert sent(rules, 3, 4, **kind)[0] == LAST
    assert sent(rules, 3, 5, **kind)[0] is None


@pytest.mark.parametrize("dscp", [26, 46, 48, 1])
def test_a_dscp_of_another_program_stays(dscp: int) -> None:
    rules = compiled(snapshot(job("a", 1, 2)), a=2)
    assert sent(rules, 1, 2, ip_dscp=dscp, **ROCE) == (2, dscp)
    assert sent(rules, 1, 2, ip_dscp=dscp, **ECHO) == (LAST, dscp)


def test_a_dscp_of_ours_that_a_program_has_set_becomes_that_of_the_packets_place() -> None:
    rules = compiled(snapshot(job("a", 1, 2)), a=2)
    for dscp in POOL_2.owned:
        assert sent(rules, 1, 2, ip_dscp=dscp, **ROCE) == (2, POOL_2.classes[2])
        assert sent(rules, 1, 5, ip_dscp=dscp, **ROCE) == (None, 0)
    points = code_points((59, 48), 63, other=8)
    mixed = compiled(snapshot(job("a", 1, 2), code_points=points, classes=2), a=0)
    assert [sent(mixed, 1, 2, ip_dscp=dscp, **ROCE) for dscp in (63, 8, 0, 48)] == [(0, 59)] * 3 + [(0, 48)]
    assert sent(mixed, 1, 2, **ECHO) == (1, 48), "the last class that there is"


def test_with_dscps_that_others_use_the_place_is_the_same_and_they_stay() -> None:
    rules = compiled(snapshot(job("a", 1, 2), code_points=CLASS_SELECTORS), a=2)
    assert sent(rules, 1, 2, ip_dscp=56, **ROCE) == (2, 56)
    assert sent(rules, 1, 2, **ROCE) == (2, CLASS_SELECTORS.classes[2])


def test_the_flows_of_a_job_go_before_its_hosts() -> None:
    declared = replace(job("a", 1, 2), flows=(Flow("a", "h1", "h2", dst_port=5000),))
    rules = compiled(snapshot(declared), a=1)
    assert sent(rules, 1, 2, tcp_src=9, tcp_dst=5000) == (1, POOL_2.classes[1])
    assert sent(rules, 1, 2, tcp_src=9, tcp_dst=5001) == (LAST, POOL_2.classes[LAST])


@pytest.mark.parametrize(
    "fields",
    [
        {"eth_type": ETH_ARP, "ip_proto": None},
        {"eth_type": 0x88CC, "ip_proto": None, "eth_dst": "01:80:c2:00:00:0e"},
        {"eth_type": 0x8809, "ip_proto": None, "eth_dst": "01:80:c2:00:00:02"},
        *({"ip_proto": PROTO_ICMP, "icmpv4_type": kind} for kind in (3, 11, 12)),
        *(
            {"eth_type": ETH_IPV6, "ip_proto": PROTO_ICMPV6, "icmpv6_type": kind}
            for kind in (1, 2, 3, 4, 135, 136, 143)
        ),
    ],
    ids=str,
)
@pytest.mark.parametrize("mode", ["classified", "marked"])
def test_what_a_network_cannot_do_without_goes_first_from_anywhere(mode: str, fields: dict[str, object]) -> None:
    rules = compiled(snapshot(), mode)
    assert sent(rules, 7, 8, **fields)[0] == 0
    assert sent(rules, 7, 8, **{**fields, "eth_dst": "01:80:c2:00:01:00", "eth_type": 0x88B5})[0] is None


# IPv6 ----------------------------------------------------------------------------------------------------------------


BOTH = {f"h{n}": host(n) for n in (1, 2)} | {f"g{n}": host(n, name=f"g{n}", address=f"fd00::{n}") for n in (3, 4)}


def six(src: int, dst: int, **fields: object) -> Packet:
    return replace(Packet(eth_type=ETH_IPV6, ipv6_src=f"fd00::{src}", ipv6_dst=f"fd00::{dst}"), **fields)


@pytest.mark.parametrize("mode", ["classified", "marked"])
def test_every_kind_of_rule_is_there_for_ipv6(mode: str) -> None:
    a = Job("a", flows=(Flow("a", "g3", "g4", dst_port=5000),), listeners=Listeners((("g3", 7000),), ("g3", "g4")))
    shot = snapshot(a, hosts=BOTH, acknowledging=frozenset({"g3"}))
    rules = compile_rules(shot, {"a": 1}, mode=mode, forwarding="paths", control=[Endpoint("fd00::9", 8080)])
    switch = FakeSwitch(1, rules)
    is_classified = mode == "classified"
    for packet, port, expected in (
        (six(3, 4, tcp_src=9, tcp_dst=5000), 3, 1 if is_classified else LAST),
        (six(3, 4, tcp_src=7000, tcp_dst=9), 3, 1 if is_classified else LAST),
        (six(4, 3, tcp_src=9, tcp_dst=7000), 4, 1 if is_classified else LAST),
        (six(3, 4, tcp_src=9, tcp_dst=5000, ip_dscp=POOL_2.acknowledgements), 3, 0),
        (six(3, 4, tcp_src=9, tcp_dst=9, ip_dscp=POOL_2.classes[3]), 3, LAST if is_classified else 3),
        (six(3, 4, **ROCE), 3, 1),
        (six(3, 4, ip_proto=132), 3, LAST),
        (six(3, 4, tcp_src=0, tcp_dst=0), 3, 1),
        (six(3, 9, tcp_src=9, tcp_dst=8080), 3, 0),
    ):
        verdict = switch.receive(packet, port)
        assert verdict.service_class == expected, packet
        assert verdict.ports == ((7 - port,) if packet.ipv6_dst != "fd00::9" else ())
    asked = replace(
        six(3, 4),
        ip_proto=PROTO_ICMPV6,
        icmpv6_type=135,
        icmpv6_code=0,
        ipv6_dst="ff02::1:ff00:4",
        ipv6_nd_target="fd00::4",
    )
    assert switch.receive(asked, 3).ports == (4,), "a request for a MAC address goes to the host alone"


# MAC addresses -------------------------------------------------------------------------------------------------------


def mac(n: int) -> str:
    return f"02:00:00:00:00:{n:02x}"


WITH_MACS = {f"h{n}": host(n, mac=mac(n)) for n in range(1, 5)}
ROCE_V1, MPLS, UNKNOWN = 0x8915, 0x8847, 0x88B5


def frame(src: int, dst: int, eth_type: int, **fields: object) -> Packet:
    return replace(Packet(eth_type=eth_type, ip_proto=None, ip_dscp=None, eth_src=mac(src), eth_dst=mac(dst)), **fields)


@pytest.mark.parametrize("mode", ["classified", "marked"])
def test_frames_that_are_not_ip_have_the_place_of_their_hosts_by_mac_address(mode: str) -> None:
    rules = compiled(snapshot(job("a", 1, 2, 3), job("b", 1, 3), hosts=WITH_MACS), mode, a=2, b=0)
    switch = FakeSwitch(1, rules)
    for eth_type, alone in ((ROCE_V1, 2), (MPLS, LAST), (UNKNOWN, LAST)):
        assert switch.receive(frame(1, 2, eth_type), 1).service_class == alone
        assert switch.receive(frame(1, 3, eth_type), 1).service_class == LAST, "two jobs have both hosts"
        assert switch.receive(frame(1, 4, eth_type), 1).service_class is None
        assert switch.receive(frame(1, 2, eth_type), 4).service_class is None, "nobody sends in another's name"


def test_without_a_mac_address_such_frames_are_other_traffic_and_ip_is_not() -> None:
    hosts = WITH_MACS | {"h2": replace(WITH_MACS["h2"], mac=None)}
    rules = compiled(snapshot(job("a", 1, 2), hosts=hosts), a=2)
    for src, dst in ((1, 2), (2, 1)):
        assert FakeSwitch(1, rules).receive(frame(src, dst, ROCE_V1), src).service_class is None
        assert sent(rules, src, dst, **ROCE)[0] == 2


def test_ip_between_addresses_that_nobody_has_told_goes_by_mac_address() -> None:
    hosts = WITH_MACS | {"h2": replace(WITH_MACS["h2"], address=None)}
    switch = FakeSwitch(1, compiled(snapshot(job("a", 1, 2), hosts=hosts), a=2))
    local = six(1, 2, ipv6_src="fe80::1", ipv6_dst="fe80::2", eth_src=mac(1), eth_dst=mac(2))
    assert switch.receive(replace(local, **ROCE), 1).service_class == 2
    assert outcome(switch.receive(replace(local, ip_proto=132), 1)) == (LAST, POOL_2.classes[LAST])
    assert switch.receive(replace(local, eth_dst=mac(4)), 1).service_class is None


def test_an_ip_address_goes_before_a_mac_address() -> None:
    """A packet that a router has forwarded has the router's MAC address, and the sender's IP address."""
    switch = FakeSwitch(1, compiled(snapshot(job("a", 1, 2), job("b", 3, 4), hosts=WITH_MACS), a=2, b=1))
    routed = Packet(ipv4_src="10.0.0.1", ipv4_dst="10.0.0.2", eth_src=mac(1), eth_dst=mac(4))
    assert switch.receive(replace(routed, **ROCE), 1).service_class == 2


# A fabric ------------------------------------------------------------------------------------------------------------


def test_a_place_is_kept_on_the_way_to_another_switch() -> None:
    link = Link(1, 101, 2, 101)
    hosts = {"h1": host(1), "h2": host(2, switch=2)}
    switches = tuple(Switch(dpid, inner_ports((link,), dpid)) for dpid in (1, 2))
    shot = snapshot(job("a", 1, 2), hosts=hosts, switches=switches)
    rules = compile_rules(shot, {"a": 2}, mode="classified", forwarding="paths", links=(link,))
    network = FakeNetwork({dpid: FakeSwitch(dpid, rules) for dpid in (1, 2)}, (link,))
    for fields, service_class in ((ROCE, 2), (ECHO, LAST)):
        packet = replace(Packet(ipv4_src="10.0.0.1", ipv4_dst="10.0.0.2"), **fields)
        hops, left = network.send(packet, 1, 1)
        assert left == (2, 2)
        assert [outcome(hop.verdict) for hop in hops] == [(service_class, POOL_2.classes[service_class])] * 2
    assert {rule.switch for rule in rules if rule.table is Table.SOURCES and rule.job} == {1, 2}


def test_where_no_hosts_place_is_known_every_switch_has_the_rules() -> None:
    hosts = {name: replace(each, switch=None, switch_port=None) for name, each in HOSTS.items()}
    rules = compiled(snapshot(job("a", 1, 2), hosts=hosts, switches=(Switch(1), Switch(2))), a=2)
    assert {rule.switch for rule in rules if rule.job} == {1, 2}
    assert sent(rules, 1, 2, port=7, **ROCE)[0] == 2


# What the rules cost -------------------------------------------------------------------------------------------------


def place_count(rules: frozenset[Rule]) -> int:
    return sum(rule.job is not None for rule in rules)


def test_a_job_costs_two_rules_a_host_whatever_its_pairs() -> None:
    for count in (2, 10, 100):
        hosts = {f"h{n}": host(n, address=f"10.0.{n}.1") for n in range(count)}
        rules = compiled(snapshot(job("a", *range(count)), hosts=hosts), a=2)
        assert place_count(rules) == 2 * count
        named = compiled(snapshot(job("a", *range(count)), hosts=hosts | with_macs(hosts)), a=2)
        assert place_count(named) == 2 * place_count(rules), "a MAC address is one address more"
    assert place_count(compiled(snapshot(job("a", 1)), a=2)) == 0, "a job on one host sends nothing"


def with_macs(hosts: dict[str, Host]) -> dict[str, Host]:
    return {name: replace(each, mac=mac(i)) for i, (name, each) in enumerate(hosts.items())}


def test_each_host_of_several_jobs_costs_one_rule_more() -> None:
    apart = snapshot(job("a", 1, 2), job("b", 3, 4), job("c", 5))
    assert place_count(compiled(apart, a=0, b=1, c=2)) == 2 * 4 + 5 + 1, "that of c is no partner"
    shared = snapshot(job("a", 1, 2), job("b", 1, 2))
    assert place_count(compiled(shared, a=0, b=1)) == 2 * 2
    sharing = replace(apart, has_places_between_jobs=False)
    assert place_count(compiled(sharing, a=0, b=1, c=2)) == 2 * 4
    assert sent(compiled(apart, a=0, b=1, c=2), 5, 1, **ECHO)[0] == LAST
    assert sent(compiled(sharing, a=0, b=1, c=2), 1, 3, **ECHO)[0] is None


DRAWN = st.lists(st.sets(st.integers(1, 8), min_size=1), max_size=9)


@settings(max_examples=40, deadline=None)
@given(DRAWN, st.booleans())
def test_every_pair_has_the_place_that_its_jobs_give_it_and_rules_stay_few(
    drawn: list[set[int]], between_jobs: bool
) -> None:
    jobs = [job(f"j{i}", *members) for i, members in enumerate(drawn)]
    found = places(HOSTS, tuple(jobs), between_jobs=between_jobs)
    memberships = sum(map(len, drawn))
    assert len(found.sources) + sum(len(each.to) for each in found.partners) <= (RULES_A_HOST + 2) * memberships + 8
    hosts = {name: replace(each, mac=mac(n)) for n, (name, each) in enumerate(HOSTS.items(), 1)}
    shot = snapshot(*jobs, hosts=hosts, has_places_between_jobs=between_jobs)
    switch = FakeSwitch(1, compiled(shot, **{each.id: i % 6 for i, each in enumerate(jobs)}))
    crowd = {source.end for source in found.sources if source.group is NO_GROUP}
    with_jobs = set().union(*drawn)
    for src, dst in permutations(range(1, 9), 2):
        shared = [i % 6 for i, members in enumerate(drawn) if {src, dst} <= members]
        ends = {"ipv4_src": f"10.0.0.{src}", "ipv4_dst": f"10.0.0.{dst}", "eth_src": mac(src), "eth_dst": mac(dst)}
        packet = Packet(**ends)
        roce, echo = (switch.receive(replace(packet, **kind), src).service_class for kind in (ROCE, ECHO))
        assert switch.receive(frame(src, dst, ROCE_V1), src).service_class == roce, "by MAC address it is the same"
        is_last = {src, dst} <= with_jobs if between_jobs else bool(shared)
        if f"10.0.0.{src}" in crowd and not between_jobs:
            assert (roce, echo) in {(LAST, LAST)} | ({(None, None)} if not shared else set())
        else:
            assert echo == (LAST if is_last else None)
            is_alone = len(shared) == 1 and f"10.0.0.{src}" not in crowd
            assert roce == (shared[0] if is_alone else LAST if is_last else None)


def test_hosts_that_share_many_jobs_with_many_others_share_the_rules() -> None:
    count = 60
    hosts = {f"h{n}": host(n, address=f"10.0.{n}.1") for n in range(count)}
    jobs = tuple(job(f"j{n}", *((n + step * step) % count for step in range(9))) for n in range(count))
    rules = compiled(snapshot(*jobs, hosts=hosts), **{each.id: 0 for each in jobs})
    assert place_count(rules) == 2 * count
    known = FakeSwitch(1, rules)
    packet = replace(Packet(ipv4_src="10.0.0.1", ipv4_dst="10.0.1.1"), **ROCE)
    assert known.receive(packet, 0).service_class == LAST
    more = compiled(snapshot(*jobs, job("new", 1, 2), hosts=hosts), **{each.id: 0 for each in jobs}, new=1)
    change = difference(rules, more)
    assert len(change.add) + len(change.remove) == 0, "these hosts are known, and the class is the last one"


def test_a_job_more_changes_the_rules_of_its_own_hosts_alone() -> None:
    jobs = (job("a", 1, 2), job("b", 3, 4), job("c", 5, 6))
    before = compiled(snapshot(*jobs[:2]), a=1, b=2)
    after = compiled(snapshot(*jobs), a=1, b=2, c=3)
    assert before < after
    assert {id(rule) for rule in before} <= {id(rule) for rule in after}, "the same objects are soon found to be equal"
    assert {rule.job for rule in after - before} == {"c"}
    moved = difference(after, compiled(snapshot(*jobs), a=4, b=2, c=3))
    assert {(rule.job, rule.table) for rule in moved.add} == {("a", Table.PAIRS)}
    assert not moved.remove


@pytest.mark.parametrize("size", [6, 8])
def test_a_small_job_on_hosts_of_a_large_one_changes_rules_of_its_own_hosts_alone(size: int) -> None:
    large = job("large", *range(1, size + 1)), job("other", 1, 2)
    before = compiled(snapshot(*large), large=1, other=2)
    after = compiled(snapshot(*large, job("a", 4, 5)), large=1, other=2, a=0)
    begins, ends = difference(before, after), difference(after, before)
    assert Counter(rule.table for rule in begins.add) == {Table.SOURCES: 2, Table.PAIRS: 2}
    assert Counter(rule.table for rule in ends.add) == {Table.SOURCES: 2}
    assert Counter(rule.table for rule in ends.remove) == {Table.PAIRS: 2}
    assert not begins.remove
    assert [sent(after, 4, dst, **ROCE)[0] for dst in (5, 6)] == [LAST, 1], "two jobs have both hosts; one has"


def test_two_groups_that_come_to_the_same_number_get_two(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(groups_module, "_hash", lambda _jobs: 0xFFFF_FFFF)
    found = places(HOSTS, (job("x", 1, 2), job("y", 3, 4), job("z", 5, 6)), between_jobs=True)
    numbers = {source.group.main for source in found.sources}
    assert len(numbers) == 3
    assert numbers.isdisjoint({0, 1})
    big = job("big", *range(1, 9))
    found = places(HOSTS, (big, job("x", 1, 2), job("y", 3, 4)), between_jobs=True)
    assert len({source.group for source in found.sources}) == 3
    assert {source.group.main for source in found.sources} == {3}


def test_all_that_a_job_says_of_its_hosts_counts() -> None:
    whole = Job(
        "a",
        demand=(Demand("h1", "h2", 1.0),),
        tasks=(Task(Role.PS, "h3"),),
        flows=(Flow("a", "h4", "h5"),),
        found=(Flow("a", "h6", "h7"),),
        listeners=Listeners((), ("h8",)),
        found_on=frozenset({"h9"}),
    )
    assert hosts_of(whole) == {f"h{n}" for n in range(1, 10)}
    assert hosts_of(replace(whole, found=())) == {f"h{n}" for n in (1, 2, 3, 4, 5, 8, 9)}, "it is not remembered"


# The budget ----------------------------------------------------------------------------------------------------------


def test_the_budget_counts_the_rules_that_there_are() -> None:
    hosts = {f"h{n}": host(n, switch=1 + n % 2) for n in range(1, 9)}
    jobs = (job("a", 1, 2, 3, 4), job("b", 4, 5), job("c", 6, 7, 8))
    shot = snapshot(*jobs, hosts=hosts, switches=(Switch(1), Switch(2)))
    at = Counter(rule.switch for rule in compiled(shot, a=0, b=1, c=2) if rule.job)
    assert TableBudget(1000).fit(shot, 0.0).place_rules == max(at.values())


@pytest.mark.parametrize(("hosts_side_by_side", "rules"), [(50, 3300), (1, 4650)])
def test_a_thousand_hosts_need_as_many_rules_as_the_guide_for_switches_says(
    hosts_side_by_side: int, rules: int
) -> None:
    hosts = {
        f"h{n}": Host(
            f"h{n}",
            address=f"10.0.{n // 250}.{n % 250 + 1}",
            more_addresses=(f"fd00::{n + 1:x}",),
            mac=f"02:00:00:00:{n >> 8:02x}:{n & 255:02x}",
            switch=1 + n // hosts_side_by_side % 20,
            switch_port=1 + n,
        )
        for n in range(1000)
    }
    jobs = tuple(job(f"j{first}", *range(first, first + 10)) for first in range(0, 1000, 10))
    at, everywhere = places(hosts, jobs, between_jobs=True).rules_at()
    assert max(at.values()) + everywhere == rules


@pytest.mark.parametrize("by_marks", [False, True])
def test_hosts_take_the_room_that_flows_leave_and_come_back_after_a_while(by_marks: bool) -> None:
    def fit(shot: Snapshot, now: float) -> tuple[Step, bool]:
        fitted = budget.fit_marks(shot, now) if by_marks else budget.fit(shot, now)
        return fitted.step, fitted.snapshot.has_places

    step = Step.MARKED if by_marks else Step.LINKS
    budget = TableBudget(10)
    few, many = snapshot(job("a", 1, 2)), snapshot(job("a", 1, 2, 3, 4, 5, 6))
    assert fit(few, 0.0) == (step, True)
    assert fit(many, 1.0) == (step, False)
    assert fit(few, 2.0) == (step, False), "not at once"
    assert fit(few, 1.0 + BACK_SECONDS) == (step, True)
    assert fit(snapshot(job("a", 1, 2, 3, 4, 5)), 50.0) == (step, True), "it is full now"
    without = compiled(replace(few, has_places=False), a=2)
    assert place_count(without) == 0
    assert sent(without, 1, 2, **ROCE) == (None, 0)


def test_where_hosts_of_different_jobs_have_no_room_those_that_share_a_job_have() -> None:
    jobs = job("a", 1, 2), job("b", 3, 4)
    budget = TableBudget(11)
    fitted = budget.fit(snapshot(*jobs), 0.0)
    assert (fitted.place_rules, fitted.snapshot.has_places, fitted.snapshot.has_places_between_jobs) == (
        12,
        True,
        False,
    )
    rules = compiled(fitted.snapshot, a=1, b=2)
    assert (place_count(rules), sent(rules, 1, 2, **ROCE)[0], sent(rules, 1, 3, **ROCE)[0]) == (8, 1, None)
    budget.budget = 7
    fitted = budget.fit(snapshot(*jobs), 1.0)
    assert (fitted.place_rules, fitted.snapshot.has_places, fitted.snapshot.has_places_between_jobs) == (
        8,
        False,
        False,
    )
    budget.budget = 15
    assert not budget.fit(snapshot(*jobs), 2.0).snapshot.has_places, "not at once"
    assert budget.fit(snapshot(*jobs), 1.0 + BACK_SECONDS).snapshot.has_places_between_jobs


def test_flows_go_before_hosts_where_there_is_not_room_for_both() -> None:
    busy = replace(job("a", 1, 2, 3), flows=tuple(Flow("a", "h1", "h2", dst_port=port) for port in range(8)))
    fitted = TableBudget(10).fit(snapshot(busy), 0.0)
    assert (fitted.step, fitted.rules, fitted.place_rules, fitted.snapshot.has_places) == (Step.LINKS, 8, 6, False)
