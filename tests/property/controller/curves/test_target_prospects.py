"""Prospects of declared targets: the file is what runs teach, exact targets help, wrong ones cost little."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit

from controller.curves import fit as curves
from controller.curves.histories import MIN_POINTS, read
from controller.curves.prospects import HORIZONS, Prospects, learned_with
from controller.curves.shapes import shapes
from controller.model import Metric, Progress
from evaluation.curves import drawn_curves
from evaluation.curves.learn_prospects import as_prospects, fitted, known_curves, learn, moments, replayed
from evaluation.curves.learn_target_prospects import ERRORS, declared_moments
from simulator.reports.targets import target_iteration, target_value
from tests.support.simulator import one_link

SHAPE = 21
"""So many of the numbers are the history's shape."""
PRIOR_INDEX = 3.6
"""What a job with too few reports is taken to have, over the length of its run."""


def histories(run, target, metric=Metric(), total=None):  # noqa: B008 - frozen
    progress = [Progress(float(k), float(k), value) for k, value in enumerate(run, start=1)]
    ends = range(MIN_POINTS, len(run) + 1)
    return [curves.History(progress[:k], metric, float(total or len(run)), target) for k in ends]


def test_the_file_tells_the_recorded_runs_better_than_their_mean() -> None:
    known = declared_moments(list(replayed(known_curves()))[::10], seed=7)
    weight = known.weight / known.weight.sum()
    for horizon, odds in zip(HORIZONS, learned_with(target=True, family=False).within(known.numbers), strict=True):
        comes = (known.left > 0) & (known.left <= horizon)
        chance, mean = expit(odds), float(weight @ comes)
        assert _loss(chance, comes, weight) < 0.75 * _loss(np.full(len(comes), mean), comes, weight)
        assert float(weight @ chance) == pytest.approx(mean, rel=0.1), "it is fair"


def _loss(chance, comes, weight) -> float:
    return float(-weight @ np.where(comes, np.log(chance), np.log1p(-chance)))


@settings(max_examples=60, deadline=None)
@given(
    values=st.lists(st.floats(-1e6, 1e6), min_size=MIN_POINTS, max_size=40),
    target=st.floats(-1e7, 1e7),
    direction=st.sampled_from(["max", "min"]),
    total=st.floats(1.0, 1e6),
)
def test_any_history_with_any_target_has_prospects(values: list[float], target: float, direction, total: float) -> None:
    known = histories(values, target, Metric("loss", direction), total=max(total, len(values)))
    numbers = curves.known_numbers(known)
    assert np.isfinite(numbers).all()
    rate = learned_with(target=True, family=False).best(read(known)[1], numbers[:, :SHAPE], numbers[:, SHAPE:])
    assert ((rate > 0) & (rate <= 1)).all()
    rates = [fit.declared.rate for fit in curves.fit_many(known) if fit is not None and fit.declared is not None]
    np.testing.assert_allclose(rates, rate, rtol=1e-9)


@settings(max_examples=20, deadline=None)
@given(unit=st.sampled_from([0.1, 7.0, 1e4]), scale=st.sampled_from([1.0, 30.0]), share=st.floats(0.3, 1.3))
def test_prospects_do_not_hang_on_units(unit: float, scale: float, share: float) -> None:
    """Of a metric that has no natural limit, such as a reward."""
    run = [100.0 + 50.0 * (1 - np.exp(-k / 12)) for k in range(1, 41)]
    numbers = []
    for u, s in ((1.0, 1.0), (unit, scale)):
        progress = [Progress(k * s, 0.0, -u * value) for k, value in enumerate(run, start=1)]
        ends = range(MIN_POINTS, len(run) + 1, 4)
        target = -u * (101.0 + share * 49.0)
        numbers.append(
            curves.known_numbers([curves.History(progress[:k], Metric("r", "min"), 60.0 * s, target) for k in ends])
        )
    np.testing.assert_allclose(*numbers, rtol=1e-5, atol=1e-6)


def test_a_run_that_is_long_past_its_target_has_little_to_win() -> None:
    run = np.minimum(0.9 * np.arange(1, 201) / 20, 0.9).tolist()
    known = histories(run, 0.81)
    rate = [fit.declared.rate for fit in curves.fit_many(known) if fit is not None and fit.declared is not None]
    assert rate[40] < 0.1 * rate[5]


def known_runs(runs, prospects: Prospects, errors: float | None) -> list[one_link.Known]:
    random, found = np.random.default_rng(3), []
    for run in runs:
        target = target_iteration(run, 0.9)
        if target is None:
            continue
        wrong = 1.0 + random.standard_normal() * (errors or 0.0)
        declared = None if errors is None else target_value(run, 0.9) * wrong
        known = histories(run, declared)
        if errors is None:
            rate = prospects.best(read(known)[1], shapes(read(known)[1]), fitted(known, 0.9))
        else:
            numbers = curves.known_numbers(known)
            rate = prospects.best(read(known)[1], numbers[:, :SHAPE], numbers[:, SHAPE:])
        found.append(one_link.Known(len(run), target, np.append(np.full(MIN_POINTS, PRIOR_INDEX / len(run)), rate)))
    return found


def test_what_one_population_teaches_of_targets_helps_with_the_other() -> None:
    """Recipes of one population are drawn apart from those of the other; nothing of the second has taught."""
    first, second = (
        list(replayed(run.accuracy for run in drawn_curves.load() if run.population == number)) for number in (1, 2)
    )
    with_target = as_prospects(learn(declared_moments(first[::2])))
    without = as_prospects(learn(moments(first[::2], 0.9)))
    won: Mapping[float | None, float] = {
        error: one_link.headroom_won(
            known_runs(second[::4], without if error is None else with_target, error), draws=20, seed=1
        )
        for error in (None, *ERRORS)
    }
    assert won[0.0] > won[None] + 0.1, won
    assert won[0.05] > won[None], won
    assert won[0.1] > won[None] - 0.06, won


def test_the_label_is_the_true_90_percent_whatever_is_declared() -> None:
    run = tuple(1 - np.exp(-k / 10) for k in range(1, 101))
    exact, wrong, plain = declared_moments([run], {0.0: 1.0}), declared_moments([run], {0.3: 2.0}), moments([run], 0.9)
    np.testing.assert_array_equal(exact.left, plain.left)
    np.testing.assert_array_equal(wrong.left, plain.left)
    np.testing.assert_allclose(wrong.weight, 2 * plain.weight)
