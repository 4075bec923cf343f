"""BSSI against brute force and its own dual bound, on random instances."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.bssi import bssi, completion_times
from controller.model import Direction, Port

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


def test_a_count_that_does_not_match_is_refused() -> None:
    with pytest.raises(ValueError, match="1 jobs but 2 weights"):
        bssi([{}], [1.0, 2.0])
