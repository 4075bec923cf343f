"""BSSI against brute force and its own dual bound, on random instances."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.model import Direction, Port
from controller.ordering.bssi import bssi, completion_times
from controller.ordering.loads import LoadMatrix

PORTS = [Port(host, direction) for host in ("a", "b", "c") for direction in Direction]
LOADS = st.dictionaries(st.sampled_from(PORTS), st.sampled_from([0.0, 0.5, 1.0, 2.0, 3.7, 10.0]), max_size=6)
JOBS = st.lists(st.tuples(LOADS, st.sampled_from([0.3, 1.0, 1.0, 4.0])), max_size=6)


def objective(loads, weights, order) -> float:
    return float(np.asarray(weights) @ completion_times(loads, [[j] for j in order])) if loads else 0.0


@settings(max_examples=300, deadline=None)
@given(JOBS)
def test_the_dual_bound_holds_for_every_order_and_the_order_is_within_twice_the_bound(jobs) -> None:
    loads = [load for load, _ in jobs]
    weights = [weight for _, weight in jobs]
    result = bssi(loads, weights)
    assert sorted(result.order) == list(range(len(jobs)))
    best = min(objective(loads, weights, order) for order in itertools.permutations(range(len(jobs))))
    assert result.lower_bound <= best * (1 + 1e-9) + 1e-9
    assert objective(loads, weights, result.order) <= 2 * result.lower_bound * (1 + 1e-9) + 1e-9


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.floats(0.01, 100), st.floats(0.01, 100)), min_size=1, max_size=6))
def test_on_one_port_bssi_is_smiths_rule_and_its_bound_is_exact(jobs) -> None:
    port = Port("a", Direction.INGRESS)
    loads, weights = [{port: load} for load, _ in jobs], [weight for _, weight in jobs]
    result = bssi(loads, weights)
    smith = sorted(range(len(jobs)), key=lambda j: loads[j][port] / weights[j])
    best = objective(loads, weights, smith)
    assert objective(loads, weights, result.order) == pytest.approx(best)
    assert result.lower_bound == pytest.approx(best)


def test_jobs_without_load_come_first_the_lightest_of_them_last() -> None:
    port = Port("a", Direction.INGRESS)
    assert bssi([{}, {port: 1.0}, {}], [1.0, 1.0, 2.0]).order == (2, 0, 1)


@pytest.mark.parametrize("dense", [False, True])
@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.dictionaries(st.sampled_from(PORTS), st.sampled_from([5e-324, 1e-310, 1e-200, 1.0, 1e40]), max_size=4),
            st.sampled_from([1e-9, 1.0, 1e9]),
        ),
        max_size=5,
    )
)
def test_loads_of_any_size_are_ordered_and_bounded(dense, jobs) -> None:
    loads, weights = [load for load, _ in jobs], [weight for _, weight in jobs]
    array = np.array([[load.get(port, 0.0) for port in PORTS] for load in loads]).reshape(len(jobs), len(PORTS))
    result = bssi(array if dense else loads, weights)
    assert sorted(result.order) == list(range(len(jobs)))
    best = min(objective(loads, weights, order) for order in itertools.permutations(range(len(jobs))))
    assert 0 <= result.lower_bound <= best * (1 + 1e-9)


def test_a_count_that_does_not_match_is_refused() -> None:
    with pytest.raises(ValueError, match="1 jobs but 2 weights"):
        bssi([{}], [1.0, 2.0])


def reference(loads, weights) -> tuple[list[int], float]:
    """BSSI as it stands in the paper, one number at a time; ties as documented."""
    left, weight, last_to_first, bound = set(range(len(loads))), list(weights), [], 0.0
    ports = [port for load in loads for port, seconds in load.items() if seconds > 0]
    ports = list(dict.fromkeys(ports))
    while left:
        total = {port: sum(loads[j].get(port, 0.0) for j in sorted(left)) for port in ports}
        port = max(ports, key=total.__getitem__, default=None)
        there = [j for j in sorted(left) if port is not None and loads[j].get(port, 0.0) > 0]
        if not there:
            last_to_first += sorted(left, key=lambda j: (weight[j], -j))
            break
        chosen = min(reversed(there), key=lambda j: weight[j] / loads[j][port])
        theta = weight[chosen] / loads[chosen][port]
        bound += theta * (sum(loads[j][port] ** 2 for j in there) + total[port] ** 2) / 2
        for j in there:
            weight[j] = max(weight[j] - theta * loads[j][port], 0.0)
        left.remove(chosen)
        last_to_first.append(chosen)
    own = sum(w * max(load.values(), default=0.0) for w, load in zip(weights, loads, strict=True))
    return last_to_first[::-1], max(bound, own)


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 14), st.sampled_from([0.15, 0.5, 1.0]))
def test_the_vectors_do_what_the_paper_says_for_lists_and_for_arrays(seed, n, density) -> None:
    draw = np.random.default_rng(seed)
    array = draw.lognormal(0, 2, (n, len(PORTS))) * (draw.random((n, len(PORTS))) < density)
    weights = draw.uniform(0.1, 3.0, n)
    loads = [{port: float(s) for port, s in zip(PORTS, row, strict=True) if s > 0} for row in array]
    order, bound = reference(loads, weights.tolist())
    for given_loads in (loads, array, LoadMatrix.of(loads), LoadMatrix.dense(array)):
        result = bssi(given_loads, weights)
        assert list(result.order) == order
        assert result.lower_bound == pytest.approx(bound)
    bands = [band.tolist() for band in np.array_split(draw.permutation(n), max(1, n // 2))]
    expected = []
    for j in range(n):
        before = [i for band in bands[: 1 + next(b for b, band in enumerate(bands) if j in band)] for i in band]
        expected.append(max((array[before, port].sum() for port in np.flatnonzero(array[j])), default=0.0))
    assert completion_times(LoadMatrix.dense(array), bands) == pytest.approx(expected)


def test_long_columns_and_whole_arrays_give_the_order_that_short_ones_give() -> None:
    draw = np.random.default_rng(2)
    array = draw.lognormal(0, 1, (700, 3)) * (draw.random((700, 3)) < 0.9)
    weights = draw.uniform(0.5, 2.0, 700)
    sparse = LoadMatrix.dense(np.hstack((array, np.zeros((700, 9)))))  # under a quarter of it is not 0
    assert len(sparse.port) > 256 * 7
    one, other = bssi(sparse, weights), bssi(array, weights)
    assert one.order == other.order
    assert one.lower_bound == pytest.approx(other.lower_bound)


def test_loads_of_very_different_sizes_leave_no_ghosts() -> None:
    port = [Port(host, Direction.INGRESS) for host in "abc"]
    loads = [{port[0]: 1e15, port[1]: 0.1}, {port[1]: 0.2, port[2]: 1e-9}, {port[0]: 3e-12}, {}, {port[2]: 7e-13}]
    result = bssi(loads, [1.0] * 5)
    assert sorted(result.order) == [0, 1, 2, 3, 4]
    assert result.order[-1] == 0


@settings(max_examples=100, deadline=None)
@given(jobs=st.integers(1, 40), ports=st.integers(1, 60), share=st.floats(0.02, 0.2), seed=st.integers(0, 10**6))
def test_plain_numbers_and_arrays_of_them_give_the_same_order_and_bound(jobs, ports, share, seed) -> None:
    rng = np.random.default_rng(seed)
    loads = np.where(rng.random((jobs, ports)) < share, rng.choice([0.5, 1.0, 3.7, 10.0], (jobs, ports)), 0.0)
    weights = rng.choice([0.3, 1.0, 4.0], jobs)
    found = []
    for most in (jobs, -1):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("controller.ordering.bssi._SHORT_COLUMN", most)
            patch.setattr("controller.ordering.bssi._DENSE", 2.0)
            found.append(bssi(LoadMatrix.dense(loads), weights))
    assert found[0].order == found[1].order
    assert found[0].lower_bound == pytest.approx(found[1].lower_bound, rel=1e-12)
