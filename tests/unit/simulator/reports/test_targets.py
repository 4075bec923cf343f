"""t90, t95 and JCT: the definition, by hand and by its properties."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.reports import targets

accuracies = st.lists(st.floats(0.01, 1.0), min_size=3, max_size=200)
fractions = st.floats(0.05, 1.0)


def history(metrics: list[float], seconds: float = 2.0) -> list[targets.Point]:
    return [(seconds * i, i, metric) for i, metric in enumerate(metrics, start=1)]


def test_converged_is_the_median_of_the_last_tenth():
    assert targets.converged([0.1] * 18 + [0.8, 0.9]) == pytest.approx(0.85)
    assert targets.converged([0.5]) == 0.5
    assert targets.converged([0.0] * 21 + [0.7, 0.2, 0.6]) == pytest.approx(0.6)  # 24 rows: three of them


def test_accuracy_starts_at_zero_and_loss_at_its_first_value():
    assert targets.target_value([0.5, 0.8, 0.8], 0.9) == pytest.approx(0.72)
    assert targets.target_value([3.0, 2.0, 1.0], 0.9, "min") == pytest.approx(1.2)


def test_one_lucky_report_is_not_a_crossing():
    run = [0.1, 0.95, 0.1, 0.1, 0.9, 0.91, 0.92] + [0.9] * 10
    assert targets.target_iteration(run, 0.9) == 6


def test_the_crossing_report_gives_the_time():
    run = [0.1, 0.5, 0.9, 0.9, 0.9, 0.9]
    assert targets.job_times(history(run), run, jct=12.0) == targets.JobTimes(t90=8.0, t95=8.0, jct=12.0)


def test_fewer_than_three_reports_never_cross():
    assert targets.target_seconds(history([1.0, 1.0]), 0.5) is None


def test_a_loss_crosses_downward():
    run = [4.0, 3.0, 2.0, 1.0, 1.0, 1.0]
    assert targets.target_iteration(run, 0.9, "min") == 5


def test_a_job_that_was_stopped_is_measured_against_the_full_run_and_censored():
    run = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.9, 0.9, 0.9]
    times = targets.job_times(history(run[:5]), run, jct=None)
    assert times == targets.JobTimes(None, None, None)
    assert times.censored
    assert not targets.job_times(history(run), run, jct=24.0).censored


def test_a_declared_target_takes_the_place_of_90_percent():
    run = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.9, 0.9, 0.9]
    times = targets.job_times(history(run), run, jct=24.0, target=0.5)
    assert (times.t90, times.t95) == (12.0, targets.job_times(history(run), run, jct=24.0).t95)
    assert targets.job_times(history(run), run, jct=24.0, target=0.95).censored
    falling = [4.0, 3.0, 2.0, 1.0, 1.0, 1.0]
    assert targets.job_times(history(falling), falling, jct=12.0, direction="min", target=2.0).t90 == 8.0


def test_t90_alone_can_be_reached():
    run = [0.5] * 3 + [0.92] * 5 + [1.0] * 10
    times = targets.job_times(history(run[:8]), run, jct=None)
    assert (times.t90, times.t95, times.censored) == (10.0, None, True)


@pytest.mark.parametrize("fraction", [0.0, -1.0, 1.1])
def test_a_fraction_outside_its_range_is_refused(fraction):
    with pytest.raises(ValueError, match="fraction"):
        targets.target_value([0.5], fraction)


def test_an_empty_run_is_refused():
    with pytest.raises(ValueError, match="without any report"):
        targets.target_iteration([], 0.9)


@given(accuracies, fractions, fractions)
def test_a_higher_target_is_never_reached_earlier(run, one, other):
    low, high = sorted((one, other))
    first, second = targets.target_iteration(run, low), targets.target_iteration(run, high)
    if second is not None:
        assert first is not None
        assert first <= second


@given(accuracies, fractions)
def test_iteration_and_seconds_agree(run, fraction):
    iteration = targets.target_iteration(run, fraction)
    seconds = targets.target_seconds(history(run), targets.target_value(run, fraction))
    assert seconds == (None if iteration is None else 2.0 * iteration)


@given(accuracies, fractions)
def test_the_crossing_holds_and_nothing_before_it_does(run, fraction):
    target, iteration = targets.target_value(run, fraction), targets.target_iteration(run, fraction)
    medians = [sorted(run[i - 2 : i + 1])[1] for i in range(2, len(run))]
    reached = [i for i, median in enumerate(medians, start=3) if median >= target]
    assert iteration == (reached[0] if reached else None)


@given(accuracies, fractions)
def test_scaling_the_metric_moves_nothing(run, fraction):
    # A power of two scales exactly, so that rounding cannot tip a comparison.
    assert targets.target_iteration([0.25 * v for v in run], fraction) == targets.target_iteration(run, fraction)


@given(st.lists(st.floats(0.01, 1.0), min_size=30, max_size=60), st.integers(3, 29))
def test_a_truncated_history_crosses_at_the_same_time_or_not_at_all(run, cut):
    target = targets.target_value(run, 0.9)
    full, part = targets.target_seconds(history(run), target), targets.target_seconds(history(run[:cut]), target)
    assert part == (full if full is not None and full <= 2.0 * cut else None)
