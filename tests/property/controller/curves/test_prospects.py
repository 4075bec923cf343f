"""Prospects: the file is what recorded runs teach, units do not matter, and runs of other recipes are told too."""

from __future__ import annotations

from functools import cache

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.curves import fit as curves
from controller.curves.histories import MIN_POINTS, read
from controller.curves.prospects import Prospects, learned
from controller.curves.shapes import NUMBERS, shapes
from controller.curves.trees import Forest, Trees
from controller.model import Metric, Progress
from evaluation.curves import drawn_curves
from evaluation.curves.learn_prospects import as_prospects, fitted, known_curves, learn, moments, replayed
from simulator.reports.targets import target_iteration
from tests.support.simulator import one_link

ACCURACY = Metric()


def histories(run, metric=ACCURACY, scale=1.0, total=None):
    """What was known of a run after each iteration from the third on."""
    progress = [Progress(k * scale, float(k), value) for k, value in enumerate(run, start=1)]
    ends = range(MIN_POINTS, len(run) + 1)
    return [curves.History(progress[:k], metric, total or len(run) * scale) for k in ends]


@cache
def population(number: int) -> tuple[tuple[float, ...], ...]:
    return tuple(replayed(run.accuracy for run in drawn_curves.load() if run.population == number))


def test_the_file_is_what_the_recorded_runs_teach() -> None:
    known = moments(replayed(known_curves()), 0.9)
    taught, used = as_prospects(learn(known)), learned(0.9)
    for one, other in zip(taught.within(known.numbers), used.within(known.numbers), strict=True):
        np.testing.assert_allclose(one, other, atol=0.02)


def test_trees_add_up_what_each_leaf_says() -> None:
    trees = Trees.read(
        1.0, [[0, 1, 1, 0.5, 10.0, 20.0, 1.0, 2.0, 4.0, 8.0], [1, 0, 0, 15.0, 0.0, 0.0, 16, 32, 64, 128]]
    )
    rows = np.array([[0.5, 10.0], [0.0, 11.0], [1.0, 20.0], [-1.0, 20.0], [1.0, 21.0]])
    expected = [1 + 1 + 32, 1 + 2 + 16, 1 + 4 + 128, 1 + 2 + 64, 1 + 8 + 128]
    others = Trees.read(-1.0, [[0, 0, 0, 0.5, 0.0, 0.0, 3.0, 3.0, 5.0, 5.0]])
    first, second, third = Forest.of((trees, others, trees))(rows)
    assert first.tolist() == third.tolist() == expected
    assert second.tolist() == [2.0, 2.0, 4.0, 2.0, 4.0]


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    n=st.integers(MIN_POINTS, 60),
    scale=st.sampled_from([1.0, 7.0, 1000.0]),
    unit=st.sampled_from([1.0, 100.0]),
)
def test_shapes_do_not_hang_on_units(seed: int, n: int, scale: float, unit: float) -> None:
    random = np.random.default_rng(seed)
    run = np.clip(0.9 * (1 - np.exp(-np.arange(1, n + 1) / 10)) + random.normal(0, 0.03, n), 0.02, 0.99)
    plain = shapes(read(histories(run.tolist()))[1])
    other = shapes(read(histories((run * unit).tolist(), scale=scale))[1])
    # An accuracy in percent is known to be one where it is above 1.
    where = np.array([max(run[:k]) * unit > 1 or unit == 1 for k in range(MIN_POINTS, n + 1)])
    np.testing.assert_allclose(plain[where], other[where], rtol=1e-6, atol=1e-9)


@settings(max_examples=60, deadline=None)
@given(
    values=st.lists(st.floats(-1e6, 1e6), min_size=MIN_POINTS, max_size=80),
    direction=st.sampled_from(["max", "min"]),
    total=st.floats(1.0, 1e6),
)
def test_any_history_has_prospects(values: list[float], direction, total: float) -> None:
    known = histories(values, Metric("loss", direction), total=max(total, len(values)))
    found = read(known)[1]
    assert np.isfinite(shapes(found)).all()
    assert shapes(found).shape[1] == len(NUMBERS)
    for fraction in (0.9, 0.95):
        rate = learned(fraction).best(found, shapes(found), fitted(known, fraction))
        assert ((rate > 0) & (rate <= 1)).all()


def test_a_run_that_has_long_been_flat_has_little_to_win() -> None:
    run = np.minimum(0.9 * np.arange(1, 201) / 20, 0.9).tolist()
    rate = _rate(learned(0.9), run)
    assert rate[100] < 0.1 * rate[5]


def _rate(prospects: Prospects, run):
    known = histories(run)
    found = read(known)[1]
    return prospects.best(found, shapes(found), fitted(known, 0.9))


def _index(prospects: Prospects, run) -> one_link.Known | None:
    target = target_iteration(run, 0.9)
    if target is None:
        return None
    first = np.full(MIN_POINTS, 3.6 / len(run))
    return one_link.Known(len(run), target, np.append(first, _rate(prospects, run)))


def _fitted(run) -> one_link.Known | None:
    """The same by the fit alone, as it is where a run's length is not declared."""
    target = target_iteration(run, 0.9)
    if target is None:
        return None
    plain = curves.TargetSpec(0.9, curves.T90.typical, curves.T90.spread)
    rate = [fit.targets[0].rate for fit in curves.fit_many(histories(run), [plain]) if fit is not None]
    return one_link.Known(len(run), target, np.append(np.full(MIN_POINTS, 3.6 / len(run)), rate))


def test_what_one_population_teaches_helps_with_the_other() -> None:
    prospects = as_prospects(learn(moments(population(1), 0.9)))
    others = population(2)[::3]
    won = {
        name: one_link.headroom_won([one for run in others if (one := of(run)) is not None], draws=20, seed=1)
        for name, of in {"fitted": _fitted, "learned": lambda run: _index(prospects, run)}.items()
    }
    assert won["learned"] > won["fitted"] + 0.05, won
    assert won["learned"] > 0.4, won
