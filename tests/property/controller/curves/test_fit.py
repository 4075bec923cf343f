"""Curve fits on noisy, short, plateaued, diverging histories of every scale: accuracy, calibration, robustness."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.curves import fit
from controller.model import Metric, Progress

ACCURACY, LOSS = Metric(), Metric("loss", "min")


def history(values, start: int = 1) -> tuple[Progress, ...]:
    return tuple(Progress(float(k), float(k), float(v)) for k, v in enumerate(values, start))


def crossing(values, fraction: float, start: float) -> int:
    converged = float(np.median(values[-max(len(values) // 10, 1) :]))
    level = start + fraction * (converged - start)
    smooth = fit.running_median(np.asarray(values))
    there = smooth >= level if converged > start else smooth <= level
    return int(np.argmax(there)) + 1


@pytest.mark.parametrize("scale", [1.0, 100.0])
def test_an_exact_hyperbola_is_found_from_a_third_of_it(scale) -> None:
    k = np.arange(1, 201)
    values = scale * (0.9 - 1 / (0.1 * k + 1.25))
    fitted = fit.fit(history(values[:70]), ACCURACY, 200.0)
    assert fitted.targets[0].iteration.median == pytest.approx(crossing(values, 0.9, 0.0), rel=0.15)
    assert fitted.converged.median == pytest.approx(np.median(values[-20:]), rel=0.03)


def test_a_loss_near_zero_counts_from_its_first_value() -> None:
    k = np.arange(1, 201)
    values = 1e-4 * np.exp(-k / 30)
    fitted = fit.fit(history(values[:80]), LOSS, 200.0)
    assert fitted.targets[0].iteration.median == pytest.approx(crossing(values, 0.9, values[0]), rel=0.15)
    assert fitted.targets[0].metric < values[0]


def test_the_interval_is_calibrated_on_noisy_curves_of_both_families() -> None:
    rng = np.random.default_rng(7)
    inside = []
    for i in range(150):
        n, top, tau = 160, rng.uniform(0.5, 0.95), rng.uniform(10, 50)
        k = np.arange(1, n + 1)
        clean = top * (1 - np.exp(-k / tau)) if i % 2 else top * (1 - 1 / (1 + 3 * k / tau))
        noisy = clean + rng.normal(0, 0.01, n)
        truth = crossing(noisy, 0.9, 0.0)
        seen = int(max(truth * rng.uniform(0.3, 0.8), 8))
        iteration = fit.fit(history(noisy[:seen]), ACCURACY, float(n)).targets[0].iteration
        inside.append(iteration.low <= truth <= iteration.high)
    assert 0.7 <= np.mean(inside) <= 0.9


@pytest.mark.parametrize("scale", [1.0, 100.0])
def test_a_late_rise_is_within_the_interval_before_and_behind_after(scale) -> None:
    rng = np.random.default_rng(1)
    k = np.arange(1, 161)
    inside, behind = [], []
    for _ in range(60):
        middle, top, width = rng.uniform(20, 80), rng.uniform(0.6, 0.95), rng.uniform(3, 8)
        clean = 0.1 + (top - 0.1) / (1 + np.exp(-(k - middle) / width))
        values = scale * np.clip(clean + rng.normal(0, 0.01, len(k)), 0.0, 1.0)
        truth = crossing(values, 0.9, 0.0)
        early, late = (
            fit.fit(history(values[:seen]), ACCURACY, 160.0).targets[0] for seen in (max(int(0.6 * truth), 8), 140)
        )
        inside.append(early.iteration.low <= truth <= early.iteration.high)
        behind.append(late.crossed)
    assert np.mean(inside) >= 0.7
    assert min(behind) > 0.5
    assert np.mean(behind) > 0.9


def test_a_run_that_diverges_has_no_target_ahead() -> None:
    k = np.arange(1, 161)
    loss = np.where(k < 60, 2 * np.exp(-k / 15) + 0.3, 0.3 + np.exp((k - 60) / 20))
    accuracy = np.where(k < 60, 0.9 * (1 - np.exp(-k / 15)), 0.1)
    for values, metric in ((loss, LOSS), (accuracy, ACCURACY)):
        rising = fit.fit(history(values[:10]), metric, 160.0).targets[0]
        for seen in (65, 80, 120):
            target = fit.fit(history(values[:seen]), metric, 160.0).targets[0]
            assert target.crossed > 0.9, "its best lies behind it"
            assert target.rate < 0.2 * rising.rate


def test_a_plateau_is_known_to_be_past_its_targets_and_a_rise_to_be_before() -> None:
    rng = np.random.default_rng(3)
    k = np.arange(1, 201)
    values = 0.8 * (1 - np.exp(-k / 12)) + rng.normal(0, 0.01, 200)
    early = fit.fit(history(values[:10]), ACCURACY, 200.0).targets[0].crossed
    late = fit.fit(history(values[:120]), ACCURACY, 200.0).targets[0].crossed
    assert early < 0.5 < 0.95 < late


def test_fewer_than_three_values_are_no_fit_and_gaps_do_not_count() -> None:
    assert fit.fit(history([0.1, 0.2]), ACCURACY) is None
    points = (Progress(1, 1.0, 0.1), Progress(2, 2.0), Progress(3, 3.0, math.nan), Progress(4, 4.0, 0.2))
    assert fit.fit(points, ACCURACY) is None


@settings(max_examples=150, deadline=None)
@given(
    values=st.lists(st.floats(-1e9, 1e9), min_size=3, max_size=60),
    total=st.one_of(st.none(), st.floats(0.5, 1e6)),
    metric=st.sampled_from([ACCURACY, LOSS]),
)
def test_any_history_gives_finite_ordered_estimates_within_the_run(values, total, metric) -> None:
    fitted = fit.fit(history(values), metric, total)
    assert fitted is not None
    for target in fitted.targets:
        iteration = target.iteration
        assert 0 <= iteration.low <= iteration.median <= iteration.high < math.inf
        if total is not None:
            assert iteration.high <= max(total, len(values)) * (1 + 1e-9)
        assert 0 <= target.crossed <= 1
        assert math.isfinite(target.metric)
        assert 0 <= target.rate <= 1
    assert fitted.converged.low <= fitted.converged.median <= fitted.converged.high


@settings(max_examples=50, deadline=None)
@given(scale=st.sampled_from([1e-6, 1e-2, 100.0]), seed=st.integers(0, 1000))
def test_the_unit_of_a_loss_does_not_matter(scale, seed) -> None:
    rng = np.random.default_rng(seed)
    values = 2.0 * np.exp(-np.arange(30) / 9) + 0.3 + rng.normal(0, 0.02, 30)
    one = fit.fit(history(values), LOSS, 60.0)
    other = fit.fit(history(values * scale), LOSS, 60.0)
    assert other.targets[0].iteration.median == pytest.approx(one.targets[0].iteration.median, rel=1e-6)
    assert other.converged.median == pytest.approx(one.converged.median * scale, rel=1e-6)


def test_many_histories_at_once_are_fitted_as_one_by_one() -> None:
    rng = np.random.default_rng(5)
    asked = [
        fit.History(
            history(0.9 - 0.8 * np.exp(-np.arange(n) / rng.uniform(2, 60)) + rng.normal(0, 0.01, n)),
            ACCURACY if n % 3 else LOSS,
            None if n % 4 == 0 else 2.0 * n,
        )
        for n in (3, 4, 7, 31, 32, 33, 64, 100, 2, 400, 0, 65)
    ]
    for one, fitted in zip(asked, fit.fit_many(asked), strict=True):
        (alone,) = fit.fit_many([one])
        assert (fitted is None) == (alone is None) == (len(one.progress) < 3)
        if fitted is not None and alone is not None:
            assert fitted.points == alone.points
            assert fitted.converged.median == pytest.approx(alone.converged.median, rel=1e-9)
            for target, other in zip(fitted.targets, alone.targets, strict=True):
                assert target.iteration.median == pytest.approx(other.iteration.median, rel=1e-9)
                assert target.crossed == pytest.approx(other.crossed, abs=1e-9)


def test_the_order_of_reports_and_values_given_twice_do_not_matter() -> None:
    rng = np.random.default_rng(11)
    points = list(history(0.8 * (1 - np.exp(-np.arange(1, 41) / 9)) + rng.normal(0, 0.01, 40)))
    mixed = [Progress(5.0, 0.0, 0.99), *(points[i] for i in rng.permutation(40))]
    one, other = fit.fit(points, ACCURACY, 100.0), fit.fit(mixed, ACCURACY, 100.0)
    assert one.targets[0].iteration == other.targets[0].iteration


def test_one_absurd_value_in_a_long_history_changes_little() -> None:
    values = 0.9 * (1 - np.exp(-np.arange(1, 101) / 30))
    spiked = values.copy()
    spiked[60] = 0.0
    one, other = (fit.fit(history(v), ACCURACY, 300.0).targets[0].iteration for v in (values, spiked))
    assert other.median == pytest.approx(one.median, rel=0.1)


def test_a_run_of_unknown_length_is_expected_to_end() -> None:
    values = 0.9 * (1 - np.exp(-np.arange(1, 41) / 40))
    iteration = fit.fit(history(values), ACCURACY).targets[0].iteration
    assert 40 < iteration.median < iteration.high < 15 * 40
