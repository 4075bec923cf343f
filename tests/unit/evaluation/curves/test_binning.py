"""Bins of our own: a model that learns from them has the trees that scikit-learn learns by itself."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier

from evaluation.curves.binning import BINS, binned

ROWS = 2000


def numbers(draw: np.random.Generator) -> np.ndarray:
    """Columns that differ in how many distinct values they have, and in how often each comes."""
    few, many = draw.integers(0, 7, ROWS).astype(float), draw.normal(size=ROWS)
    often_zero = np.where(draw.random(ROWS) < 0.9, 0.0, draw.lognormal(0, 3, ROWS))
    return np.stack((few, many, often_zero, np.full(ROWS, 3.0)), axis=1)


def splits(model: HistGradientBoostingClassifier) -> list[tuple[int, float]]:
    nodes = [node for (tree,) in model._predictors for node in tree.nodes if not node["is_leaf"]]
    return [(int(node["feature_idx"]), float(node["num_threshold"])) for node in nodes]


@pytest.mark.parametrize("seed", range(4))
def test_a_model_of_the_bins_has_the_trees_of_the_numbers(seed: int) -> None:
    draw = np.random.default_rng(seed)
    rows, weight = numbers(draw), draw.choice([0.3, 1.0, 1.7], ROWS)
    comes = rows[:, 1] + 0.2 * rows[:, 0] + np.minimum(rows[:, 2], 2.0) + draw.normal(size=ROWS) > 1.0
    bins = binned(rows, weight)
    assert bins.numbers.max() < BINS

    def taught(given: np.ndarray) -> HistGradientBoostingClassifier:
        made = HistGradientBoostingClassifier(max_depth=2, max_iter=8, max_bins=BINS, early_stopping=False)
        return made.fit(given, comes, sample_weight=weight)

    plain, ours = taught(rows), taught(bins.numbers)
    np.testing.assert_allclose(plain.predict_proba(rows), ours.predict_proba(bins.numbers), rtol=1e-9)
    expected = splits(plain)
    assert {column for column, _ in expected} == {0, 1, 2}
    found = [(column, bins.threshold(column, between)) for column, between in splits(ours)]
    np.testing.assert_allclose(found, expected)
