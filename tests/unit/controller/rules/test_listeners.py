"""Ports that a job's tasks listen on: two rules and two marks each, and the same answer as a rule for each pair."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.code_points import POOL_2
from controller.config.config import Config, LinkEntry
from controller.config.current import CurrentSettings
from controller.declared.claimed_traffic import FEW_FLOWS, ClaimedTraffic, size_of
from controller.journal.store import Store
from controller.loop.host_plans import HostPlans
from controller.model import Demand, Flow, Host, Job, Listeners, Snapshot, Switch
from controller.ordering.loads import port_numbers
from controller.refusals import Conflict
from controller.rules.compiler import compile_rules
from controller.rules.fabric import Link, inner_ports, routes
from controller.rules.marking import FlowMark, PortMarks, marks
from controller.rules.rule import Rule, difference
from controller.rules.table_budget import Step, TableBudget, by_pair
from controller.wire import JobSpec
from tests.support.controller.dataplane.fake_switch import FakeSwitch, Packet
from tests.support.controller.registry.registry_world import Clock, World
from tests.support.controller.registry.unpaused import UnpausedRegistry

LINKS = (Link(1, 101, 11, 1), Link(2, 101, 11, 2))
SWITCHES = tuple(Switch(dpid, inner_ports(LINKS, dpid)) for dpid in (1, 2, 11))
PORT = 5000


def spec_of(hosts: int, *, ports: int = 1, **parts: Any) -> JobSpec:
    """Peers on so many hosts, which all listen."""
    tasks = [{"role": "peer", "host": f"h{n}", "port": PORT + k} for n in range(hosts) for k in range(ports)]
    return JobSpec.model_validate({"tasks": tasks} | parts)


def hosts_of(count: int, leaves: int = 1) -> dict[str, Host]:
    return {
        f"h{n}": Host(f"h{n}", address=f"10.0.{n // 250}.{n % 250}", switch=1 + n % leaves, switch_port=1 + n)
        for n in range(count)
    }


def listening(job: str, *ends: tuple[int, int], among: tuple[int, ...], **fields: Any) -> Job:
    names = tuple(sorted(f"h{n}" for n in among))
    return Job(job, listeners=Listeners(tuple(sorted((f"h{n}", port) for n, port in ends)), names), **fields)


def as_pairs(job: Job) -> Job:
    """The same job with a flow for each pair of hosts."""
    flows = set()
    for host, port in job.listeners.ends:
        for other in set(job.listeners.among) - {host}:
            flows |= {Flow(job.id, other, host, None, port), Flow(job.id, host, other, port, None)}
    return replace(job, flows=tuple(sorted(flows, key=str)), listeners=Listeners())


def compiled(hosts: dict[str, Host], *jobs: Job, switches: tuple[Switch, ...] = SWITCHES) -> frozenset[Rule]:
    shot = Snapshot(0.0, hosts, jobs, switches=switches, has_places=False)
    return compile_rules(shot, {job.id: k for k, job in enumerate(jobs)}, mode="classified", forwarding="normal")


def packet(src: Host, dst: Host, sport: int, dport: int, dscp: int = 0) -> Packet:
    return Packet(ipv4_src=src.address, ipv4_dst=dst.address, tcp_src=sport, tcp_dst=dport, ip_dscp=dscp)


# How much there is ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("leaves", [1, 4])
def test_the_rules_of_a_job_grow_with_its_tasks_and_not_with_their_pairs(leaves: int) -> None:
    def count(tasks: int) -> tuple[int, int]:
        claimed = ClaimedTraffic.of(spec_of(tasks))
        job = Job("a", flows=tuple(Flow("a", *key) for key in claimed.flows), listeners=claimed.listeners)
        hosts, switches = hosts_of(tasks, leaves), tuple(Switch(n + 1) for n in range(leaves))
        shot = Snapshot(0.0, hosts, (job,), switches=switches, has_places=False)
        all_marks = [mark for of_host in marks(shot, {"a": 0}).values() for mark in of_host]
        ports = {id(mark) for mark in all_marks if isinstance(mark, PortMarks)}
        assert len(ports) == 1, "all hosts share one object"
        return sum(rule.job == "a" for rule in compiled(hosts, job, switches=switches)), len(all_marks)

    for tasks in (100, 200, 400):
        assert count(tasks) == ((1 + leaves) * tasks, 2 * tasks)


def test_a_job_of_4096_tasks_is_kept_as_its_ports() -> None:
    hosts = hosts_of(4096)
    registry = UnpausedRegistry(hosts, Store(None), Clock())
    registry.put_job("a", spec_of(4096), 0.0)
    (job,) = registry.snapshot(0.0, classes=7, period=5.0).jobs
    assert (len(job.flows), len(job.listeners.ends), len(job.listeners.among)) == (0, 4096, 4096)
    assert size_of(spec_of(4096)) == 3 * 4096


def test_few_pairs_are_flows_that_name_both_ends_and_so_are_a_rings() -> None:
    for spec in (
        spec_of(8),
        spec_of(2, ports=500),
        spec_of(600, demand=[{"src": f"h{n}", "dst": f"h{(n + 1) % 600}", "bytes": 1} for n in range(600)]),
    ):
        claimed = ClaimedTraffic.of(spec)
        assert not claimed.listeners.ends and 2 * len(spec.tasks) <= len(claimed.flows) <= 4 * len(spec.tasks) + 100
    many = spec_of(9)
    assert FEW_FLOWS < 2 * 9 * 8
    assert ClaimedTraffic.of(many).listeners == Listeners(
        tuple((f"h{n}", PORT) for n in range(9)), tuple(f"h{n}" for n in range(9))
    )


def test_of_a_large_job_with_demand_the_hosts_that_it_names_talk() -> None:
    server = {"role": "ps", "host": "h0", "port": PORT}
    idle = {"role": "worker", "host": "h999", "port": 1}
    demand = [{"src": f"h{n}", "dst": "h0", "bytes": 1} for n in range(1, 101)]
    claimed = ClaimedTraffic.of(JobSpec.model_validate({"tasks": [server, idle], "demand": demand}))
    assert claimed.listeners.ends == (("h0", PORT),)
    assert claimed.listeners.among == tuple(sorted(f"h{n}" for n in range(101)))
    assert not claimed.flows


# What it does to packets ---------------------------------------------------------------------------------------------

PLACES = st.sampled_from([(1, True), (1, False), (2, True), (None, False)])
ENDS = st.lists(st.tuples(st.integers(0, 5), st.integers(1, 3)), max_size=5, unique=True)


@settings(max_examples=200, deadline=None)
@given(st.lists(PLACES, min_size=6, max_size=6), ENDS, ENDS, st.sets(st.integers(0, 5), min_size=2))
def test_ports_give_each_packet_among_the_jobs_hosts_the_class_that_pairs_do(
    places: list[tuple[int | None, bool]], first: list[tuple[int, int]], second: list[tuple[int, int]], among: set[int]
) -> None:
    """The switch where a packet enters gives it the class, whether hosts' sites are known or not, as does its host."""
    hosts = {
        f"h{n}": Host(f"h{n}", address=f"10.0.0.{n}", switch=at, switch_port=n + 1 if known else None)
        for n, (at, known) in enumerate(places)
    }
    jobs = [
        listening("a", *(end for end in first if end[0] in among), among=tuple(among)),
        listening("b", *(end for end in second if end not in first), among=tuple(range(6))),
    ]
    by_ports, by_pairs = compiled(hosts, *jobs), compiled(hosts, *map(as_pairs, jobs))
    switches = {dpid: [FakeSwitch(dpid, rules) for rules in (by_ports, by_pairs)] for dpid in (1, 2)}
    marked = marks(Snapshot(0.0, hosts, tuple(jobs), switches=SWITCHES), {"a": 0, "b": 1})
    for src in range(6):
        of_host = _each(marked.get(f"h{src}", ()))
        for dst in range(6):
            for sport in range(1, 4):
                for dport in range(1, 4):
                    if src == dst or not {src, dst} <= among:
                        continue
                    sent = packet(hosts[f"h{src}"], hosts[f"h{dst}"], sport, dport)
                    for dpid in (1, 2) if places[src][0] is None else (places[src][0],):
                        got, wanted = (switch.receive(sent, src + 1) for switch in switches[dpid])
                        assert got.packet.ip_dscp == wanted.packet.ip_dscp
                    assert _marked(of_host, sent) == wanted.packet.ip_dscp


def _each(of_host: tuple[FlowMark | PortMarks, ...]) -> list[FlowMark]:
    return [mark for entry in of_host for mark in (entry.each() if isinstance(entry, PortMarks) else (entry,))]


def _marked(of_host: list[FlowMark], sent: Packet) -> int:
    for mark in of_host:
        if (
            mark.remote in (None, sent.ipv4_dst)
            and mark.local_port in (None, sent.tcp_src)
            and mark.remote_port in (None, sent.tcp_dst)
        ):
            return mark.dscp
    return 0


def test_a_host_that_is_none_of_the_jobs_rides_along_only_where_several_of_its_hosts_are() -> None:
    hosts = hosts_of(9, leaves=3)  # h0, h3, h6 at switch 1; h1, h4, h7 at 2; h2, h5, h8 at 3
    job = listening("a", (0, PORT), among=(0, 1, 3, 6))
    rules = compiled(hosts, job, switches=(Switch(1), Switch(2), Switch(3)))
    target = hosts["h0"]

    def gets(src: int, in_port: int | None = None) -> int | None:
        host = hosts[f"h{src}"]
        sent = packet(host, target, 40_000, PORT)
        return FakeSwitch(host.switch or 0, rules).receive(sent, in_port or host.switch_port or 0).packet.ip_dscp

    assert gets(3) == gets(6) == gets(1) == POOL_2.classes[0]
    assert gets(4) == 0, "at the second switch one host alone may send, and is known by its port"
    assert gets(1, in_port=hosts["h4"].switch_port) == 0, "whatever address another one uses"
    assert gets(2) == 0, "at the third nobody may"


def test_no_host_passes_for_another_at_its_switch() -> None:
    hosts = hosts_of(8)
    declared = Job("a", flows=(Flow("a", "h0", "h1", None, 80),), found=(Flow("a", "h1", "h0", 80, 41_000),))
    port = listening("b", (2, PORT), among=(2, 3))
    shot = Snapshot(0.0, hosts, (declared, port), switches=(Switch(1),), acknowledging=frozenset({"h5"}))
    rules = compile_rules(shot, {"a": 1, "b": 2}, mode="classified", forwarding="normal")
    switch = FakeSwitch(1, rules)
    for src, dst, sport, dport, dscp, service_class in (
        ("h0", "h1", 41_000, 80, 0, 1),
        ("h1", "h0", 80, 41_000, 0, 1),
        ("h2", "h3", PORT, 9, 0, 2),
        ("h3", "h2", 9, PORT, 0, 2),
        ("h5", "h6", 1, 2, POOL_2.acknowledgements, 0),
    ):
        sent = packet(hosts[src], hosts[dst], sport, dport, dscp)
        assert switch.receive(sent, hosts[src].switch_port or 0).service_class == service_class
        forged = switch.receive(sent, hosts["h7"].switch_port or 0)
        assert (forged.service_class, forged.packet.ip_dscp) == (None, 0)


def test_a_switch_that_holds_rules_without_the_port_takes_a_difference_alone() -> None:
    hosts = hosts_of(3)
    job = Job("a", flows=(Flow("a", "h0", "h1", None, 80),))
    before = compiled({name: replace(host, switch_port=None) for name, host in hosts.items()}, job)
    change = difference(before, compiled(hosts, job))
    assert {rule.match.in_port for rule in change.add} == {1}
    assert {rule.match.in_port for rule in change.remove} == {None}
    assert len(change.add) == len(change.remove) == 1


# Whose it is, and who else there is ----------------------------------------------------------------------------------


def test_a_port_of_a_large_job_is_nobody_elses_and_neither_are_connections_to_it() -> None:
    clock = Clock()
    registry = UnpausedRegistry(hosts_of(20), Store(None), clock)
    registry.put_job("a", spec_of(12), 0.0)
    spec = {"tasks": [{"role": "ps", "host": "h3", "port": PORT}, {"role": "worker", "host": "h19"}]}
    with pytest.raises(Conflict, match="both claim port 5000 on h3"):
        registry.put_job("b", JobSpec.model_validate(spec), 0.0)
    flow = {"flows": [{"src": "h1", "dst": "h3", "dst_port": PORT}]}
    with pytest.raises(Conflict, match="both claim port 5000 on h3"):
        registry.put_job("b", JobSpec.model_validate(flow), 0.0)
    registry.put_job("b", JobSpec.model_validate(spec | {"tasks": [spec["tasks"][1], spec["tasks"][1]]}), 0.0)
    assert [job.id for job in registry.snapshot(0.0, classes=7, period=5.0).jobs] == ["a", "b"]


def test_what_hosts_find_of_a_large_jobs_own_ports_is_known_already() -> None:
    world = World()
    tasks = [{"role": "peer", "host": f"h{1 + n % 5}", "port": 6000 + n} for n in range(40)]
    world.put(tasks=tasks)
    (job,) = world.snapshot().jobs
    assert len(job.listeners.ends) == 40 and not job.flows
    world.tell(flows=[{"job": "a", "flow": {"src": "h1", "dst": "h2", "src_port": 41_000, "dst_port": 6001}}])
    assert not world.snapshot().jobs[0].flows
    world.tell(flows=[{"job": "a", "flow": {"src": "h1", "dst": "h2", "src_port": 41_000, "dst_port": 9}}])
    assert len(world.snapshot().jobs[0].flows) == 1
    world.put("b", tasks=[{"role": "worker", "host": "h1"}, {"role": "worker", "host": "h2"}])
    answer = world.tell(flows=[{"job": "b", "flow": {"src": "h1", "dst": "h2", "src_port": 4, "dst_port": 6001}}])
    assert [refusal.reason for refusal in answer.refused] == ["flow h1 to h2: it belongs to job a"]


def test_a_job_meets_others_at_the_links_that_its_pairs_cross() -> None:
    hosts = hosts_of(10, leaves=2)
    cables = [LinkEntry(a=leaf, a_port=101, b=11, b_port=leaf, rate_bps=1e9) for leaf in (1, 2)]
    known = routes(hosts, cables, (1, 2, 11), computed=True)
    for among in ((0, 2, 4), (0, 1, 2, 3), (5, 7, 0)):
        job = listening("a", *((n, PORT) for n in among[1:]), among=among, demand=(Demand("h9", "h8", 1.0),))
        for way in (None, known):
            numbers = port_numbers(hosts, way)
            assert numbers.used_by(job).tolist() == numbers.used_by(as_pairs(job)).tolist()


@pytest.mark.parametrize("leaves", [1, 2, 3])
def test_the_budget_counts_the_rules_that_there_are(leaves: int) -> None:
    hosts = hosts_of(7, leaves)
    switches = tuple(Switch(n + 1) for n in range(leaves))
    for spoil in ({}, {"h6": replace(hosts["h6"], switch=None, switch_port=None)}):
        job = listening("a", *((n, PORT + k) for n in (0, 1, 6) for k in range(3)), among=(0, 1, 2, 4, 6))
        shot = Snapshot(0.0, hosts | spoil, (job,), switches=switches, has_places=False)
        rules = [rule for rule in compiled(hosts | spoil, job, switches=switches) if rule.job]
        most = max(sum(rule.switch == switch.dpid for rule in rules) for switch in switches)
        fitted = TableBudget(most).fit(shot, 0.0)
        assert (fitted.rules, fitted.step) == (most, Step.LINKS)
        assert TableBudget(most - 1).fit(shot, 0.0).step is Step.MARKED


def test_a_pair_that_one_job_has_found_leaves_a_listening_port_of_another_to_it() -> None:
    hosts = hosts_of(4)
    large = listening("a", (0, PORT), among=(0, 1, 2))
    finder = Job("b", found=(Flow("b", "h1", "h0", 41_000, 42_000),))
    (_, pair) = by_pair([large, finder])
    rules = compiled(hosts, large, replace(finder, found=pair))
    switch = FakeSwitch(1, rules)
    assert switch.receive(packet(hosts["h1"], hosts["h0"], 41_000, PORT), 2).service_class == 0
    assert switch.receive(packet(hosts["h1"], hosts["h0"], 41_000, 42_000), 2).service_class == 1


def test_a_hosts_plan_names_every_port_and_its_epoch_follows_them() -> None:
    hosts = [{"name": f"h{n}", "address": f"10.0.0.{n + 1}"} for n in range(4)]
    config = Config.model_validate({"hosts": hosts})

    def host_plan(plans: HostPlans, *ports: int) -> tuple[Any, str]:
        job = listening("a", *((0, port) for port in ports), among=(0, 1, 2))
        plans.update("fifo", marks(Snapshot(0.0, config.host_map(), (job,)), {"a": 1}))
        return plans.get("h1")

    plans = HostPlans(CurrentSettings(config), {})
    plan, tag = host_plan(plans, 80, 81)
    assert [(m.local_port, m.remote, m.remote_port) for m in plan.marks] == [
        (None, "10.0.0.1", 80),
        (None, "10.0.0.1", 81),
    ]
    own = plans.get("h0")[0]
    assert own is not None
    assert {(m.local_port, m.remote) for m in own.marks if m.remote is None} == {(80, None), (81, None)}
    assert host_plan(plans, 81, 80)[1] == tag, "nothing has changed"
    restarted = HostPlans(CurrentSettings(config), plans.record())
    assert host_plan(restarted, 80, 81)[1] == tag, "the epoch survives a restart"
    assert host_plan(plans, 80, 82)[1] != tag
    other = plans.get("h3")[0]
    assert other is not None and not other.marks
