"""From the runs of a recording to jobs, and why some cannot be used."""

from __future__ import annotations

from typing import Any

import pytest

from controller.model import Demand, Role
from simulator.jobs import Compute, Transfer
from simulator.network import PAYLOAD_SHARE
from simulator.recorded.jobs import MOST_ITERATIONS, RecordedWorkload, workload_of
from simulator.recorded.lines import Description, Pair
from simulator.recorded.recording import Point, Recording, Run

RATE = 8e6 / PAYLOAD_SHARE
"""A link of this rate carries 10^6 bytes of jobs a second."""
PS = (Pair(src="w1", dst="ps", bytes=1e6), Pair(src="ps", dst="w1", bytes=2e6))


def described(*demand: Pair, **parts: Any) -> Description:
    return Description(arrival=0.0, demand=demand, **parts)


def run(name: str, description: Description | None, *points: tuple[float, float, float | None], **parts: Any) -> Run:
    fields = {"seen": points[0][0] if points else 0.0, "begun_seen": True, "ended": True} | parts
    return Run(name, points=[Point(*point) for point in points], description=description, **fields)


def jobs_of(*runs: Run, **rates: tuple[float, float]) -> RecordedWorkload:
    return workload_of(Recording("f", 100.0, runs, rates, {"fair": 100.0}, {}, None, None, 0), RATE)


def steady(count: int, seconds: float) -> list[tuple[float, float, float | None]]:
    """Returns points of a job with an iteration each ``seconds``."""
    return [(5.0 + done * seconds, float(done), done / count) for done in range(count + 1)]


def test_a_parameter_server_pushes_and_then_pulls_and_the_rest_is_computing() -> None:
    found = jobs_of(run("a", described(*PS, servers=("ps",), weight=2.0, stage="s"), *steady(20, 5.0)))
    (job,) = found.workload.jobs
    compute, push, pull = job.lanes[0]
    assert isinstance(compute, Compute) and compute.seconds == pytest.approx(5.0 - 3.0)
    assert push == Transfer((Demand("w1", "ps", 1e6),)) and pull == Transfer((Demand("ps", "w1", 2e6),))
    assert (job.arrival, job.iterations, job.weight, job.stage) == (5.0, 20, 2.0, "s")
    assert [task.role for task in job.tasks] == [Role.PS, Role.WORKER]
    assert job.curve == pytest.approx([k / 20 for k in range(1, 21)])
    assert found.workload.stages == {"s": ("a",)}
    assert found.estimated["a"].is_whole and found.estimated["a"].seconds == 100.0


def test_without_a_server_all_goes_at_once() -> None:
    (job,) = jobs_of(run("a", described(*PS), *steady(20, 5.0))).workload.jobs
    compute, both = job.lanes[0]
    assert isinstance(compute, Compute) and compute.seconds == pytest.approx(5.0 - 2.0)
    assert isinstance(both, Transfer) and len(both.flows) == 2
    assert {task.role for task in job.tasks} == {Role.PEER}


def test_computing_takes_no_longer_than_the_job_declares_and_no_less_than_nothing() -> None:
    found = jobs_of(
        run("declared", described(*PS, servers=("ps",), compute_seconds=0.5), *steady(20, 5.0)),
        run("busy", described(*PS, servers=("ps",)), *steady(20, 2.0)),
    )
    assert found.estimated["declared"].compute_seconds == 0.5
    assert found.estimated["busy"].compute_seconds == 0.0


def test_how_long_an_iteration_computes_may_be_known_better() -> None:
    runs = [run("a", described(*PS, servers=("ps",)), *steady(20, 5.0))]
    found = workload_of(Recording("f", 100.0, tuple(runs), {}, {"fair": 100.0}, {}, None, None, 0), RATE, {"a": 1.25})
    assert (found.estimated["a"].compute_seconds, found.estimated["a"].most_compute) == (1.25, pytest.approx(2.0))
    more = workload_of(Recording("f", 100.0, tuple(runs), {}, {"fair": 100.0}, {}, None, None, 0), RATE, {"a": 9.0})
    assert more.estimated["a"].compute_seconds == pytest.approx(2.0)


def test_the_rates_are_those_of_the_recording_and_else_as_asked() -> None:
    found = jobs_of(run("a", described(*PS), *steady(20, 5.0)), w1=(2 * RATE, 4 * RATE))
    hosts = found.workload.hosts
    assert (hosts["w1"].egress_bps, hosts["w1"].ingress_bps) == pytest.approx((16e6, 32e6))
    assert hosts["ps"].egress_bps == pytest.approx(8e6)
    assert found.unknown_rates == ("ps",)


def test_many_iterations_are_simulated_as_fewer_larger_ones() -> None:
    count = 3 * MOST_ITERATIONS
    (job,) = jobs_of(run("a", described(*PS), (0.0, 0.0, 0.0), (60_000.0, count, 1.0))).workload.jobs
    compute, both = job.lanes[0]
    assert job.iterations == MOST_ITERATIONS
    assert isinstance(both, Transfer) and both.flows[0].bytes == pytest.approx(3e6)
    assert isinstance(compute, Compute) and compute.seconds == pytest.approx(3 * (5.0 - 2.0))


def test_a_job_that_began_before_or_still_runs_is_a_part() -> None:
    found = jobs_of(
        run("before", described(*PS), *[(t, n + 30, m) for t, n, m in steady(20, 5.0)], begun_seen=False),
        run("still", described(*PS), *steady(20, 5.0), ended=False),
    )
    assert [each.is_whole for each in found.estimated.values()] == [False, False]
    assert [each.iterations for each in found.estimated.values()] == [20.0, 20.0]


@pytest.mark.parametrize(
    ("left_out", "why"),
    [
        (run("x", described(*PS)), "fewer than 2 of its iterations are in the recording"),
        (run("x", described(*PS), (1.0, 1.0, None)), "fewer than 2"),
        (run("x", described(*PS), (1.0, 9.0, None)), "its iterations were all told of at once"),
        (run("x", None, *steady(5, 1.0)), "the recording does not say what it is"),
        (run("x", Description(arrival=0.0), *steady(5, 1.0)), "the bytes of its iterations are not known"),
    ],
)
def test_what_cannot_be_used_is_left_out_with_its_reason(left_out: Run, why: str) -> None:
    found = jobs_of(left_out, run("a", described(*PS), *steady(20, 5.0)))
    assert set(found.estimated) == {"a"}
    assert found.left_out["x"].startswith(why)


def test_a_host_with_several_interfaces_is_as_many_hosts_of_the_simulation() -> None:
    rails = {"ps/eth0": (RATE, RATE), "ps/eth1": (RATE, RATE)}
    demand = (Pair(src="w1", dst="ps", bytes=1e6), Pair(src="ps/eth1", dst="w1", bytes=2e6))
    runs = (run("a", described(*demand, servers=("ps",)), *steady(20, 5.0)),)
    known = Recording("f", 100.0, runs, {"ps": (2 * RATE, 2 * RATE)}, {"fair": 100.0}, {}, None, None, 0, {"ps": rails})
    found = workload_of(known, RATE)
    assert set(found.workload.hosts) == {"w1", "ps/eth0", "ps/eth1"} and found.unknown_rates == ("w1",)
    (job,) = found.workload.jobs
    _, push, pull = job.lanes[0]
    assert push == Transfer((Demand("w1", "ps/eth0", 5e5), Demand("w1", "ps/eth1", 5e5)))
    assert pull == Transfer((Demand("ps/eth1", "w1", 2e6),))
    assert [(task.role, task.host) for task in job.tasks] == [(Role.PS, "ps"), (Role.WORKER, "w1")]
