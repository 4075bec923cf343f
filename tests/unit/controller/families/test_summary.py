"""What is kept of a run at its end: when it was near convergence, and which runs do not count."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.families.run import MAX_POINTS, Ending
from controller.families.summary import summary
from controller.model import Metric, Progress
from simulator.reports import targets
from simulator.workloads import curves
from tests.support.controller.registry.family_runs import reported, rising

LOSS = Metric("loss", "min")


def kept(curve, *, every=1, metric=None, **parts):
    return summary(("a", 5.0), reported(curve, every), metric or Metric(), ended_at=9.0, **parts)


def test_a_whole_run_counts_with_its_targets_and_its_curve():
    run = kept(rising(100), declared=100.0)
    assert (run.ending, run.reason, run.length, run.key) == (Ending.FINISHED, None, 100.0, ("a", 5.0))
    assert run.converged == pytest.approx(0.9, abs=1e-3)
    assert run.t90 == 25  # 2.3 scales are 23.03: the median of 23 to 25 is the first above it
    assert run.share_t90 == pytest.approx(0.25)
    assert run.t95 == targets.target_iteration(rising(100), 0.95)
    assert len(run.curve) == MAX_POINTS
    assert (run.curve[0][0], run.curve[-1][0]) == (1.0, 100.0)


@pytest.mark.parametrize("curve", curves.names("study")[:12])
def test_targets_are_those_of_the_definition_for_recorded_curves(curve):
    rows = list(curves.load(curve))
    run = kept(rows)
    assert run.converged == targets.converged(rows)
    assert run.t90 == targets.target_iteration(rows, 0.90)
    assert run.t95 == targets.target_iteration(rows, 0.95)


def test_reports_need_not_come_at_each_iteration():
    run = kept(rising(1000, scale=100.0), every=10)
    assert run.ending is Ending.FINISHED
    assert run.share_t90 == pytest.approx(0.24, abs=0.02)


def test_a_loss_begins_at_its_first_value():
    run = kept([2.0 - metric for metric in rising(100)], metric=LOSS)
    assert run.ending is Ending.FINISHED
    first = 2.0 - rising(100)[0]
    assert run.gap == pytest.approx(first - 1.1, abs=1e-3)
    assert run.t90 == targets.target_iteration([2.0 - metric for metric in rising(100)], 0.9, "min")


@pytest.mark.parametrize(
    ("curve", "parts", "ending", "reason"),
    [
        (rising(100), {"has_diverged": True}, Ending.DIVERGED, "its metric became no number"),
        (rising(100), {"is_lost": True}, Ending.ABORTED, "its end was not reported"),
        (rising(20), {"declared": 100.0}, Ending.ABORTED, "it stopped after 20 of 100 iterations, before it"),
        (rising(5), {"declared": 100.0}, Ending.ABORTED, "it stopped after 5 of 100 iterations, before it"),
        ([], {}, Ending.REFUSED, "it reported no accuracy"),
        (rising(9), {}, Ending.REFUSED, "only 9 of the 10 reports"),
        (rising(40)[::-1], {}, Ending.REFUSED, "it ends no better than it began"),
        ([0.0] * 20, {}, Ending.REFUSED, "it ends no better than it began"),
        (rising(50) + [0.6] * 50, {}, Ending.REFUSED, "it ends below its best"),
        (rising(100, scale=0.5), {}, Ending.REFUSED, "it reaches 90 % by its report 3"),
    ],
)
def test_runs_that_say_nothing_are_flagged_with_the_reason(curve, parts, ending, reason):
    run = kept(curve, **parts)
    assert run.ending is ending
    assert not run.counts
    assert ending is Ending.REFUSED or run.t90 is None
    assert str(run.reason).startswith(reason)


def test_a_run_that_went_on_from_a_copy_is_refused():
    late = [Progress(500.0 + k, 10.0 * k, metric) for k, metric in enumerate(rising(100))]
    run = summary(("a", 0.0), late, Metric(), ended_at=0.0)
    assert (run.ending, run.reason) == (Ending.REFUSED, "its first report is at iteration 500 of 599")


def test_a_run_that_patience_has_ended_counts():
    assert kept(rising(80), declared=1000.0).ending is Ending.FINISHED


def test_a_noisy_end_is_no_loss():
    wavering = [metric + 0.03 * (-1) ** k for k, metric in enumerate(rising(60, end=0.5, scale=12.0))]
    assert kept(wavering).ending is Ending.FINISHED


metrics = st.one_of(st.none(), st.floats(-1e30, 1e30))


@given(st.lists(metrics, max_size=150), st.sampled_from([Metric(), LOSS]), st.one_of(st.none(), st.floats(1, 1e6)))
def test_every_history_has_a_summary(values, metric, declared):
    points = [Progress(float(k), float(k), value) for k, value in enumerate(values)]
    run = summary(("a", 0.0), points, metric, ended_at=1.0, declared=declared)
    assert len(run.curve) <= MAX_POINTS
    assert (run.reason is None) == run.counts
    if run.counts:
        assert run.t90 is not None
        assert run.converged is not None
        assert math.isfinite(run.gap)
        assert 0 < run.t90 <= run.length
