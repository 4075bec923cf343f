"""Orders by expected loads: what holds up others goes later, tiers hold, what stands is not given up lightly."""

from __future__ import annotations

import numpy as np
import pytest

from controller.loads import LoadMatrix
from controller.policies._by_port import by_port

MARGIN = 0.05


def order(
    loads: list[list[float]],
    *,
    tiers: list[int] | None = None,
    before: tuple[int, ...] | None = None,
    weights: list[float] | None = None,
) -> tuple[int, ...]:
    matrix = LoadMatrix.dense(np.array(loads, dtype=float))
    return by_port(matrix, np.array(weights or [1.0] * len(loads)), tiers or [0] * len(loads), before, MARGIN)


def test_on_one_link_the_shortest_goes_first() -> None:
    assert order([[3.0], [1.0], [2.0]]) == (1, 2, 0)
    assert order([[3.0], [1.0], [2.0]], weights=[9.0, 1.0, 1.0]) == (0, 1, 2)


def test_a_job_that_holds_up_many_does_not_go_before_them_though_it_is_shortest() -> None:
    # It crosses three ports for 2 s each, and at each of them waits a job of 2.5 s.
    wide, others = [2.0, 2.0, 2.0], [[2.5, 0, 0], [0, 2.5, 0], [0, 0, 2.5]]
    assert order([wide, *others]).index(0) >= 2
    assert order([wide, others[0]]) == (0, 1)


def test_a_later_tier_waits_however_short_it_is() -> None:
    assert order([[5.0], [0.1], [3.0], [0.2]], tiers=[0, 1, 0, 1]) == (2, 0, 1, 3)


@pytest.mark.parametrize(("length", "kept"), [(2.1, True), (1.5, False)])
def test_an_order_is_given_up_for_one_that_is_better_by_the_margin(length: float, kept: bool) -> None:
    # Means of V: 2 and 2 + length against length and 2 + length.
    found = order([[2.2], [length]], before=(0, 1))
    assert (found == (0, 1)) is kept


def test_an_order_that_breaks_a_tier_is_never_kept() -> None:
    assert order([[2.0], [2.0]], tiers=[1, 0], before=(0, 1)) == (1, 0)


def test_jobs_without_any_load_are_in_it_too() -> None:
    assert sorted(order([[0.0], [1.0], [0.0]], tiers=[0, 0, 1])) == [0, 1, 2]
