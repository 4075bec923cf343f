from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.code_points import POOL_2
from controller.model import MAX_CLASSES, Flow, Host, Job, Snapshot, Switch
from controller.rules.compiler import compile_rules
from controller.rules.fabric import Fabric, Link, as_links, inner_ports, pick
from controller.rules.pipeline import Endpoint
from controller.rules.rule import Match, Rule, SetClass, Table, difference
from tests.support.controller.dataplane.fake_switch import FakeNetwork, FakeSwitch, Packet, arp

# Two leaves (1, 2) and two spines (11, 12): hosts h1..h4 on leaf 1, h5..h8 on leaf 2.
LINKS = (Link(1, 101, 11, 1), Link(1, 102, 12, 1), Link(2, 101, 11, 2), Link(2, 102, 12, 2))


def host(n: int, *, attached: bool = True) -> Host:
    leaf = 1 if n <= 4 else 2
    place = {"switch": leaf, "switch_port": n} if attached else {}
    return Host(f"h{n}", address=f"10.0.0.{n}", **place)


def fabric_switches() -> tuple[Switch, ...]:
    return tuple(Switch(dpid, inner_ports(LINKS, dpid)) for dpid in (1, 2, 11, 12))


def job(name: str, *pairs: tuple[int, int, int], arrival: float = 0.0) -> Job:
    flows = tuple(Flow(name, f"h{src}", f"h{dst}", dst_port=port) for src, dst, port in pairs)
    return Job(name, arrival=arrival, flows=flows)


def snapshot(
    *jobs: Job, switches: tuple[Switch, ...] = (Switch(1),), attached: bool = True, classes: int = 7
) -> Snapshot:
    hosts = {f"h{n}": host(n, attached=attached) for n in range(1, 9)}
    return Snapshot(now=0.0, hosts=hosts, jobs=jobs, switches=switches, classes=classes, has_places=False)


def one_switch(shot: Snapshot, classes: dict[str, int], mode: str = "classified", *, gate: bool = True) -> FakeSwitch:
    return FakeSwitch(1, compile_rules(shot, classes, mode=mode, forwarding="normal"), gate=gate)


def fabric(shot: Snapshot, classes: dict[str, int], mode: str = "classified") -> FakeNetwork:
    rules = compile_rules(shot, classes, mode=mode, forwarding="paths", links=LINKS)
    return FakeNetwork({s.dpid: FakeSwitch(s.dpid, rules) for s in shot.switches}, LINKS)


def packet(src: int, dst: int, dst_port: int, *, src_port: int = 40000, dscp: int = 0) -> Packet:
    return Packet(ipv4_src=f"10.0.0.{src}", ipv4_dst=f"10.0.0.{dst}", tcp_src=src_port, tcp_dst=dst_port, ip_dscp=dscp)


def test_a_jobs_packet_gets_its_class_and_its_dscp() -> None:
    switch = one_switch(snapshot(job("a", (1, 2, 5000))), {"a": 3})
    verdict = switch.receive(packet(1, 2, 5000), 1)
    assert (verdict.service_class, verdict.packet.ip_dscp, verdict.normal) == (3, POOL_2.classes[3], True)


def test_other_traffic_is_in_no_class_and_keeps_a_dscp_that_is_not_ours() -> None:
    switch = one_switch(snapshot(job("a", (1, 2, 5000))), {"a": 0})
    for other in (packet(1, 2, 5001), packet(2, 1, 5000), packet(1, 3, 5000), replace(packet(1, 2, 5000), ip_proto=17)):
        for dscp in (0, 46):
            verdict = switch.receive(replace(other, ip_dscp=dscp), 1)
            assert (verdict.service_class, verdict.packet.ip_dscp, verdict.normal) == (None, dscp, True)


def test_a_dscp_that_no_rule_gave_is_cleared() -> None:
    switch = one_switch(snapshot(job("a", (1, 2, 5000))), {"a": 0})
    for dscp in POOL_2.owned:
        verdict = switch.receive(packet(1, 2, 9999, dscp=dscp), 1)
        assert (verdict.service_class, verdict.packet.ip_dscp) == (None, 0)
        assert switch.receive(packet(1, 2, 5000, dscp=dscp), 1).packet.ip_dscp == POOL_2.classes[0]


def test_arp_and_the_controllers_own_traffic_are_served_first() -> None:
    rules = compile_rules(snapshot(), {}, mode="classified", forwarding="normal", control=[Endpoint("10.0.0.8", 8080)])
    switch = FakeSwitch(1, rules)
    assert switch.receive(arp("10.0.0.2"), 1).service_class == 0
    assert switch.receive(packet(1, 8, 8080), 1).service_class == 0
    assert switch.receive(packet(8, 1, 40000, src_port=8080), 1).service_class == 0
    assert switch.receive(packet(1, 8, 8081), 1).service_class is None


def test_without_the_gate_everything_is_forwarded_and_nothing_is_classified() -> None:
    switch = one_switch(snapshot(job("a", (1, 2, 5000))), {"a": 0}, gate=False)
    for item in (packet(1, 2, 5000, dscp=POOL_2.classes[2]), packet(1, 2, 1), arp("10.0.0.2")):
        verdict = switch.receive(item, 1)
        assert (verdict.service_class, verdict.packet, verdict.normal) == (None, item, True)


def test_the_gate_is_not_part_of_the_set() -> None:
    rules = compile_rules(snapshot(job("a", (1, 2, 5000))), {"a": 0}, mode="classified", forwarding="normal")
    assert [(rule.priority, rule.goto) for rule in rules if rule.table is Table.GATE] == [(0, Table.FORWARD)]


def test_a_flow_that_two_jobs_claim_is_the_earlier_ones() -> None:
    jobs = job("late", (1, 2, 5000), arrival=2.0), job("early", (1, 2, 5000), arrival=1.0)
    switch = one_switch(snapshot(*jobs), {"late": 0, "early": 4})
    assert switch.receive(packet(1, 2, 5000), 1).service_class == 4


def test_a_packet_that_fits_two_jobs_goes_by_its_destination_port() -> None:
    by_source = Job("s", flows=(Flow("s", "h1", "h2", src_port=6000),))
    switch = one_switch(snapshot(by_source, job("d", (1, 2, 5000))), {"s": 1, "d": 2})
    assert switch.receive(packet(1, 2, 5000, src_port=6000), 1).service_class == 2
    assert switch.receive(packet(1, 2, 1, src_port=6000), 1).service_class == 1


def test_jobs_without_a_class_and_hosts_without_an_address_are_left_out() -> None:
    shot = snapshot(job("a", (1, 2, 5000)), job("b", (1, 3, 5000)))
    hosts = dict(shot.hosts) | {"h3": Host("h3")}
    rules = compile_rules(replace(shot, hosts=hosts), {"b": 1}, mode="classified", forwarding="normal")
    assert not [rule for rule in rules if rule.job is not None]


@pytest.mark.parametrize("wrong", [-1, 3, 7])
def test_a_class_that_does_not_exist_is_refused(wrong: int) -> None:
    with pytest.raises(ValueError, match="job a: class"):
        compile_rules(snapshot(job("a"), classes=3), {"a": wrong}, mode="classified", forwarding="normal")


def test_flows_are_classified_where_their_source_is_attached_or_everywhere() -> None:
    def where(*, attached: bool) -> set[int]:
        shot = snapshot(job("a", (1, 5, 5000)), switches=fabric_switches(), attached=attached)
        rules = compile_rules(shot, {"a": 0}, mode="classified", forwarding="normal")
        return {rule.switch for rule in rules if rule.job == "a"}

    assert where(attached=True) == {1}
    assert where(attached=False) == {1, 2, 11, 12}


def test_marked_mode_costs_a_rule_a_class_whatever_the_jobs() -> None:
    few = compile_rules(snapshot(), {}, mode="marked", forwarding="normal")
    jobs = [job(f"j{i}", (1, 2, 5000 + i)) for i in range(100)]
    many = compile_rules(snapshot(*jobs), {j.id: i % 7 for i, j in enumerate(jobs)}, mode="marked", forwarding="normal")
    assert few == many
    by_dscp = [rule for rule in many if rule.table is Table.CLASSIFY and rule.match.ip_dscp is not None]
    assert len(by_dscp) == 2 * (MAX_CLASSES + 1), "for IPv4 and IPv6"
    switch = FakeSwitch(1, many)
    for k, dscp in [*enumerate(POOL_2.classes), (0, POOL_2.acknowledgements)]:
        verdict = switch.receive(packet(1, 2, 5000, dscp=dscp), 1)
        assert (verdict.service_class, verdict.packet.ip_dscp) == (k, dscp)
    assert switch.receive(packet(1, 2, 5000), 1).service_class is None


def test_marked_mode_clears_the_dscp_of_a_port_that_is_not_trusted() -> None:
    switches = (Switch(1, inner_ports=frozenset({101}), trusted_ports=frozenset({1})),)
    switch = one_switch(snapshot(switches=switches), {}, "marked")
    for k, dscp in [*enumerate(POOL_2.classes), (0, POOL_2.acknowledgements)]:
        for port in (1, 101):
            verdict = switch.receive(packet(1, 2, 5000, dscp=dscp), port)
            assert (verdict.service_class, verdict.packet.ip_dscp) == (k, dscp)
        verdict = switch.receive(packet(2, 1, 5000, dscp=dscp), 2)
        assert (verdict.service_class, verdict.packet.ip_dscp) == (None, 0)


@pytest.mark.parametrize("attached", [True, False])
def test_acknowledgements_go_first_where_the_host_marks_them(attached: bool) -> None:
    shot = snapshot(job("a", (1, 2, 5000), (3, 2, 5000)), attached=attached)
    switch = one_switch(replace(shot, acknowledging=frozenset({"h1", "gone"})), {"a": 4})
    believed = switch.receive(packet(1, 2, 5000, dscp=POOL_2.acknowledgements), 1)
    assert (believed.service_class, believed.packet.ip_dscp) == (0, POOL_2.acknowledgements)
    for dscp in POOL_2.classes:
        assert switch.receive(packet(1, 2, 5000, dscp=dscp), 1).service_class == 4, "the host's plan may be outdated"
    # Nobody on the third host keeps programs from setting it.
    verdict = switch.receive(packet(3, 2, 5000, dscp=POOL_2.acknowledgements), 3)
    assert (verdict.service_class, verdict.packet.ip_dscp) == (4, POOL_2.classes[4])


def test_acknowledgements_of_a_host_that_is_not_trusted_stay_with_their_job() -> None:
    switches = (Switch(1, trusted_ports=frozenset({2})),)
    shot = snapshot(job("a", (1, 3, 5000), (2, 3, 5000)), switches=switches)
    switch = one_switch(replace(shot, acknowledging=frozenset({"h1", "h2"})), {"a": 4})
    verdicts = [switch.receive(packet(n, 3, 5000, dscp=POOL_2.acknowledgements), n) for n in (1, 2)]
    assert [verdict.service_class for verdict in verdicts] == [4, 0]


@pytest.mark.parametrize("mode", ["classified", "marked"])
def test_acknowledgements_go_first_on_every_hop_of_a_fabric(mode: str) -> None:
    shot = snapshot(job("a", (1, 5, 5000)), switches=fabric_switches())
    network = fabric(replace(shot, acknowledging=frozenset({"h1"})), {"a": 2}, mode)
    hops, left = network.send(packet(1, 5, 5000, dscp=POOL_2.acknowledgements), 1, 1)
    assert left == (2, 5)
    assert [hop.verdict.service_class for hop in hops] == [0, 0, 0]


@pytest.mark.parametrize("mode", ["classified", "marked"])
def test_a_class_is_kept_on_every_hop_of_a_fabric(mode: str) -> None:
    pairs = [(src, dst) for src in range(1, 9) for dst in range(1, 9) if src != dst]
    shot = snapshot(job("a", *((s, d, 5000) for s, d in pairs)), switches=fabric_switches())
    network = fabric(shot, {"a": 2}, mode)
    sent = POOL_2.classes[2] if mode == "marked" else 0
    for src, dst in pairs:
        hops, left = network.send(packet(src, dst, 5000, dscp=sent), 1 if src <= 4 else 2, src)
        assert left == (1 if dst <= 4 else 2, dst)
        assert [hop.verdict.service_class for hop in hops] == [2] * len(hops)
        assert [hop.verdict.packet.ip_dscp for hop in hops] == [POOL_2.classes[2]] * len(hops)
        assert len(hops) == (1 if (src <= 4) == (dst <= 4) else 3)


def test_a_fabric_believes_no_host_and_floods_nothing() -> None:
    shot = snapshot(switches=fabric_switches())
    network = fabric(shot, {})
    hops, left = network.send(packet(1, 5, 7777, dscp=POOL_2.classes[0]), 1, 1)
    assert left == (2, 5)
    assert {(hop.verdict.service_class, hop.verdict.packet.ip_dscp) for hop in hops} == {(None, 0)}
    hops, left = network.send(arp("10.0.0.6"), 1, 1)
    assert left == (2, 6)
    assert {hop.verdict.service_class for hop in hops} == {0}
    assert network.send(arp("10.9.9.9"), 1, 1)[1] is None
    assert network.send(Packet(eth_type=0x86DD, ip_proto=None, ip_dscp=None), 1, 1)[1] is None


def test_destinations_share_the_spines() -> None:
    next_hops = Fabric(LINKS).next_hops(2, {1, 2, 11, 12})
    assert next_hops[1] == (101, 102)
    assert {pick(next_hops[1], f"10.0.0.{n}") for n in range(1, 9)} == {101, 102}


def test_a_spine_that_is_not_ready_is_avoided_but_never_at_the_price_of_the_path() -> None:
    assert Fabric(LINKS).next_hops(2, {1, 2, 12})[1] == (102,)
    assert Fabric(LINKS).next_hops(2, {1, 2})[1] == (101, 102)
    assert Fabric(LINKS).next_hops(7, {1, 2}) == {}


def test_links_are_the_same_from_either_end() -> None:
    turned = [Link(link.b, link.b_port, link.a, link.a_port) for link in LINKS]
    assert as_links(turned) == as_links([*LINKS, *turned]) == tuple(sorted(LINKS))


def test_a_rule_that_stays_is_in_no_difference_and_one_that_is_replaced_is_not_removed() -> None:
    stays = Rule(1, Table.CLASSIFY, 1, Match(tcp_dst=1), goto=Table.FORWARD)
    old, new = (Rule(1, Table.CLASSIFY, 1, Match(tcp_dst=2), goto=goto) for goto in (None, Table.FORWARD))
    gone = Rule(1, Table.CLASSIFY, 1, Match(tcp_dst=3))
    change = difference(frozenset({stays, old, gone}), frozenset({stays, new}))
    assert (change.add, change.remove) == ({new}, {gone})
    assert not difference(frozenset({stays}), frozenset({stays}))


PORTS = st.one_of(st.none(), st.integers(1, 4))
FLOWS = st.lists(st.tuples(st.integers(1, 8), st.integers(1, 8), PORTS, PORTS), max_size=8)
JOBS = st.lists(FLOWS, max_size=5)


@settings(max_examples=60, deadline=None)
@given(JOBS, st.lists(st.one_of(st.none(), st.integers(0, 6)), min_size=5, max_size=5), st.booleans(), st.booleans())
def test_no_two_rules_share_a_place_and_every_packet_has_one_answer(
    drawn: list[list[tuple[int, int, int | None, int | None]]],
    levels: list[int | None],
    attached: bool,
    paths: bool,
) -> None:
    jobs = tuple(
        Job(f"j{i}", arrival=float(-i), flows=tuple(Flow(f"j{i}", f"h{s}", f"h{d}", sp, dp) for s, d, sp, dp in flows))
        for i, flows in enumerate(drawn)
    )
    classes = {f"j{i}": k for i, k in enumerate(levels) if k is not None and i < len(jobs)}
    shot = snapshot(*jobs, switches=fabric_switches(), attached=attached)
    rules = compile_rules(shot, classes, mode="classified", forwarding="paths" if paths else "normal", links=LINKS)
    assert len({rule.key for rule in rules}) == len(rules)
    edge = {dpid: FakeSwitch(dpid, rules) for dpid in (1, 2)}
    for flows in drawn:
        for src, dst, sp, dp in flows:
            sent = packet(src, dst, dp or 1, src_port=sp or 1)
            verdict = edge[1 if src <= 4 else 2].receive(sent, src)
            claims = {
                j.id: classes.get(j.id)
                for j in jobs
                for f in j.flows
                if (f.src, f.dst) == (f"h{src}", f"h{dst}")
                and f.src_port in (None, sent.tcp_src)
                and f.dst_port in (None, sent.tcp_dst)
            }
            possible = {k for k in claims.values() if k is not None} or {None}
            assert verdict.service_class in possible
            expected = 0 if verdict.service_class is None else POOL_2.classes[verdict.service_class]
            assert verdict.packet.ip_dscp == expected


@settings(max_examples=60, deadline=None)
@given(JOBS, JOBS)
def test_a_difference_turns_one_set_into_the_other(
    before: list[list[tuple[int, int, int | None, int | None]]],
    after: list[list[tuple[int, int, int | None, int | None]]],
) -> None:
    def compiled(drawn: list[list[tuple[int, int, int | None, int | None]]], shift: int) -> frozenset[Rule]:
        jobs = tuple(
            Job(f"j{i}", flows=tuple(Flow(f"j{i}", f"h{s}", f"h{d}", sp, dp) for s, d, sp, dp in flows))
            for i, flows in enumerate(drawn)
        )
        classes = {j.id: (i + shift) % 7 for i, j in enumerate(jobs)}
        return compile_rules(snapshot(*jobs), classes, mode="classified", forwarding="normal")

    held, wanted = compiled(before, 0), compiled(after, 1)
    change = difference(held, wanted)
    table = {rule.key: rule for rule in held - change.remove} | {rule.key: rule for rule in change.add}
    assert frozenset(table.values()) == wanted
    assert not change.add & held
    assert {rule.key for rule in change.add}.isdisjoint(rule.key for rule in change.remove)


def test_of_a_thousand_jobs_only_those_that_move_are_compiled_again() -> None:
    hosts = {
        f"h{n}": Host(f"h{n}", address=f"10.0.{n // 250}.{n % 250}", switch=n % 20 + 1, switch_port=n)
        for n in range(1000)
    }
    jobs = tuple(
        Job(
            f"j{i}",
            flows=tuple(
                flow
                for w in range(1, 9)
                for flow in (
                    Flow(f"j{i}", f"h{i}", f"h{(i + w) % 1000}", src_port=5000),
                    Flow(f"j{i}", f"h{(i + w) % 1000}", f"h{i}", dst_port=5000),
                )
            ),
        )
        for i in range(1000)
    )
    shot = Snapshot(0.0, hosts, jobs, switches=tuple(Switch(n) for n in range(1, 21)), has_places=False)
    before, after = (
        compile_rules(
            shot,
            {j.id: (i + (moved and i < 50)) % 7 for i, j in enumerate(jobs)},
            mode="classified",
            forwarding="normal",
        )
        for moved in (False, True)
    )
    assert sum(rule.job is not None for rule in after) == 16_000
    # Only the rules of the 50 jobs are new objects: those of all others are remembered.
    known = set(map(id, before))
    assert sum(rule.job is not None and id(rule) not in known for rule in after) == 50 * 16


def test_rules_that_are_remembered_are_those_of_the_class_the_claims_and_the_switches_of_now() -> None:
    def compiled(classes: dict[str, int], order: tuple[str, ...] = ("a", "b")) -> frozenset[Rule]:
        flows = {job: (Flow(job, "h1", "h2", dst_port=port), Flow(job, "h1", "h2", dst_port=9)) for job, port in PORTS}
        jobs = tuple(Job(job, arrival=float(order.index(job)), flows=kept.setdefault(job, flows[job])) for job in order)
        shot = Snapshot(now=0.0, hosts=TWO_HOSTS, jobs=jobs, switches=(Switch(1),), has_places=False)
        return compile_rules(shot, classes, mode="classified", forwarding="normal")

    kept: dict[str, tuple[Flow, ...]] = {}
    for service_class in (0, 3, 0, 6):
        rules = compiled({"a": service_class, "b": 1})
        assert {(r.job, r.match.tcp_dst, r.actions[0]) for r in rules if r.job} == {
            ("a", 5, SetClass(service_class)),
            ("a", 9, SetClass(service_class)),
            ("b", 6, SetClass(1)),
        }
    turned = {(r.job, r.match.tcp_dst) for r in compiled({"a": 0, "b": 1}, ("b", "a")) if r.job}
    assert turned == {("b", 6), ("b", 9), ("a", 5)}
    assert compiled({"a": 0, "b": 1}) == compiled({"a": 0, "b": 1})


PORTS = (("a", 5), ("b", 6))
TWO_HOSTS = {f"h{i}": Host(f"h{i}", address=f"10.0.0.{i}", switch=1, switch_port=i) for i in (1, 2)}
