"""How far the testbed may be from the simulator on the demo's jobs."""

from __future__ import annotations

import pytest

from evaluation.bench.agreement.demo import difference


def test_the_mean_of_the_runs_may_be_five_percent_off() -> None:
    figure = difference("t90 under fair", 10.0, [10.4, 10.4, 10.4])
    assert (figure.value, figure.limit) == (pytest.approx(4.0), 5.0)
    assert difference("t90 under fair", 10.0, [9.0, 9.0]).value == pytest.approx(10.0)


def test_or_as_far_as_a_run_is_from_their_mean() -> None:
    figure = difference("jct under jpas", 10.0, [9.0, 11.0, 13.0])
    assert figure.value == pytest.approx(10.0)
    assert figure.limit == pytest.approx(100 * 2 / 11)
