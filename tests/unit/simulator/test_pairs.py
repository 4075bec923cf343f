"""Who sends to whom: policies that read pairs are shown the flows that there are, in the hose model as in a graph."""

from __future__ import annotations

from pathlib import Path

import networkx as nx
import pytest

from controller.model import Ordering, Snapshot
from controller.policies.fair import Fair
from controller.policies.tensorlights_one import TensorLightsOne
from simulator.engine import Limits, simulate
from simulator.jobs import Workload
from simulator.network import Graph, Hose, Network
from simulator.workloads.coflow_trace import parse
from tests.support.paths import GOLDEN

SIX, FANS = (GOLDEN / name for name in ("six.txt", "fans.txt"))
MB = 2**20


class Told(TensorLightsOne):
    """TensorLights, and remembers when it said what."""

    def __init__(self) -> None:
        super().__init__()
        self.said: list[tuple[float, Ordering]] = []

    def order(self, snapshot: Snapshot, previous: Ordering | None) -> Ordering:
        self.said.append((snapshot.now, super().order(snapshot, previous)))
        return self.said[-1][1]


class Spy(Fair):
    """Fair sharing that reads pairs, and remembers what it was shown."""

    reads_pairs = True

    def __init__(self) -> None:
        self.shown: list[Snapshot] = []

    def order(self, snapshot: Snapshot, previous: Ordering | None) -> Ordering:
        self.shown.append(snapshot)
        return super().order(snapshot, previous)


def read(trace: Path) -> Workload:
    return parse(trace.read_text(), trace.name)


def hose(workload: Workload) -> Network:
    return Hose(workload.hosts)


def wide_trunk(workload: Workload) -> Network:
    """Two switches, and between them a trunk that is never full."""
    graph = nx.Graph([(host, ("left", "right")[int(host) % 2]) for host in workload.hosts])
    graph.add_edge("left", "right", rate_bps=1e15)
    made = Graph(graph, workload.hosts)
    assert made.routes is not None
    return made


@pytest.mark.parametrize("trace", [SIX, FANS], ids=lambda path: path.stem)
def test_tensorlights_orders_in_the_hose_model_as_behind_a_trunk_that_is_never_full(trace: Path) -> None:
    workload = read(trace)
    one, other = Told(), Told()
    simulate(workload, one, Limits(), network=hose(workload))
    simulate(workload, other, Limits(), network=wide_trunk(workload))
    assert [now for now, _ in one.said] == pytest.approx([now for now, _ in other.said])
    assert [said for _, said in one.said] == [said for _, said in other.said]


def test_tensorlights_orders_a_traces_fan_outs_by_size_and_launch_from_first_to_last() -> None:
    policy = Told()
    simulate(read(FANS), policy, Limits())
    (said,) = (said for now, said in policy.said if now == pytest.approx(0.4))
    # A worker of 4 gets 15 MB of port 0, one of 2 gets 30, of 1 and of 5 each 40; 3 has but one.
    assert said.bands == (("4",), ("2",), ("1",), ("5",), ("3",))
    place = {job: number for number, band in enumerate("42153") for job in band}
    for _, then in policy.said:
        if len(then.bands) > 1:
            jobs = [job for band in then.bands for job in band]
            assert jobs == sorted(jobs, key=place.__getitem__)


@pytest.mark.parametrize("network", [hose, wide_trunk])
def test_a_coflow_is_shown_whole_with_the_share_that_is_left(network) -> None:
    workload, spy = read(SIX), Spy()
    simulate(workload, spy, Limits(), network=network(workload))
    looks = [(shot.now, job) for shot in spy.shown for job in shot.jobs if job.id == "2"]
    assert len(looks) > 3
    for now, job in looks:
        assert {(d.src, d.dst): d.bytes for d in job.demand} == {(m, r): 20 * MB for m in "01" for r in "23"}
        assert job.iterations_left == pytest.approx(1 - sum(job.sent_bytes.values()) / (80 * MB)), now
    left = [job.iterations_left for _, job in looks]
    assert left[0] == 1.0
    assert left == sorted(left, reverse=True)
    assert left[-1] < 0.5
