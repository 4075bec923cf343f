"""Paths over the hose model and over graphs."""

from __future__ import annotations

from collections import Counter

import networkx as nx
import pytest

from controller.model import Demand, Direction, Host, Port
from controller.policies.fair import Fair
from simulator.engine import Limits, simulate
from simulator.errors import InputError
from simulator.jobs import SimJob, Transfer, Workload
from simulator.network import Graph, Hose

HOSTS = {f"h{i}": Host(f"h{i}", 8.0, 8.0) for i in range(4)}
OUT, IN = Direction.EGRESS, Direction.INGRESS


def dumbbell(middle_bps: float) -> nx.Graph:
    graph = nx.Graph()
    graph.add_edges_from([("h0", "left"), ("h1", "left"), ("h2", "right"), ("h3", "right")])
    graph.add_edge("left", "right", rate_bps=middle_bps)
    return graph


def leaf_spine(spines: int) -> nx.Graph:
    graph = nx.Graph()
    for leaf in range(2):
        graph.add_edges_from((f"leaf{leaf}", f"h{host}") for host in (2 * leaf, 2 * leaf + 1))
        graph.add_edges_from(((f"leaf{leaf}", f"spine{s}") for s in range(spines)), rate_bps=8.0)
    return graph


def run(network, *flows: tuple[str, str, float]):
    jobs = tuple(
        SimJob(id=str(i), lanes=((Transfer((Demand(src, dst, size),)),),)) for i, (src, dst, size) in enumerate(flows)
    )
    return simulate(Workload("w", HOSTS, jobs), Fair(), Limits(), network=network)


def test_in_the_hose_a_flow_crosses_one_port_each_way() -> None:
    hose = Hose(HOSTS)
    assert [hose.ports[link] for link in hose.path("h0", "h2")] == [Port("h0", OUT), Port("h2", IN)]
    assert [hose.ports[link] for link in hose.path("h1", "h1")] == [Port("h1", OUT), Port("h1", IN)]


def test_in_a_graph_it_crosses_every_link_on_its_way() -> None:
    network = Graph(dumbbell(8.0), HOSTS)
    assert [network.ports[link] for link in network.path("h0", "h2")] == [
        Port("h0", OUT),
        Port("left--right", OUT),
        Port("h2", IN),
    ]
    assert [network.ports[link] for link in network.path("h3", "h1")] == [
        Port("h3", OUT),
        Port("left--right", IN),
        Port("h1", IN),
    ]
    assert [network.ports[link] for link in network.path("h0", "h0")] == [Port("h0", OUT), Port("h0", IN)]


def test_a_narrow_middle_binds_and_its_bytes_are_counted() -> None:
    outcome = run(Graph(dumbbell(8.0), HOSTS), ("h0", "h2", 1.0), ("h1", "h3", 1.0), ("h0", "h1", 1.0))
    # The middle carries two flows at a half each; h0's own port has another half for the third.
    assert [job.end for job in outcome.jobs.values()] == pytest.approx([2, 2, 2])
    assert outcome.port_bytes[Port("left--right", OUT)] == pytest.approx(2)
    assert outcome.port_bytes[Port("left--right", IN)] == 0
    wide = run(Graph(dumbbell(80.0), HOSTS), ("h0", "h2", 1.0), ("h1", "h3", 1.0))
    assert [job.end for job in wide.jobs.values()] == pytest.approx([1, 1])


def test_a_flow_that_stays_on_its_host_loads_both_its_ports_in_a_graph_too() -> None:
    outcome = run(Graph(dumbbell(8.0), HOSTS), ("h0", "h0", 5.0))
    assert outcome.jobs["0"].end == pytest.approx(5)
    assert {port: size for port, size in outcome.port_bytes.items() if size} == {Port("h0", OUT): 5, Port("h0", IN): 5}


@pytest.mark.parametrize(("more", "count"), [(("left", "right"), 2), ((), 0)])
def test_a_flow_that_stays_on_a_host_without_one_link_is_refused(more, count) -> None:
    graph = dumbbell(8.0)
    graph.remove_edge("h0", "left")
    graph.add_edges_from((("h0", switch) for switch in more), rate_bps=8.0)
    with pytest.raises(InputError, match=f"host h0: a flow goes from it to itself.* it has {count}$"):
        run(Graph(graph, HOSTS), ("h0", "h0", 1.0))


def test_equal_paths_are_spread_by_a_stable_hash() -> None:
    network, again = (Graph(leaf_spine(4), HOSTS) for _ in range(2))
    pairs = [(src, dst) for src in HOSTS for dst in HOSTS if src != dst]
    assert [network.path(*pair) for pair in pairs] == [again.path(*pair) for pair in pairs]
    graph = leaf_spine(4)
    many = {f"h{i}": Host(f"h{i}", 8.0, 8.0) for i in range(100)}
    for i in range(4, 100):
        graph.add_edge(f"leaf{i % 2}", f"h{i}")
    spread = Graph(graph, many)
    used = Counter(
        spread.ports[spread.path(f"h{i}", f"h{j}")[1]].host for i in range(4, 100, 2) for j in range(5, 100, 2)
    )
    assert len(used) == 4
    assert max(used.values()) < 1.3 * min(used.values())


@pytest.mark.parametrize(
    ("graph", "said"),
    [
        (nx.Graph([("h0", "s"), ("h1", "s"), ("h2", "s")]), "host h3: it is not in the network's graph"),
        (nx.Graph([("h0", "s"), ("h1", "s"), ("h2", "t"), ("h3", "t"), ("s", "t")]), "link s to t: it has no rate_bps"),
    ],
)
def test_a_graph_that_does_not_fit_is_refused(graph, said) -> None:
    with pytest.raises(InputError, match=said):
        Graph(graph, HOSTS)


def test_hosts_without_a_path_are_refused() -> None:
    graph = nx.Graph([("h0", "s"), ("h1", "s"), ("h2", "t"), ("h3", "t")])
    with pytest.raises(InputError, match="hosts h0 and h2"):
        run(Graph(graph, HOSTS), ("h0", "h2", 1.0))
