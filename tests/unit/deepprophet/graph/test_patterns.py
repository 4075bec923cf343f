"""Names of modules by patterns."""

from __future__ import annotations

import pytest

from deepprophet.graph.patterns import matches, owner


@pytest.mark.parametrize(
    ("name", "pattern", "is_of"),
    [
        ("layers.0", "layers.*", True), ("layers.0.norm", "layers.*", False), ("layers", "layers.*", False),
        ("model.layers.11.mlp.up", "model.layers.*.mlp.up", True), ("a.q_proj", "*.[qkv]_proj", True),
        ("a.o_proj", "*.[qkv]_proj", False), ("Layers.0", "layers.*", False),
    ],
)  # fmt: skip
def test_a_star_is_within_one_name(name: str, pattern: str, is_of: bool) -> None:
    assert matches(name, [pattern]) == is_of
    assert matches(name, ["other", pattern]) == is_of


def test_what_is_inside_belongs_to_the_outermost() -> None:
    patterns = ("layers.*", "layers.*.mlp", "head")
    assert owner("layers.3.mlp.up", patterns) == "layers.3"
    assert owner("layers.3", patterns) == "layers.3"
    assert owner("head", patterns) == "head"
    assert owner("layers", patterns) is None
    assert owner("words", patterns) is None
