"""What policies are shown of a graph: the links on every path, at their rates, and nothing that will never be sent."""

from __future__ import annotations

from collections.abc import Mapping

import networkx as nx
import pytest

from controller.model import Demand, Direction, Host, Ordering, Port, Snapshot
from controller.ordering.loads import load_matrix, port_numbers
from controller.policies.base import Policy
from controller.policies.fifo import Fifo
from controller.policies.registry import make
from simulator.engine import Limits, simulate
from simulator.jobs import Compute, SimJob, Transfer, Workload
from simulator.network import Graph, Hose
from simulator.workloads.coflow_trace import parse
from tests.support.paths import GOLDEN
from tests.support.shared_ports import seconds_by_port

HOSTS = {f"h{i}": Host(f"h{i}", 8.0, 8.0) for i in range(4)}
SIX = GOLDEN / "six.txt"
OUT, IN = Direction.EGRESS, Direction.INGRESS
TRUNK = Port("left--right", OUT)


class Spy(Policy):
    """First in, first out, and remembers what it was shown."""

    name = "spy"

    def __init__(self) -> None:
        self.shown: list[Snapshot] = []

    def order(self, snapshot: Snapshot, previous: Ordering | None) -> Ordering:
        self.shown.append(snapshot)
        return Fifo().order(snapshot, previous)

    def loads(self, number: int) -> dict[str, dict[Port, float]]:
        """The seconds a port of every job that was in a snapshot."""
        shot = self.shown[number]
        numbers, matrix = port_numbers(shot.hosts, shot.routes), load_matrix(shot)
        return {job.id: seconds_by_port(matrix, row, numbers) for row, job in enumerate(shot.jobs)}


def dumbbell(trunk_bps: float, **rates: float) -> nx.Graph:
    graph = nx.Graph([("h0", "left"), ("h1", "left"), ("h2", "right"), ("h3", "right")])
    graph.add_edge("left", "right", rate_bps=trunk_bps)
    for host, rate in rates.items():
        graph.edges[host, "left" if host in ("h0", "h1") else "right"]["rate_bps"] = rate
    return graph


def coflow(name: str, *flows: tuple[str, str, float], arrival: float = 0.0) -> SimJob:
    return SimJob(name, lanes=((Transfer(tuple(Demand(*flow) for flow in flows)),),), arrival=arrival)


def run(jobs, graph: nx.Graph, policy: Policy, hosts: Mapping[str, Host] = HOSTS, **limits):
    return simulate(Workload("w", hosts, tuple(jobs)), policy, Limits(**limits), network=Graph(graph, hosts))


def ends(outcome) -> dict[str, float]:
    return {name: job.end for name, job in outcome.jobs.items()}


# Coflows of several pairs, over the trunk and beside it.
A = coflow("A", ("h0", "h2", 1.0), ("h0", "h3", 0.5), ("h1", "h3", 1.0))
B = coflow("B", ("h1", "h0", 1.6), ("h1", "h2", 0.3))


@pytest.mark.parametrize("policy", ["sebf", "sincronia"])
def test_coflows_are_ordered_by_the_trunk(policy: str) -> None:
    jobs = coflow("A", ("h0", "h2", 1.0)), coflow("B", ("h1", "h0", 1.5), ("h1", "h3", 0.2))
    # Over a trunk of a tenth of the ports' rate A needs 10 s and B 2 s.
    found = ends(run(jobs, dumbbell(0.8), make(policy)))
    assert found == pytest.approx({"A": 12.0, "B": 2.0})
    # A wide one orders nobody: by their ports A is the shorter.
    wide = run(jobs, dumbbell(80.0), make(policy))
    assert ends(wide) == pytest.approx({"A": 1.0, "B": 1.7})


def test_with_few_classes_those_who_share_the_trunk_alone_are_kept_apart() -> None:
    jobs = coflow("A", ("h0", "h2", 1.0)), coflow("B", ("h1", "h3", 1.0))
    assert ends(run(jobs, dumbbell(4.0), Fifo(), classes=2)) == pytest.approx({"A": 2.0, "B": 4.0})
    assert ends(run(jobs, dumbbell(4.0), Fifo(), classes=1)) == pytest.approx({"A": 4.0, "B": 4.0})


def test_every_pair_of_hosts_that_still_sends_is_shown_with_what_it_has_left() -> None:
    spy = Spy()
    late = coflow("late", ("h3", "h3", 1.0), arrival=1.0)
    run([A, B, late], dumbbell(4.0), spy)
    assert [(d.src, d.dst, d.bytes) for d in spy.shown[0].jobs[0].demand] == [
        ("h0", "h2", 1.0), ("h0", "h3", 0.5), ("h1", "h3", 1.0),
    ]  # fmt: skip
    assert spy.loads(0)["A"][TRUNK] == pytest.approx(2.5 / 0.5)
    assert spy.loads(0)["B"] == pytest.approx(
        {Port("h1", OUT): 1.9, Port("h0", IN): 1.6, Port("h2", IN): 0.3, TRUNK: 0.6}
    )
    # After a second the trunk has carried half a byte of A.
    (second,) = [shot for shot in spy.shown if shot.now == pytest.approx(1.0)]
    loads = spy.loads(spy.shown.index(second))
    assert loads["A"][TRUNK] == pytest.approx(2.0 / 0.5)
    assert loads["A"][Port("h0", OUT)] + loads["A"][Port("h1", OUT)] == pytest.approx(2.0)
    sent = {job.id: sum(job.sent_bytes.values()) for job in second.jobs}
    assert sent["A"] == pytest.approx(0.5)
    assert loads["late"] == {Port("h3", OUT): 1.0, Port("h3", IN): 1.0}


def test_a_training_jobs_iterations_are_shown_with_their_links() -> None:
    spy = Spy()
    transfer = Transfer((Demand("h0", "h2", 1.0), Demand("h2", "h0", 0.5)))
    run([SimJob("t", lanes=((Compute(1.0), transfer),), iterations=3)], dumbbell(4.0), spy)
    assert spy.loads(0)["t"][TRUNK] == pytest.approx(2.0)
    assert spy.loads(0)["t"][Port("left--right", IN)] == pytest.approx(1.0)


def test_hosts_are_shown_with_the_rates_that_their_links_have() -> None:
    spy = Spy()
    run([coflow("A", ("h0", "h1", 1.0))], dumbbell(8.0, h0=2.0), spy)
    assert spy.loads(0)["A"] == pytest.approx({Port("h0", OUT): 4.0, Port("h1", IN): 1.0})
    # Of a host with several links each is a port, and its own is all of them.
    twice = dumbbell(8.0, h0=2.0)
    twice.add_edge("h0", "right", rate_bps=6.0)
    run([coflow("A", ("h0", "h1", 1.0), ("h0", "h2", 3.0))], twice, spy)
    assert spy.loads(-1)["A"] == pytest.approx(
        {
            Port("h0", OUT): 4.0,
            Port("h0--left", OUT): 4.0,
            Port("h0--right", OUT): 4.0,
            Port("h1", IN): 1.0,
            Port("h2", IN): 3.0,
        }
    )


@pytest.mark.parametrize("policy", ["fair", "fifo", "sebf", "sincronia"])
@pytest.mark.parametrize("limits", [{}, {"classes": 2, "period": 0.5}, {"rates": "madd"}])
def test_a_star_is_the_hose_also_for_flows_that_stay_on_their_hosts(policy: str, limits) -> None:
    workload = parse(SIX.read_text(), SIX.name)
    flows = [flow for job in workload.jobs for lane in job.lanes for step in lane for flow in step.flows]
    assert any(flow.src == flow.dst and flow.bytes for flow in flows)
    star = Graph(nx.Graph([(host, "switch") for host in workload.hosts]), workload.hosts)
    assert star.routes is None
    hose, graph = (
        simulate(workload, make(policy), Limits(**limits), network=network) for network in (Hose(workload.hosts), star)
    )
    assert ends(graph) == pytest.approx(ends(hose))
    assert graph.port_bytes == pytest.approx(hose.port_bytes)


def test_what_stays_on_a_host_is_sent_and_then_shown_no_more() -> None:
    spy = Spy()
    # Two steps: what the first left behind would be shown for ever.
    steps = (Transfer((Demand("h0", "h0", 1.0),)), Transfer((Demand("h0", "h2", 1.0),)))
    tick = coflow("tick", ("h3", "h1", 1.0), arrival=1.5)
    outcome = run([SimJob("A", lanes=(steps,)), tick], dumbbell(8.0), spy)
    assert outcome.jobs["A"].end == pytest.approx(2.0)
    assert outcome.port_bytes[Port("h0", OUT)] == pytest.approx(2.0)
    (then,) = [shot for shot in spy.shown if shot.now == pytest.approx(1.5)]
    assert {(d.src, d.dst): d.bytes for d in then.jobs[0].demand} == pytest.approx({("h0", "h2"): 0.5})
