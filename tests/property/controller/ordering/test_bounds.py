"""The bounds among themselves, beside every order of few jobs, and beside what the policies find."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.model import Demand, Host, Job, Progress, Role, Snapshot, Task
from controller.ordering.bounds import dual, exact, linear
from controller.ordering.bssi import bssi, completion_times
from controller.ordering.loads import LoadMatrix, load_matrix, loads_left
from controller.planner import objective_and_bound, plan
from controller.policies.base import Policy
from controller.policies.beamer import Beamer
from controller.policies.parts.stages import merged, stages
from controller.policies.registry import available, make

SEEDS = st.integers(0, 2**32 - 1)
CLOSE = 1 + 1e-6


def instance(seed: int, jobs: int, ports: int = 6) -> tuple[LoadMatrix, np.ndarray]:
    """Loads of one of several kinds, among them many equal ones, and weights."""
    draw = np.random.default_rng(seed)
    there = draw.random((jobs, ports)) < draw.choice([0.2, 0.5, 1.0])
    kind = draw.integers(3)
    if kind == 0:
        sizes = draw.integers(1, 4, (jobs, ports)).astype(float)
    else:
        sizes = draw.lognormal(0, 1 if kind == 1 else 3, (jobs, ports))
    return LoadMatrix.dense(sizes * there), draw.choice([1.0, 1.0, 0.2, 5.0], jobs)


def weighted(loads: LoadMatrix, weights: np.ndarray, order) -> float:
    return float(weights @ completion_times(loads, [[j] for j in order]))


@settings(max_examples=300, deadline=None)
@given(SEEDS, st.integers(0, 7))
def test_dual_linear_exact_in_this_order(seed, jobs) -> None:
    loads, weights = instance(seed, jobs)
    low, middle, high = dual(loads, weights), linear(loads, weights), exact(loads, weights)
    assert low <= middle <= high * CLOSE
    assert weighted(loads, weights, bssi(loads, weights).order) >= high / CLOSE


@settings(max_examples=60, deadline=None)
@given(SEEDS, st.integers(1, 6))
def test_exact_is_the_least_over_all_orders(seed, jobs) -> None:
    loads, weights = instance(seed, jobs)
    least = min(weighted(loads, weights, order) for order in itertools.permutations(range(jobs)))
    assert exact(loads, weights) == pytest.approx(least)


@settings(max_examples=30, deadline=None)
@given(SEEDS, st.integers(1, 12))
def test_on_one_port_all_bounds_are_smiths_rule(seed, jobs) -> None:
    loads, weights = instance(seed, jobs, ports=1)
    length = loads.bottlenecks()
    smith = weighted(loads, weights, np.argsort(length / weights, kind="stable"))
    assert dual(loads, weights) == pytest.approx(smith)
    assert linear(loads, weights) == pytest.approx(smith, rel=1e-6)


def test_the_lp_is_tighter_than_the_dual_on_larger_instances_and_stays_below_every_order_found() -> None:
    tighter = 0
    for seed in range(6):
        loads, weights = instance(seed, 30, ports=10)
        low, middle = dual(loads, weights), linear(loads, weights)
        found = min(
            weighted(loads, weights, bssi(loads, weights).order),
            weighted(loads, weights, np.argsort(loads.bottlenecks() / weights)),
        )
        assert low <= middle <= found * CLOSE
        assert linear(loads, weights, rounds=1) <= middle * CLOSE
        tighter += middle > 1.0005 * low
    assert tighter >= 3


def test_bssi_is_within_twice_its_bound_on_thousands_of_instances() -> None:
    worst = 0.0
    for seed in range(4000):
        loads, weights = instance(seed, 2 + seed % 11)
        result = bssi(loads, weights)
        value = weighted(loads, weights, result.order)
        assert value <= 2 * result.lower_bound * CLOSE
        if result.lower_bound > 0:
            worst = max(worst, value / result.lower_bound)
    assert worst > 1.05  # the family is not a trivial one


def tuning(seed: int) -> Snapshot:
    """The stated family: 3 to 8 stages of 2 to 6 PS jobs on 12 hosts of 1 Gbit/s, 2 to 5 workers, 1 to 100 MB.

    The jobs of a stage train the same model for the same number of iterations, as those of a rung do.
    """
    draw = np.random.default_rng(seed)
    hosts = {f"h{i}": Host(f"h{i}") for i in range(12)}
    jobs = []
    for stage in range(draw.integers(3, 9)):
        size, iterations = 1e6 * 10 ** draw.uniform(0, 2), float(draw.integers(5, 50))
        for member in range(draw.integers(2, 7)):
            ps, *workers = (f"h{i}" for i in draw.choice(12, draw.integers(3, 7), replace=False))
            demand = [pair for worker in workers for pair in (Demand(ps, worker, size), Demand(worker, ps, size))]
            jobs.append(Job(f"s{stage}-{member}", tuple(demand), stage=f"s{stage}", iterations_left=iterations))
    order = draw.permutation(len(jobs))
    return Snapshot(now=0.0, hosts=hosts, jobs=tuple(jobs[j] for j in order))


def mean_stage_completion(snapshot: Snapshot, policy: Policy) -> float:
    """By V: a stage is complete when the last of its jobs is."""
    index = {job.id: j for j, job in enumerate(snapshot.jobs)}
    bands = [[index[job] for job in band] for band in policy.order(snapshot, None).bands]
    finish = completion_times(loads_left(snapshot, load_matrix(snapshot)), bands)
    return float(np.mean([max(finish[j] for j in members) for members in stages(snapshot)[0]]))


def test_beamers_objective_is_within_1_3_of_the_bound_on_the_stated_family() -> None:
    ratios = []
    policy = Beamer(horizon="stage")
    for seed in range(300):
        snapshot = tuning(seed)
        members, _ = stages(snapshot)
        together = merged(loads_left(snapshot, load_matrix(snapshot)), members)
        ones = np.ones(len(members))
        bound = dual(together, ones)
        ordered = list(dict.fromkeys(_stage_of(snapshot, members, policy.order(snapshot, None))))
        ratios.append(weighted(together, ones, ordered) / bound)
        assert mean_stage_completion(snapshot, policy) * len(members) <= weighted(together, ones, ordered) * CLOSE
    assert max(ratios) <= 1.3
    assert max(ratios) > 1.01


@pytest.mark.parametrize("horizon", ["study", "stage"])
def test_beamers_mean_stage_completion_is_below_sincronias_on_the_stated_family(horizon) -> None:
    policies = Beamer(horizon=horizon), make("sincronia")
    pairs = np.array([[mean_stage_completion(tuning(seed), policy) for policy in policies] for seed in range(150)])
    reduction = 1 - pairs[:, 0] / pairs[:, 1]
    assert reduction.mean() > 2 * reduction.std(ddof=1) / np.sqrt(len(reduction))


@settings(max_examples=60, deadline=None)
@given(SEEDS, st.sampled_from(sorted(available())))
def test_no_policy_is_below_the_bounds(seed, name) -> None:
    snapshot = tuning(seed)
    ordering = make(name).order(snapshot, None)
    objective, bound = objective_and_bound(snapshot, ordering)
    assert objective >= bound / CLOSE > 0
    loads, weights = loads_left(snapshot, load_matrix(snapshot)), np.ones(len(snapshot.jobs))
    assert objective * len(snapshot.jobs) >= linear(loads, weights, rounds=5) / CLOSE


def few(seed: int) -> Snapshot:
    """1 to 7 jobs of random demand, progress, stages, tasks and service on 4 hosts of different rates."""
    draw = np.random.default_rng(seed)
    names = [f"h{i}" for i in range(4)]
    hosts = {name: Host(name, *draw.choice([1e8, 1e9, 1e10], 2)) for name in names}
    jobs = []
    for number in range(draw.integers(1, 8)):
        pairs = [(a, b) for a in names for b in names if a != b and draw.random() < 0.3]
        done = int(draw.integers(0, 12))
        rising = np.sort(draw.random(done))
        jobs.append(
            Job(
                f"j{number}",
                tuple(Demand(a, b, float(10 ** draw.uniform(3, 8))) for a, b in pairs),
                arrival=float(draw.uniform(0, 50)),
                weight=float(draw.choice([1.0, 1.0, 0.3, 4.0])),
                stage=draw.choice([None, "s1", "s2"]),
                iterations_left=float(draw.integers(0, 30)),
                iterations_total=draw.choice([None, 40.0]),
                compute_seconds=float(draw.uniform(0, 2)),
                progress=tuple(Progress(float(k), 50.0 + k, float(v)) for k, v in enumerate(rising, 1)),
                tasks=(Task(Role.PS, pairs[0][0], 5000 + number),) if pairs and draw.random() < 0.5 else (),
                sent_bytes={name: float(10 ** draw.uniform(0, 9)) for name in names if draw.random() < 0.5},
            )
        )
    return Snapshot(now=100.0, hosts=hosts, jobs=tuple(jobs))


@pytest.mark.parametrize("name", sorted(available()))
def test_every_policy_is_at_or_above_the_best_order_and_the_bounds(name) -> None:
    for seed in range(300):
        snapshot = few(seed)
        made = plan(snapshot, None, policy=make(name))
        loads = loads_left(snapshot, load_matrix(snapshot))
        weights = np.array([job.weight for job in snapshot.jobs])
        best = exact(loads, weights) / weights.sum()
        assert made.objective_seconds >= best / CLOSE, (seed, made.ordering.bands)
        assert best >= made.lower_bound_seconds / CLOSE, seed
        if name == "sincronia":
            assert made.objective_seconds <= 2 * made.lower_bound_seconds * CLOSE


def test_the_bound_holds_where_a_load_is_nothing_beside_another() -> None:
    loads, weights = LoadMatrix.dense(np.array([[1e15], [0.07]])), np.array([1e-15, 1.0])
    assert dual(loads, weights) <= exact(loads, weights) * CLOSE
    dense, many = np.array([[1e15, 1.0], [0.07, 1.0]]), np.array([1e-15, 1.0])
    assert bssi(dense, many).lower_bound <= exact(LoadMatrix.dense(dense), many) * CLOSE


def test_more_jobs_than_can_be_gone_through_are_refused() -> None:
    with pytest.raises(ValueError, match="there are 13 jobs; the exact bound can be computed for at most 12"):
        exact(LoadMatrix.dense(np.ones((13, 1))), np.ones(13))


def _stage_of(snapshot: Snapshot, members: list[list[int]], ordering) -> list[int]:
    stage = {snapshot.jobs[j].id: number for number, jobs in enumerate(members) for j in jobs}
    return [stage[job] for band in ordering.bands for job in band]
