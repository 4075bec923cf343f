"""Simulated jobs: each connection is a stream of its own."""

from __future__ import annotations

import pytest

from evaluation.tensorlights import fluid
from evaluation.tensorlights.bound import least_mean_jct
from evaluation.tensorlights.groups import AS_CLAIMED, PROCESSORS
from evaluation.tensorlights.streams.host import simulate
from evaluation.tensorlights.streams.means import means
from evaluation.tensorlights.streams.orders import Bands, HashedQueues, OneQueue, orders
from evaluation.tensorlights.workload import PLACEMENTS, experiment
from topologies.experiments.experiment import JobPlan

LINK_BPS = 8e6 * 1514 / 1448
"""A model of 500 KB takes half a second of this link."""


def plan(name: str, *, workers: int = 2, iterations: int = 3, arrival: float = 0.0) -> JobPlan:
    return JobPlan(
        id=name, arrival=arrival, architecture="ps", hosts=("h1", *(f"h{n + 2}" for n in range(workers))), port=5000,
        model="m", model_bytes=500_000, compute_seconds=2.0, iterations=iterations, curve="c",
    )  # fmt: skip


def test_a_job_alone_computes_pushes_and_pulls() -> None:
    found = simulate([plan("a")], LINK_BPS, OneQueue())["a"]
    assert found.jct == pytest.approx(3 * (2.0 + 1.0 + 1.0))
    assert found.barrier is not None
    assert found.barrier.barriers == 2
    assert found.barrier.mean_seconds == pytest.approx(0.0)
    assert found.barrier.at_server is not None
    assert found.barrier.at_server.mean_seconds == pytest.approx(0.0), "equal pushes end together"
    assert found.barrier.causes is not None
    assert found.barrier.causes.fan_out_seconds == pytest.approx(1.0)


def test_workers_that_get_the_model_one_by_one_wait_for_the_last() -> None:
    found = simulate([plan("a")], LINK_BPS, Bands(one_by_one=True))["a"]
    # The second worker's model comes half a second later; the first one's push is over by then.
    assert found.barrier is not None
    assert found.barrier.mean_seconds == pytest.approx(0.25)
    assert found.barrier.variance == pytest.approx(0.0625)
    assert found.barrier.causes is not None
    assert (found.barrier.causes.models_seconds, found.barrier.causes.order) == (pytest.approx(0.25), 1.0)
    assert found.barrier.causes.late_seconds == pytest.approx(0.0, abs=1e-9)
    assert found.jct == pytest.approx((2.0 + 1.0 + 1.0) + 2 * (2.0 + 0.5 + 1.0))


def test_two_jobs_in_step_take_turns_under_an_order_and_slow_each_other_without() -> None:
    both = [plan("a", iterations=1), plan("b", iterations=1)]
    fair = simulate(both, LINK_BPS, OneQueue())
    assert [fair[name].jct for name in "ab"] == [pytest.approx(2.0 + 2.0 + 2.0)] * 2
    ordered = simulate(both, LINK_BPS, Bands())
    assert [ordered[name].jct for name in "ab"] == [pytest.approx(5.0), pytest.approx(6.0)]


def test_a_job_that_comes_later_counts_from_its_arrival() -> None:
    found = simulate([plan("late", arrival=100.0), plan("early")], LINK_BPS, OneQueue())
    assert [found[name].jct for name in ("early", "late")] == [pytest.approx(12.0), pytest.approx(12.0)]


def test_hashed_queues_make_workers_wait_who_have_computed_alike() -> None:
    found = simulate([plan(str(n), workers=8) for n in range(4)], LINK_BPS, HashedQueues(4, 1))
    assert all(job.barrier is not None and job.barrier.mean_seconds > 0.05 for job in found.values())


@pytest.mark.parametrize("placement", [PLACEMENTS[0], PLACEMENTS[1], PLACEMENTS[-1]])
@pytest.mark.parametrize("name", orders(1))
def test_no_order_is_under_the_bound(name: str, placement: tuple[int, ...]) -> None:
    short = experiment(placement, 3, 3, AS_CLAIMED)
    assert means(short, orders(1)[name]).jct >= least_mean_jct(short) * (1 - 1e-9)


@pytest.mark.parametrize(("placement", "least"), [(PLACEMENTS[0], 0.99), (PLACEMENTS[3], 0.9)])
def test_in_one_queue_it_is_as_fast_as_the_simulator_of_policies(placement: tuple[int, ...], least: float) -> None:
    """Where servers stand on several hosts it is faster, since other jobs' workers take nothing of their links."""
    short = experiment(placement, 3, 3, AS_CLAIMED)
    assert least < means(short, OneQueue()).jct / fluid.mean_jct(short, "fair") < 1.01


def test_where_servers_are_apart_workers_that_get_the_model_one_by_one_reach_the_bound() -> None:
    short = experiment(PLACEMENTS[-1], 3, 3, AS_CLAIMED)
    assert means(short, Bands(one_by_one=True)).jct == pytest.approx(least_mean_jct(short))


def test_processors_that_are_shared_are_refused() -> None:
    with pytest.raises(ValueError, match="its tasks share processors"):
        means(experiment(PLACEMENTS[0], 3, 3, PROCESSORS), OneQueue())
