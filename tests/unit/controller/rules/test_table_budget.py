"""Found connections as few rules; what happens where there is no room for them, and how it comes back."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from controller.code_points import POOL_2
from controller.model import Flow, Host, Job, Snapshot, Switch
from controller.rules.compiler import compile_rules
from controller.rules.marking import MAX_FOUND_MARKS, FlowMark, marks
from controller.rules.rule import Table
from controller.rules.table_budget import BACK_SECONDS, Step, TableBudget, by_pair, by_port
from tests.support.controller.dataplane.fake_switch import FakeSwitch, Packet

HOSTS = {f"h{n}": Host(f"h{n}", address=f"10.0.0.{n}", switch=1, switch_port=n) for n in range(1, 5)}


def discovered(job: str, *flows: tuple[int, int, int | None, int | None], declared: tuple[Flow, ...] = ()) -> Job:
    return Job(
        job,
        flows=declared,
        found=tuple(Flow(job, f"h{src}", f"h{dst}", sport, dport) for src, dst, sport, dport in flows),
    )


def snapshot(*jobs: Job) -> Snapshot:
    return Snapshot(0.0, HOSTS, jobs, switches=(Switch(1),), has_places=False)


def many(job: str, count: int, *, src: int = 1, first: int = 40_000) -> Job:
    """``count`` connections of which no two share a port."""
    return discovered(job, *((src, 2, first + n, 50_000 + n) for n in range(count)))


def flows_of(job: Job) -> set[tuple[str, str, int | None, int | None]]:
    return {(flow.src, flow.dst, flow.src_port, flow.dst_port) for flow in job.found}


# Fewer rules ---------------------------------------------------------------------------------------------------------


def test_one_rule_stands_for_many_sockets_that_share_a_port() -> None:
    (flows,) = by_port([discovered("a", *((1, 2, 40_000 + n, 5000) for n in range(100)), (1, 3, 40_000, 5000))])
    assert set(flows) == {Flow("a", "h1", "h2", None, 5000), Flow("a", "h1", "h3", 40_000, 5000)}


def test_a_port_that_another_job_uses_too_is_told_by_both_ports() -> None:
    a = discovered("a", (1, 2, 40_001, 5000), (1, 2, 40_002, 5000))
    b = discovered("b", (1, 2, 40_003, 5000))
    assert by_port([a, b]) == (a.found, b.found)
    declared = replace(b, found=(), flows=(Flow("b", "h1", "h2", None, 5000),))
    assert by_port([a, declared])[0] == a.found


def test_a_pair_that_one_job_alone_uses_is_one_rule() -> None:
    a, b = many("a", 50), discovered("b", (2, 1, 1, 2), (1, 3, 7, 8))
    both = discovered("c", (1, 3, 9, 10))
    assert set(by_pair([a, b, both])[0]) == {Flow("a", "h1", "h2")}
    assert set(by_pair([a, b, both])[1]) == {Flow("b", "h2", "h1"), Flow("b", "h1", "h3", 7, 8)}


PORT = st.integers(1, 4)
FLOW = st.tuples(st.integers(1, 3), st.integers(1, 3), PORT, PORT).filter(lambda flow: flow[0] != flow[1])


@settings(max_examples=300, deadline=None)
@given(st.lists(st.lists(FLOW, max_size=10, unique=True), min_size=1, max_size=3))
def test_every_packet_of_a_connection_keeps_its_class(drawn: list[list[tuple[int, int, int, int]]]) -> None:
    """The reduced flows, compiled and given packets, serve each connection as the job's that came first with it."""
    jobs = [discovered(f"j{n}", *flows) for n, flows in enumerate(drawn)]
    classes = {job.id: n for n, job in enumerate(jobs)}
    for reduce in (
        by_port,
        lambda all_jobs: by_pair([replace(j, found=f) for j, f in zip(all_jobs, by_port(all_jobs), strict=True)]),
    ):
        reduced = [replace(job, found=flows) for job, flows in zip(jobs, reduce(jobs), strict=True)]
        assert sum(len(job.found) for job in reduced) <= sum(len(set(flows)) for flows in drawn)
        switch = FakeSwitch(1, compile_rules(snapshot(*reduced), classes, mode="classified", forwarding="normal"))
        for n, flows in enumerate(drawn):
            for src, dst, sport, dport in flows:
                if any((src, dst, sport, dport) in others for others in drawn[:n] + drawn[n + 1 :]):
                    continue
                packet = Packet(ipv4_src=f"10.0.0.{src}", ipv4_dst=f"10.0.0.{dst}", tcp_src=sport, tcp_dst=dport)
                assert switch.receive(packet, src).packet.ip_dscp == POOL_2.classes[n]


# The budget ----------------------------------------------------------------------------------------------------------


def test_all_fits_and_nothing_is_another_object() -> None:
    shot = snapshot(many("a", 10))
    budget = TableBudget(10)
    fitted = budget.fit(shot, 0.0)
    assert (fitted.step, fitted.rules, fitted.needs) == (Step.LINKS, 10, 10)
    assert fitted.snapshot.jobs[0] is shot.jobs[0] and not fitted.snapshot.degraded


def test_past_the_budget_pairs_then_marks_then_back_with_room_and_after_a_while() -> None:
    budget = TableBudget(10)
    assert budget.fit(snapshot(many("a", 11)), 0.0).step is Step.PAIRS
    # Both jobs have flows between the same hosts, so no pair can stand for one of them.
    crowded = snapshot(many("a", 8), many("b", 8, first=45_000))
    fitted = budget.fit(crowded, 1.0)
    assert fitted.step is Step.MARKED and fitted.snapshot.degraded and fitted.rules == 0 and fitted.needs == 16
    rules = compile_rules(fitted.snapshot, {"a": 0, "b": 1}, mode="classified", forwarding="normal")
    assert not [rule for rule in rules if rule.job is not None]
    read = [rule.match.ip_dscp for rule in rules if rule.table is Table.CLASSIFY and rule.match.ip_dscp is not None]
    assert sorted(read) == sorted(2 * POOL_2.owned), "for IPv4 and IPv6"
    few = snapshot(many("a", 9))
    assert budget.fit(few, 2.0).step is Step.MARKED, "not at once"
    assert budget.fit(few, 1.0 + BACK_SECONDS).step is Step.PAIRS, "nine of ten leaves no room to spare"
    assert budget.fit(few, 2.0 + 2 * BACK_SECONDS).step is Step.PAIRS
    assert budget.fit(snapshot(many("a", 8)), 3.0 + 2 * BACK_SECONDS).step is Step.LINKS


def test_a_port_that_is_not_trusted_cannot_mark_itself_up_past_the_budget_either() -> None:
    switch = Switch(1, trusted_ports=frozenset({1}))
    shot = replace(snapshot(many("a", 8), many("b", 8, first=45_000)), switches=(switch,))
    fitted = TableBudget(10).fit(shot, 0.0)
    assert fitted.snapshot.degraded
    fake = FakeSwitch(1, compile_rules(fitted.snapshot, {"a": 0, "b": 1}, mode="classified", forwarding="normal"))
    for src, gets in ((1, POOL_2.classes[0]), (2, 0)):
        packet = Packet(ipv4_src=f"10.0.0.{src}", ipv4_dst="10.0.0.3", tcp_src=1, tcp_dst=2, ip_dscp=POOL_2.classes[0])
        assert fake.receive(packet, src).packet.ip_dscp == gets


def test_a_need_that_goes_up_and_down_does_not_turn_the_network_over() -> None:
    budget = TableBudget(10)
    steps = [budget.fit(snapshot(many("a", 9 + n % 3), many("b", 1, first=60_000)), n * 1.0).step for n in range(200)]
    assert sum(before is not after for before, after in pairwise(steps)) <= 1


def test_links_that_could_not_be_named_count() -> None:
    assert TableBudget(10).fit(snapshot(replace(many("a", 4), found_more=7)), 0.0).step is Step.PAIRS


def test_rules_are_counted_at_the_switch_that_holds_most() -> None:
    hosts = {name: replace(host, switch=1 + n % 2) for n, (name, host) in enumerate(HOSTS.items())}
    jobs = (many("a", 6), many("b", 5, src=2))
    shot = Snapshot(0.0, hosts, jobs, switches=(Switch(1), Switch(2)))
    assert TableBudget(6).fit(shot, 0.0).step is Step.LINKS
    nowhere = Snapshot(
        0.0, {name: replace(host, switch=None) for name, host in hosts.items()}, jobs, switches=(Switch(1),)
    )
    assert TableBudget(10).fit(nowhere, 0.0).needs == 11


def test_a_thousand_jobs_that_stay_are_looked_at_once() -> None:
    budget, shot = TableBudget(100), snapshot(*(discovered(f"j{n}", (1, 2, n + 1, 80)) for n in range(50)))
    first = budget.fit(shot, 0.0)
    again = budget.fit(replace(shot, now=1.0), 1.0)
    assert [job.found for job in again.snapshot.jobs] == [job.found for job in first.snapshot.jobs]
    assert budget._latest is not None and budget._latest.is_of(shot)


# The hosts' side -----------------------------------------------------------------------------------------------------


def test_a_host_that_knows_a_jobs_sockets_marks_the_whole_job_and_its_peer_by_flows() -> None:
    job = replace(discovered("a", (1, 2, 40_000, 5000), (2, 1, 5000, 40_000)), found_on=frozenset({"h1"}))
    marked = marks(snapshot(job), {"a": 2})
    assert marked == {
        "h1": (FlowMark("a", 2, POOL_2.classes[2], None, None, None),),
        "h2": (FlowMark("a", 2, POOL_2.classes[2], 5000, "10.0.0.1", 40_000),),
    }


def test_declared_ports_are_marked_too_after_whole_jobs() -> None:
    job = replace(discovered("a", declared=(Flow("a", "h1", "h2", None, 5000),)), found_on=frozenset({"h1"}))
    whole, by_declared = marks(snapshot(job), {"a": 0})["h1"]
    assert (whole.remote, by_declared.remote_port) == (None, 5000)


def test_a_host_without_the_jobs_sockets_gets_so_many_marks_and_no_more() -> None:
    marked = marks(snapshot(many("a", MAX_FOUND_MARKS + 50)), {"a": 0})
    assert len(marked["h1"]) == MAX_FOUND_MARKS
