"""The engine against a plain simulator, its rates against progressive filling at every event: random workloads."""

from __future__ import annotations

from collections import defaultdict
from random import Random

import networkx as nx
import pytest

from controller.model import Demand, Direction, Host, Port
from controller.policies.fair import Fair
from controller.policies.las import Las
from controller.policies.sebf import Sebf
from simulator.engine import Limits, simulate
from simulator.jobs import SimJob, Transfer, Workload
from simulator.network import Graph
from tests.support.simulator.rate_watcher import Watcher, check_bottlenecks, check_conservation, check_max_min
from tests.support.simulator.sim_reference import Fixed, Reference, fixed_bands, random_workload

SEEDS = range(250)
FEWER = range(50)
"""Where the controller plans all the time, and each run takes longer."""
CLOSE = 1e-6


def by_digit(reference: Reference) -> list[list[str]]:
    return fixed_bands(list(reference.lanes))


def one_band(reference: Reference) -> list[list[str]]:
    return [list(reference.lanes)]


def smallest_bottleneck(reference: Reference) -> list[list[str]]:
    """What each job still has to send over its busiest port, as the reference knows it."""

    def left(job: str) -> float:
        load: dict[object, float] = defaultdict(float)
        lane = reference.lanes[job][0]
        # A job that has just come has not begun to send.
        flows = [(flow.left, flow.path) for flow in lane.flows] or [
            (demand.bytes, reference.path(demand.src, demand.dst)) for demand in reference.jobs[job].lanes[0][0].flows
        ]
        for size, path in flows:
            for port in path:
                load[port] += size / reference.capacity[port]
        return max(load.values())

    return [[job] for job in sorted(reference.lanes, key=lambda job: (round(left(job), 9), reference.begun[job]))]


def assert_same(outcome, reference: Reference) -> None:
    first = min(job.arrival for job in reference.jobs.values() if not job.after)
    ends = {job: found.end + first for job, found in outcome.jobs.items()}
    assert ends == pytest.approx(reference.ends, rel=CLOSE)
    for job, found in outcome.jobs.items():
        assert found.arrival + first == pytest.approx(reference.begun[job], rel=CLOSE)
        if reference.jobs[job].iterations > 1:
            assert (found.iteration_ends + first).tolist() == pytest.approx(reference.iteration_ends[job], rel=CLOSE)


@pytest.mark.parametrize("relays", [False, True])
@pytest.mark.parametrize("madd", [False, True])
def test_jobs_end_when_the_plain_simulator_says(madd, relays) -> None:
    for seed in SEEDS:
        workload = random_workload(seed, relays=relays)
        outcome = simulate(workload, Fixed(), Limits(rates="madd" if madd else "maxmin"))
        assert_same(outcome, Reference(workload, by_digit, madd=madd))


def test_fair_sharing_ends_when_the_plain_simulator_says() -> None:
    for seed in SEEDS:
        workload = random_workload(seed)
        assert_same(simulate(workload, Fair(), Limits()), Reference(workload, one_band))


def test_sebf_ranks_again_by_what_is_left_per_port() -> None:
    for seed in SEEDS:
        workload = random_workload(seed, coflows=True)
        assert_same(simulate(workload, Sebf(), Limits()), Reference(workload, smallest_bottleneck))


@pytest.mark.parametrize(("policy", "bands"), [(Fixed(), by_digit), (Sebf(), smallest_bottleneck)])
def test_a_graph_with_a_narrow_middle(policy, bands) -> None:
    for seed in SEEDS:
        # SEBF looks at every link, and is compared where it ranks by what is left.
        workload = random_workload(seed, coflows=bands is smallest_bottleneck)
        network = narrow_middle(workload)
        reference = Reference(
            workload,
            bands,
            capacity=dict(enumerate(network.capacity.tolist())),
            path=network.path,
        )
        assert_same(simulate(workload, policy, Limits(), network=network), reference)


def narrow_middle(workload: Workload) -> Graph:
    graph = nx.Graph()
    for host in workload.hosts:
        graph.add_edge(host, f"s{int(host.removeprefix('h')) % 2}")
    graph.add_edge("s0", "s1", rate_bps=8 * 1.5)
    return Graph(graph, workload.hosts)


@pytest.mark.parametrize("policy", [Fixed(), Fair(), Las(first_seconds=0.5)])
def test_rates_are_strict_between_ranks_and_max_min_inside_at_every_event(policy, monkeypatch) -> None:
    watcher = Watcher(monkeypatch, check_max_min)
    for seed in FEWER if isinstance(policy, Las) else SEEDS[:150]:
        simulate(random_workload(seed), policy, Limits())
    assert watcher.events > 1000


def test_rates_are_max_min_on_a_graph_at_every_event(monkeypatch) -> None:
    watcher = Watcher(monkeypatch, check_max_min)
    for seed in FEWER:
        workload = random_workload(seed)
        simulate(workload, Fixed(), Limits(), network=narrow_middle(workload))
    assert watcher.events > 1000


@pytest.mark.parametrize("policy", [Fair(), Sebf()])
def test_rates_are_max_min_in_shuffles_of_30_hosts_at_every_event(policy, monkeypatch) -> None:
    random = Random(7)
    names = [f"h{i}" for i in range(30)]
    jobs = tuple(
        SimJob(
            f"shuffle{number}",
            ((Transfer(tuple(Demand(a, b, random.uniform(1, 9)) for a in senders for b in names if a != b)),),),
            arrival=random.uniform(0, 20),
        )
        for number in range(3)
        for senders in [random.sample(names, random.randint(1, 8))]
    )
    watcher = Watcher(monkeypatch, check_bottlenecks)
    simulate(Workload("shuffles", {name: Host(name, 80.0, 80.0) for name in names}, jobs), policy, Limits())
    assert watcher.events > 100


@pytest.mark.parametrize("rates", ["maxmin", "madd"])
@pytest.mark.parametrize("classes", [None, 2])
def test_no_port_is_over_its_rate_and_none_idles_that_somebody_could_use(rates, classes, monkeypatch) -> None:
    watcher = Watcher(monkeypatch, check_conservation)
    for seed in FEWER if classes else SEEDS[:150]:
        simulate(random_workload(seed), Fixed(), Limits(rates=rates, classes=classes, period=1.3 if classes else None))
    assert watcher.events > 1000


def own_seconds(job: SimJob, hosts) -> float:
    load: dict[Port, float] = defaultdict(float)
    for demand in job.lanes[0][0].flows:
        load[Port(demand.src, Direction.EGRESS)] += demand.bytes * 8 / hosts[demand.src].egress_bps
        load[Port(demand.dst, Direction.INGRESS)] += demand.bytes * 8 / hosts[demand.dst].ingress_bps
    return max(load.values(), default=0.0)


@pytest.mark.parametrize("rates", ["maxmin", "madd"])
@pytest.mark.parametrize("policy", [Fixed(), Fair(), Sebf()])
def test_no_coflow_is_faster_than_its_bottleneck(policy, rates) -> None:
    for seed in SEEDS:
        workload = random_workload(seed, coflows=True)
        outcome = simulate(workload, policy, Limits(rates=rates))
        for job in workload.jobs:
            cct = outcome.jobs[job.id].end - outcome.jobs[job.id].arrival
            assert cct >= own_seconds(job, workload.hosts) * (1 - CLOSE)


def test_alone_a_coflow_takes_its_bottleneck_by_madd() -> None:
    for seed in SEEDS:
        workload = random_workload(seed, coflows=True)
        job = workload.jobs[0]
        alone = Workload("alone", workload.hosts, (job,))
        outcome = simulate(alone, Fair(), Limits(rates="madd"))
        found = outcome.jobs[job.id]
        assert found.end - found.arrival == pytest.approx(own_seconds(job, workload.hosts), rel=CLOSE)


def test_who_is_first_does_not_notice_the_others() -> None:
    for seed in SEEDS:
        workload = random_workload(seed)
        first = min(workload.jobs, key=lambda job: job.id[-1])
        if sum(job.id[-1] == first.id[-1] for job in workload.jobs) > 1 or first.after:
            continue
        alone = simulate(Workload("alone", workload.hosts, (first,)), Fixed(), Limits()).jobs[first.id]
        found = simulate(workload, Fixed(), Limits()).jobs[first.id]
        assert found.end - found.arrival == pytest.approx(alone.end - alone.arrival, rel=CLOSE)


def test_all_bytes_cross_their_ports() -> None:
    for seed in SEEDS:
        workload = random_workload(seed, relays=seed % 2 == 1)
        outcome = simulate(workload, Fixed(), Limits())
        expected: dict[Port, float] = defaultdict(float)
        for job in workload.jobs:
            for demand in (demand for lane in job.lanes for step in lane for demand in getattr(step, "flows", ())):
                expected[Port(demand.src, Direction.EGRESS)] += demand.bytes * job.iterations
                expected[Port(demand.dst, Direction.INGRESS)] += demand.bytes * job.iterations
        assert {port: size for port, size in outcome.port_bytes.items() if size} == pytest.approx(
            {port: size for port, size in expected.items() if size}
        )
        assert sum(job.bytes for job in outcome.jobs.values()) * 2 == pytest.approx(sum(expected.values()))


@pytest.mark.parametrize("quantum", [0.05, 0.5])
def test_a_quantum_wastes_no_more_than_itself_at_each_event(quantum) -> None:
    for seed in SEEDS:
        workload = random_workload(seed, coflows=True)
        exact = simulate(workload, Fair(), Limits())
        coarse = simulate(workload, Fair(), Limits(quantum=quantum))
        flows = sum(len(job.lanes[0][0].flows) for job in workload.jobs)
        for job in workload.jobs:
            assert coarse.jobs[job.id].end <= exact.jobs[job.id].end + flows * quantum + CLOSE
            cct = coarse.jobs[job.id].end - coarse.jobs[job.id].arrival
            assert cct >= own_seconds(job, workload.hosts) * (1 - CLOSE)


def test_the_same_workload_gives_the_same_outcome_to_the_last_bit() -> None:
    for seed in FEWER:
        one, two = (simulate(random_workload(seed), Fixed(), Limits()) for _ in range(2))
        assert [job.end for job in one.jobs.values()] == [job.end for job in two.jobs.values()]
        assert one.port_bytes == two.port_bytes


def test_hosts_of_any_rate() -> None:
    rates = [1e3, 1e12, 5.0, 1e9, 7.0]
    for seed in FEWER:
        shape = random_workload(seed)
        hosts = {name: Host(name, rate, rate) for name, rate in zip(shape.hosts, rates, strict=False)}
        workload = Workload("rates", hosts, shape.jobs)
        assert_same(simulate(workload, Fixed(), Limits()), Reference(workload, by_digit))
