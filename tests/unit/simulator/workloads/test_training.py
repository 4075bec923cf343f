"""The made training jobs: what they send, how they keep in step, how much they load the network."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import pairwise

import pytest

from controller.model import Role
from simulator.errors import InputError
from simulator.jobs import Compute, Step, Transfer
from simulator.workloads import training
from simulator.workloads.arrivals import job_bytes
from simulator.workloads.training import Training, generate
from simulator.workloads.transfers import barrier_lane, tasks, worker_lanes

HOSTS = ("a", "b", "c", "d")


def sent(steps: tuple[Step, ...]) -> list[dict[tuple[str, str], float]]:
    return [{(f.src, f.dst): f.bytes for f in step.flows} for step in steps if isinstance(step, Transfer)]


def test_a_parameter_server_takes_all_pushes_then_serves_all_pulls() -> None:
    compute, *rest = barrier_lane("ps", HOSTS, 10.0, 0.5)
    assert compute == Compute(0.5)
    assert sent(tuple(rest)) == [
        {("b", "a"): 10.0, ("c", "a"): 10.0, ("d", "a"): 10.0},
        {("a", "b"): 10.0, ("a", "c"): 10.0, ("a", "d"): 10.0},
    ]


def test_a_ring_sends_two_n_minus_one_nths_of_the_model_over_each_link() -> None:
    (only,) = sent(barrier_lane("ring", HOSTS, 10.0, 0.5))
    assert only == {("a", "b"): 15.0, ("b", "c"): 15.0, ("c", "d"): 15.0, ("d", "a"): 15.0}


def test_a_tree_reduces_up_and_broadcasts_down() -> None:
    (both,) = sent(barrier_lane("tree", HOSTS, 10.0, 0.5))
    up = {("b", "a"): 10.0, ("c", "a"): 10.0, ("d", "b"): 10.0}
    assert both == up | {(dst, src): size for (src, dst), size in up.items()}
    _, transfer = barrier_lane("tree", HOSTS, 10.0, 0.5)
    # b sends up what d has sent; b and c get what both have sent to a; d gets what b got.
    assert transfer.after == ((2,), (), (), (0, 1), (0, 1), (3,))


def test_workers_that_run_apart_have_a_lane_each() -> None:
    lanes = worker_lanes(HOSTS, 10.0, [1.0, 2.0, 3.0])
    assert [lane[0] for lane in lanes] == [Compute(1.0), Compute(2.0), Compute(3.0)]
    assert [sent(lane) for lane in lanes] == [[{(w, "a"): 10.0}, {("a", w): 10.0}] for w in "bcd"]


def test_tasks_name_the_server_and_where_it_listens() -> None:
    assert [(t.role, t.host, t.port) for t in tasks("ps", ("a", "b"), 7)] == [
        (Role.PS, "a", 7), (Role.WORKER, "b", None),
    ]  # fmt: skip
    assert {t.role for t in tasks("ring", HOSTS, 7)} == {Role.PEER}


def test_the_same_seed_makes_the_same_jobs_and_another_seed_others() -> None:
    assert generate(Training(jobs=5)) == generate(Training(jobs=5))
    assert generate(Training(jobs=5)).jobs != generate(Training(jobs=5, seed=2)).jobs


@pytest.mark.parametrize("load", [0.2, 0.7])
def test_the_offered_load_is_the_stated_one(load: float) -> None:
    mix = Training(hosts=30, jobs=3000, load=load, iterations=(10, 20))
    jobs = generate(mix).jobs
    seconds = jobs[-1].arrival - jobs[0].arrival
    offered = sum(map(job_bytes, jobs)) * 8 / (seconds * mix.hosts * mix.port_rate_bps)
    assert offered == pytest.approx(load, rel=0.06)


def test_arrivals_are_poisson() -> None:
    times = [job.arrival for job in generate(Training(jobs=3000, iterations=(10, 20))).jobs]
    gaps = [b - a for a, b in pairwise(times)]
    mean = sum(gaps) / len(gaps)
    spread = (sum((gap - mean) ** 2 for gap in gaps) / len(gaps)) ** 0.5
    assert spread == pytest.approx(mean, rel=0.1)
    assert sum(gap < mean for gap in gaps) / len(gaps) == pytest.approx(1 - 2.718281828**-1, abs=0.03)


def test_bytes_shrink_with_the_port_rate_so_that_seconds_stay() -> None:
    slow, fast = generate(Training(jobs=20)), generate(Training(jobs=20, port_rate_bps=10e9))
    for one, other in zip(slow.jobs, fast.jobs, strict=True):
        assert job_bytes(one) * 10 == pytest.approx(job_bytes(other), rel=1e-4)
        assert one.lanes[0][0] == other.lanes[0][0]
        assert one.arrival == pytest.approx(other.arrival, rel=1e-3)


def test_ssp_and_asp_have_a_lane_a_worker_and_the_mixes_have_what_they_say() -> None:
    ssp = generate(Training(jobs=10, architectures=("ps",), staleness=3))
    assert {job.staleness for job in ssp.jobs} == {3}
    assert all(len(job.lanes) == len(job.tasks) - 1 for job in ssp.jobs)
    mixed = generate(Training(jobs=300, workers=(4, 8), architectures=("ps", "ring", "tree"), iterations=(10, 20)))
    kinds = Counter(job.id.rsplit("-", 1)[1] for job in mixed.jobs)
    assert set(kinds) == {"ps", "ring", "tree"}
    assert min(kinds.values()) > 60
    assert {len(job.curve) == job.iterations for job in mixed.jobs} == {True}
    assert {len(job.tasks) - job.id.endswith("-ps") for job in mixed.jobs} == {4, 5, 6, 7, 8}


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"load": 0.0}, "load"),
        ({"load": 1.1}, "load"),
        ({"load": float("nan")}, "load"),
        ({"jobs": 0}, "jobs"),
        ({"hosts": 8}, "hosts"),
        ({"workers": (1, 4)}, "workers"),
        ({"workers": (5, 4)}, "workers"),
        ({"iterations": (1, 4)}, "iterations"),
        ({"architectures": ()}, "architecture"),
        ({"architectures": ("star",)}, "architecture"),
        ({"staleness": -1}, "staleness"),
        ({"staleness": 2}, "sync"),
        ({"staleness": None, "architectures": ("ring",)}, "sync"),
    ],
)
def test_a_mix_that_cannot_be_is_refused(changes: dict[str, object], field: str) -> None:
    with pytest.raises(InputError, match=f"^{field}: "):
        training.check(replace(Training(), **changes))  # type: ignore[arg-type]
