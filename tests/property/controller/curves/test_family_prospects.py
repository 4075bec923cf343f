"""Prospects of jobs with earlier runs: finite, free of units, and better than without where families are alike."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit

from controller.curves import fit as curves
from controller.curves.earlier import EarlierCurve, EarlierRuns
from controller.curves.histories import MIN_POINTS
from controller.curves.prospects import HORIZONS, learned, learned_with
from controller.model import Metric, Progress
from evaluation.curves.learn_family_prospects import HISTORIES, Example, examples, known_families, moments
from evaluation.curves.learn_prospects import as_prospects, learn

POINTS = 64
PLAIN = 25
"""So many of the numbers do not hang on the family."""
TAUGHT = list(examples(known_families()))


def of_own(some: list[Example]) -> list[Example]:
    return [example for example in some if example.weight == HISTORIES[True]]


def loss(chances: list[np.ndarray], known) -> float:
    weight, total = known.weight / known.weight.sum(), 0.0
    for horizon, odds in zip(HORIZONS, chances, strict=True):
        comes, chance = (known.left > 0) & (known.left <= horizon), np.clip(expit(odds), 1e-6, 1 - 1e-6)
        total -= float(weight @ np.where(comes, np.log(chance), np.log1p(-chance)))
    return total


def test_the_file_tells_of_families_better_than_the_run_alone() -> None:
    known = moments(of_own(TAUGHT)[::12], with_targets=False, seed=7)
    with_family = learned_with(target=False, family=True).within(known.numbers)
    assert loss(with_family, known) < 0.9 * loss(learned(0.9).within(known.numbers[:, :PLAIN]), known)


def test_families_that_did_not_teach_are_told_better_too() -> None:
    families = known_families()
    names = sorted(families)
    taught = list(examples({name: families[name] for name in names[::2]}))[::8]
    prospects = as_prospects(learn(moments(taught, with_targets=False)))
    others = list(examples({name: families[name] for name in names[1::2]}, seed=2))
    known = moments(of_own(others)[::12], with_targets=False)
    plain = learned(0.9).within(known.numbers[:, :PLAIN])
    assert loss(prospects.within(known.numbers), known) < 0.95 * loss(plain, known)


def runs(draw_levels: list[list[float]], share: float, spread: float, converged: float) -> EarlierRuns:
    made = [
        EarlierCurve(share, np.linspace(0.01, 1.0, len(levels)), np.minimum.accumulate(np.array(levels)))
        for levels in draw_levels
    ]
    return EarlierRuns.of(made, (share, share, share, spread), (converged, abs(converged) / 10), POINTS)


@settings(max_examples=60, deadline=None)
@given(
    values=st.lists(st.floats(-1e6, 1e6), min_size=MIN_POINTS, max_size=30),
    levels=st.lists(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=POINTS), min_size=2, max_size=5),
    share=st.floats(0.001, 1.0),
    spread=st.floats(0.0, 3.0),
    converged=st.floats(-1e6, 1e6),
    target=st.none() | st.floats(-1e7, 1e7),
    direction=st.sampled_from(["max", "min"]),
)
def test_any_history_with_any_family_has_prospects(values, levels, share, spread, converged, target, direction) -> None:
    earlier = runs(levels, share, spread, converged)
    progress = [Progress(float(k), float(k), value) for k, value in enumerate(values, start=1)]
    histories = [
        curves.History(progress[:k], Metric("loss", direction), 2.0 * len(values), target, earlier)
        for k in range(MIN_POINTS, len(values) + 1)
    ]
    numbers = curves.known_numbers(histories)
    assert np.isfinite(numbers).all()
    for fitted in curves.fit_many(histories):
        assert fitted is not None
        assert fitted.by_family
        rate = fitted.targets[0].rate if fitted.declared is None else fitted.declared.rate
        assert 0 < rate <= 1
    assert curves.fit_many(histories) == curves.fit_many(histories)


@pytest.mark.parametrize("unit", [0.1, 7.0, 1e4])
def test_prospects_do_not_hang_on_units(unit: float) -> None:
    run = [100.0 + 50.0 * (1 - np.exp(-k / 12)) for k in range(1, 41)]
    numbers = []
    for u in (1.0, unit):
        earlier = runs([[-u * x * s for x in run] for s in (0.98, 1.0, 1.01)], 0.5, 0.1, u * 150.0)
        progress = [Progress(float(k), 0.0, u * value) for k, value in enumerate(run, start=1)]
        ends = range(MIN_POINTS, len(run) + 1, 4)
        numbers.append(
            curves.known_numbers([curves.History(progress[:k], Metric("r"), 60.0, None, earlier) for k in ends])
        )
    np.testing.assert_allclose(numbers[0][:, PLAIN:], numbers[1][:, PLAIN:], rtol=1e-5, atol=1e-6)


def test_the_label_is_the_true_90_percent_whosever_the_family_is() -> None:
    own, other = of_own(TAUGHT)[0], next(example for example in TAUGHT if example.weight == HISTORIES[False])
    other = Example(own.run, other.earlier, other.weight)
    known, wrong = (moments([example], with_targets=True) for example in (own, other))
    np.testing.assert_array_equal(known.left, wrong.left)
    np.testing.assert_allclose(known.weight * HISTORIES[False], wrong.weight * HISTORIES[True])
