"""The gate: a family is used only where its runs predict each other better than the global prior does."""

from __future__ import annotations

import pytest

from controller.curves.fit import T90
from controller.families.build import history_of
from controller.families.gate import EVEN_METRIC_ERROR, judge
from controller.model import Metric
from tests.support.controller.registry.family_runs import earlier


def runs(shares, converged=None):
    return [
        earlier(f"j{i}", float(i), t90=100.0 * share, converged=metric)
        for i, (share, metric) in enumerate(zip(shares, converged or [0.9] * len(shares), strict=True))
    ]


def test_runs_alike_open_it():
    gate = judge(runs([0.08, 0.09, 0.1], [0.94, 0.945, 0.941]))
    assert gate.is_open
    assert gate.reason is None
    assert gate.error is not None
    assert gate.prior_error is not None
    assert gate.error < 1 < gate.prior_error


def test_runs_of_two_kinds_close_it():
    gate = judge(runs([0.05, 0.6, 0.07, 0.5], [0.95, 0.6, 0.94, 0.62]))
    assert not gate.is_open
    assert str(gate.reason).startswith("its runs predict each other no better")


def test_the_error_is_that_of_leaving_one_out():
    gate = judge(runs([0.25, 0.25, 0.25], [0.8, 0.8, 1.0]))
    # The first two are predicted as the mean of the others, 0.9; the third as 0.8.
    expected = (0.1 / 0.8 + 0.1 / 0.8 + 0.2 / 1.0) / 3 / EVEN_METRIC_ERROR
    assert gate.error == pytest.approx(expected)
    assert gate.prior_error == pytest.approx(1.0)
    assert T90.typical == 0.25


@pytest.mark.parametrize(("count", "reason"), [(0, "no run of it has finished"), (1, "one run does not show")])
def test_it_is_closed_where_nothing_can_be_left_out(count, reason):
    gate = judge(runs([0.1] * count))
    assert not gate.is_open
    assert gate.error is None
    assert str(gate.reason).startswith(reason)


def test_a_metric_that_is_well_known_opens_it_though_shares_are_the_priors():
    assert judge(runs([0.2, 0.3, 0.25, 0.28])).is_open


def test_statistics_are_of_finished_runs_with_the_jobs_metric():
    loss = earlier("l", 9.0, metric="loss", direction="min")
    history = history_of("f", [*runs([0.1, 0.2]), loss], Metric())
    assert history.counted == 2
    assert len(history.runs) == 3
    assert history.share_t90 is not None
    assert history.share_t90[:3] == pytest.approx((0.15, 0.1, 0.2))
    assert history_of("f", [loss], Metric()).share_t90 is None
    assert history_of("f", [loss], Metric("loss", "min")).counted == 1
