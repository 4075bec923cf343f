"""The recorded families: they are as they were drawn, and what judges never teaches."""

from __future__ import annotations

from evaluation.curves.families.draw import FACTORS, FAMILIES, ORDER, USES, bases, data_sets, retrainings
from evaluation.curves.families.record import family
from evaluation.curves.families.runs import KEPT, load
from evaluation.curves.recipes import Recipe


def test_families_to_learn_from_and_to_judge_by_share_no_data_set() -> None:
    study, claim = (set(data_sets(use)) for use in USES)
    assert not study & claim
    for use in USES:
        families = load(use)
        assert len(families) == FAMILIES
        for name, runs in families.items():
            assert any(name.startswith(f"{data}-") for data in data_sets(use))
            assert tuple(run.variation for run in runs) == ORDER
            assert runs[0].verdict == KEPT
            assert all(0 <= count <= run.held_out for run in runs for count in run.correct)


def test_a_retraining_has_each_number_near_the_base() -> None:
    base = Recipe("digits", "mlp", 32, 2, 41_000, (("hidden_layer_sizes", (64, 64)), ("learning_rate_init", 0.02)))
    for variation, recipe in retrainings(base)[1:]:
        factor = FACTORS.get(variation, 1.0) * 1.01
        assert recipe.data_seed == base.seed != recipe.seed
        sizes, rate = (dict(recipe.options)[name] for name in ("hidden_layer_sizes", "learning_rate_init"))
        for number, of_base in ((recipe.batch, base.batch), (sizes[0], 64), (rate, 0.02)):
            assert 1 / factor <= number / of_base <= factor, variation


def test_a_family_is_recorded_again_as_it_was() -> None:
    base = next(recipe for recipe in bases("study") if recipe.name == "iris-mlp-30003")
    assert family(("study", base)) == load("study")[base.name]
