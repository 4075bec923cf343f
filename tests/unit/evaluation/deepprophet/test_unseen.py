"""Drawn models: the rule that draws them, and how their errors add up, each draw apart."""

from __future__ import annotations

from pathlib import Path

import pytest

from evaluation.deepprophet import claim, unseen
from evaluation.deepprophet.arms import DEFAULT_WAY, CaseResult
from evaluation.deepprophet.drawn import listed, rule
from evaluation.deepprophet.drawn.listed import Draw, Drawn
from evaluation.deepprophet.drawn.rule import HELD_OUT, KINDS, STUDIED, Kind

SKIPPED = {"b": "it has 900 MB of parameters", "c": f"{rule.REFUSED}the shape depends on the data"}


def drawn(name: str, kind: str) -> Drawn:
    return Drawn(name, kind, name, 4, 32, "ThisForThat", {"model_type": "this"})


@pytest.fixture
def draws(monkeypatch: pytest.MonkeyPatch) -> dict[str, Draw]:
    made = {
        "studied": Draw(STUDIED, "5", (drawn("studied-a", "films"),), SKIPPED),
        "unseen": Draw(
            HELD_OUT, "5", tuple(drawn(f"unseen-{n}", kind) for n, kind in enumerate(("films", "sound", "sound")))
        ),
    }
    monkeypatch.setattr(listed, "draws", lambda: made)
    return made


def case(predicted: float, *runs: float, guessed: float = 0.0) -> CaseResult:
    ways = {DEFAULT_WAY: (predicted, 0.8 * predicted, 1.25 * predicted)}
    return CaseResult(4, 1, None, runs, ways, 0.5, 0.0, 0.0, 0.0, guessed)


def test_each_draw_is_apart_and_a_model_counts_once(draws: dict[str, Draw]) -> None:
    cases = [
        ("studied-a", case(2.0, 1.0, 1.0)), ("unseen-0", case(1.1, 1.0, 1.0)), ("unseen-1", case(0.9, 0.9, 1.1)),
        ("unseen-2", case(1.4, 1.0, guessed=0.5)),
    ]  # fmt: skip
    found = unseen.add_up(cases)
    assert found["studied"]["mean_absolute_error"] == pytest.approx(1.0)
    assert (found["studied"]["skipped"], found["studied"]["refused"]) == (SKIPPED, 1)
    held_out = found["unseen"]
    assert (held_out["models"], held_out["kinds"]) == (3, 2)
    assert held_out["mean_absolute_error"] == pytest.approx(0.2)
    assert held_out["p90_absolute_error"] == pytest.approx(0.34)
    assert held_out["worst"] == pytest.approx(0.4)
    assert held_out["in_interval"] == pytest.approx(2 / 3)
    assert [row["error"] for row in held_out["rows"]] == pytest.approx([0.1, -0.1, 0.4])
    figures = {entry["metric"]: entry for entry in unseen.headline(found)}
    assert set(figures) == {"mean_absolute_error", "p90_absolute_error"}
    for entry in figures.values():
        assert "3 unseen architectures of 2 kinds" in entry["claim"]
        assert entry["unit"] == "share"
    assert len(list(unseen.tables(found))) == 2


def test_without_a_draw_there_is_nothing_to_say() -> None:
    assert unseen.add_up([]) == {}
    assert unseen.headline({}) == []


def test_every_drawn_model_is_measured_twice_with_the_calibration_between(draws: dict[str, Draw]) -> None:
    groups = [group for group in claim.groups() if isinstance(group, claim.Group)]
    middle = next(place for place, group in enumerate(groups) if group.model is None)
    for part in (groups[:middle], groups[middle + 1 :]):
        own = [group for group in part if group.is_drawn]
        assert {group.model for group in own} == {"studied-a", "unseen-0", "unseen-1", "unseen-2"}
        assert all(len(group.cases) == 1 for group in own)
    assert len({group.name for group in groups}) == len(groups)
    assert not any(isinstance(group, claim.Group) and group.is_drawn for group in claim.groups(quick=True))


def test_a_model_of_the_library_is_predicted_from_its_configuration(tmp_path: Path) -> None:
    assert drawn("a", "films").arguments(tmp_path) == [
        f"transformers:{tmp_path}/config.json:ThisForThat", "--length", "32",
    ]  # fmt: skip
    assert (tmp_path / "config.json").read_text() == '{"model_type": "this"}'
    network = Drawn("n", "k", "network 4", 16, seed=31, number=4)
    assert network.arguments(tmp_path) == ["evaluation.deepprophet.drawn.networks:seed_31_4"]


@pytest.mark.parametrize(
    ("name", "there", "said"),
    [
        ("unseen", (), "draw studied first"),
        ("unseen", ("studied",), None),
        ("studied", ("studied",), None),
        ("studied", ("studied", "unseen"), "models are held out once"),
        ("unseen", ("studied", "unseen"), "models are held out once"),
        ("other", (), "give studied or unseen"),
    ],
)
def test_models_are_held_out_once_and_after_those_that_are_studied(
    name: str, there: tuple[str, ...], said: str | None
) -> None:
    reason = listed.why_not(name, there)
    assert reason is None if said is None else reason is not None and said in reason


def test_the_rule_draws_the_same_again_and_other_things_by_another_seed() -> None:
    types = [f"type{n}" for n in range(30)]
    kind = KINDS[0]
    order = rule.ordered(STUDIED, kind, types)
    assert order == rule.ordered(STUDIED, kind, reversed(types))
    assert sorted(order) == sorted(types)
    assert order != rule.ordered(HELD_OUT, kind, types)
    assert order != rule.ordered(STUDIED, KINDS[1], types)
    values = {
        "hidden_size": 768,
        "num_attention_heads": 12,
        "vocab_size": 50_000,
        "depths": (2, 2, 18),
        "num_experts": 64,
    }
    sizes = [rule.sized(values, rule.random_of(STUDIED, "type1", number)) for number in range(8)]
    assert sizes == [rule.sized(values, rule.random_of(STUDIED, "type1", number)) for number in range(8)]
    assert len({str(size) for size in sizes}) > 1
    for size in sizes:
        assert size["hidden_size"] % size["num_attention_heads"] == 0
        assert size["vocab_size"] in rule.VOCABULARIES
        assert len(size["depths"]) == 3 and max(size["depths"]) <= 3
        assert size["num_experts"] in (4, 8)


def test_there_are_enough_kinds_and_each_is_told_by_its_values() -> None:
    assert len(KINDS) + 1 >= 10
    assert len(KINDS) * rule.PER_KIND[HELD_OUT] + rule.NETWORKS[HELD_OUT] >= 24
    plain, states, experts = {"hidden_size": 8}, {"state_size": 16}, {"num_local_experts": 8}
    causal, space, mixture = (next(k for k in KINDS if k.name == name) for name in (
        "causal language model", "state space", "mixture of experts",
    ))  # fmt: skip
    assert [causal.has(each) for each in (plain, states, experts)] == [True, False, False]
    assert [space.has(each) for each in (plain, states, states | experts)] == [False, True, False]
    assert [mixture.has(each) for each in (plain, experts, {"num_local_experts": None})] == [False, True, False]
    assert Kind("all", ("ANY",)).has({})


def test_the_models_that_are_studied_are_of_every_kind() -> None:
    """The list that is committed is one of the rule as it is."""
    studied = listed.draws()["studied"]
    assert studied.seed == STUDIED
    assert {each.kind for each in studied.models} == {kind.name for kind in KINDS} | {rule.NETWORK}
    assert len({each.type for each in studied.models}) == len(studied.models)
    for each in studied.models:
        if each.config is not None:
            drawn_again = [rule.random_of(STUDIED, each.type, number) for number in range(rule.TRIES)]
            shapes = [(draw.choice(rule.BATCH_SIZES), draw.choice(rule.LENGTHS)) for draw in drawn_again]
            assert (each.batch_size, each.length) in shapes
