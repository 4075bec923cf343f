"""The committed curves meet the stated criteria, and the recorder applies these criteria."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation.curves import record
from evaluation.curves.data import DATA_SETS
from evaluation.curves.recipes import RECIPES, Recipe
from simulator.reports import targets
from simulator.workloads import curves

RECIPE = Recipe("iris", "bernoulli", 8, 1, 1, (("binarize", 0.0),))


def run(accuracy: list[float], stopped: bool = True, held_out: int = 500, chance: float = 0.1) -> record.Run:
    return record.Run(RECIPE, tuple(accuracy), stopped, held_out, chance)


def test_the_index_and_the_files_say_the_same():
    entries = curves.index()
    assert {path.stem for path in curves.FOLDER.glob("*.csv")} == {entry.name for entry in entries} | {"index"}
    for entry in entries:
        rows = curves.load(entry.name)
        assert len(rows) == entry.iterations
        assert targets.converged(rows) == pytest.approx(entry.converged, abs=1e-5)
        assert targets.target_iteration(rows, 0.9) == entry.t90_iteration
        assert targets.target_iteration(rows, 0.95) == entry.t95_iteration


def test_there_are_enough_curves_and_each_is_usable():
    entries = curves.index()
    assert len(entries) >= 24
    for entry in entries:
        assert record.SHORTEST <= entry.iterations <= record.LONGEST
        assert entry.t90_iteration is not None
        assert entry.t90_iteration > record.FIRST_ROWS
        assert all(0 <= value <= 1 for value in curves.load(entry.name))
    assert sum(path.stat().st_size for path in curves.FOLDER.glob("*.csv")) < 1e6


def test_the_halves_are_disjoint_equal_and_by_the_fixed_seed():
    study, claim = curves.names("study"), curves.names("claim")
    assert not set(study) & set(claim)
    assert abs(len(study) - len(claim)) <= 1
    split = record.uses([*study, *claim])
    assert split == {entry.name: entry.use for entry in curves.index()}


@pytest.mark.parametrize("name", ["absent", "../curves/digits-mlp-1", "index", ""])
def test_an_unknown_curve_is_refused(name):
    with pytest.raises(curves.CurveError, match="no curve called"):
        curves.load(name)


@pytest.mark.parametrize("rows", ["2,0.5", "1,high", "1", ""])
def test_a_broken_curve_is_refused_with_its_file(tmp_path, rows):
    (tmp_path / "broken.csv").write_text(f"# why\niteration,accuracy\n{rows}\n")
    with pytest.raises(curves.CurveError, match=r"broken\.csv"):
        curves.load("broken", tmp_path)


def test_a_curve_is_replayed_over_the_whole_run():
    assert curves.replay([0.1, 0.2, 0.3], 3) == (0.1, 0.2, 0.3)
    assert curves.replay([0.1, 0.2, 0.3, 0.4], 2) == (0.2, 0.4)
    assert curves.replay([0.1, 0.2], 5) == (0.1, 0.1, 0.2, 0.2, 0.2)
    with pytest.raises(ValueError, match="nothing to replay"):
        curves.replay([], 3)


@given(st.integers(1, 400), st.integers(1, 1000))
def test_a_replay_is_in_order_and_ends_with_the_last_row(rows, iterations):
    shown = curves.replay(range(rows), iterations)
    assert len(shown) == iterations
    assert list(shown) == sorted(shown)
    assert shown[-1] == rows - 1


def test_the_criteria():
    rising = [0.1 + 0.02 * i for i in range(40)] + [0.9] * 40
    assert record.refusal(run(rising)) is None
    assert "not converged" in record.refusal(run(rising, stopped=False))
    assert "below its best" in record.refusal(run([*rising, *[0.7] * 20]))
    assert "near chance" in record.refusal(run(rising, chance=0.85))
    assert "by row 3" in record.refusal(run([0.9] * 40))


def test_patience():
    flat = [0.9] * 40
    assert not record.out_of_patience(flat[:39], 500, 0.1)
    assert record.out_of_patience(flat, 500, 0.1)
    assert not record.out_of_patience([0.11] * 60, 500, 0.1), "a plateau at chance does not end a run"
    assert not record.out_of_patience([0.5 + 0.01 * i for i in range(40)], 500, 0.1)


def test_recording_is_repeatable():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert record.record(RECIPE) == record.record(RECIPE)


def test_recipes_have_names_of_their_own_and_data():
    assert len({recipe.name for recipe in RECIPES}) == len(RECIPES)
    assert {recipe.data for recipe in RECIPES} == set(DATA_SETS)


def test_data_sets_are_what_they_say():
    for name, make in DATA_SETS.items():
        features, labels = make(7)
        assert len(features) == len(labels)
        assert np.isfinite(features).all()
        assert np.array_equal(make(7)[0], features), f"{name} differs from itself"
    images, same = DATA_SETS["digits-same"](3)
    assert 0.4 < same.mean() < 0.65
    assert images.shape[1] == 128
