"""The Gittins index against its definition and its limits."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller import gittins

DRAWS = st.lists(st.tuples(st.floats(0.1, 1e3) | st.just(np.inf), st.floats(0.01, 1)), min_size=1, max_size=12)


@given(DRAWS)
def test_the_index_is_the_best_horizon(draws) -> None:
    left = np.array([d for d, _ in draws])
    weight = np.array([w for _, w in draws])
    weight /= weight.sum()
    finite = left[np.isfinite(left)]
    by_definition = max(
        (weight[left <= d].sum() / (weight * np.minimum(left, d)).sum() for d in finite),
        default=0.0,
    )
    assert gittins.index(left, weight) == pytest.approx(by_definition, rel=1e-9)


@given(st.floats(0.1, 1e6))
def test_a_sure_length_gives_shortest_remaining_first(length) -> None:
    assert gittins.index(np.array([length]), np.array([1.0])) == pytest.approx(1 / length)


def test_what_may_never_come_counts_for_less() -> None:
    sure = gittins.index(np.array([10.0]), np.array([1.0]))
    doubtful = gittins.index(np.array([10.0, np.inf]), np.array([0.5, 0.5]))
    assert 0 < doubtful < sure
    assert gittins.index(np.array([np.inf]), np.array([1.0])) == 0.0
