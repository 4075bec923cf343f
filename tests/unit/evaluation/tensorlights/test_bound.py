"""The least mean completion time that any order allows."""

from __future__ import annotations

import pytest

from evaluation.tensorlights import fluid
from evaluation.tensorlights.bound import least_mean_jct
from evaluation.tensorlights.groups import AS_CLAIMED
from evaluation.tensorlights.workload import PLACEMENTS, Placement, experiment
from topologies.experiments.experiment import Experiment


def jobs(count: int, compute: float, servers: int = 1) -> Experiment:
    """Jobs of two iterations on links on which a fan-out takes a second, and the pushes another."""
    return Experiment.model_validate({
        "name": "x", "hosts": servers + 2, "link_bps": 8e6 * 1514 / 1448,
        "jobs": [
            {
                "id": f"job{n}", "arrival": 0.0, "architecture": "ps", "port": 5000 + n, "model": "m",
                "hosts": [f"h{n % servers + 1}", f"h{servers + 1}", f"h{servers + 2}"], "model_bytes": 500_000,
                "compute_seconds": compute, "iterations": 2, "curve": "digits-linear-40",
            }
            for n in range(count)
        ],
    })  # fmt: skip


def test_a_job_alone_takes_its_own_time() -> None:
    # Both workers compute and push; they pull; the second computes and pushes, which takes half a second; they pull.
    alone = (3.0 + 1.0) + 1.0 + (3.0 + 0.5) + 1.0
    assert least_mean_jct(jobs(1, 3.0)) == pytest.approx(alone)
    assert least_mean_jct(jobs(3, 3.0, servers=3)) == pytest.approx(alone), "their servers share no host"


def test_jobs_that_share_a_host_end_one_after_the_other_where_its_link_is_the_bottleneck() -> None:
    # The first fan-out begins after 1.5 s at the earliest, and each job fans out for 2 s: 4.5 s alone, then 5.5 and on.
    assert least_mean_jct(jobs(4, 0.5)) == pytest.approx((4.5 + 5.5 + 7.5 + 9.5) / 4)


def test_a_later_arrival_is_no_time_of_the_job() -> None:
    made = jobs(2, 3.0, servers=2)
    late = made.jobs[1].model_copy(update={"arrival": 100.0})
    assert least_mean_jct(made.model_copy(update={"jobs": (made.jobs[0], late)})) == pytest.approx(9.5)


@pytest.mark.parametrize("placement", PLACEMENTS[:2])
@pytest.mark.parametrize("arm", fluid.POLICIES)
def test_no_simulated_order_is_under_the_bound(placement: Placement, arm: str) -> None:
    short = experiment(placement, 3, 4, AS_CLAIMED)
    assert fluid.mean_jct(short, arm) >= least_mean_jct(short) * (1 - 1e-9)


def test_an_order_at_a_crowded_host_saves_time_in_the_simulator_and_none_where_servers_are_apart() -> None:
    together, apart = (experiment(placement, 3, 4, AS_CLAIMED) for placement in (PLACEMENTS[0], PLACEMENTS[-1]))
    assert fluid.mean_jct(together, "tls-one") < 0.8 * fluid.mean_jct(together, "fair")
    assert fluid.mean_jct(apart, "tls-one") == pytest.approx(fluid.mean_jct(apart, "fair"))
