"""Sizes of models by name, and what a configuration of another size differs in."""

from __future__ import annotations

from deepprophet.factories.sizes import SIZES, Size, changes, named

VIT = {
    "hidden_size": 768,
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
    "intermediate_size": 3072,
    "image_size": 224,
}
GROUPED = {
    "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8,
    "intermediate_size": 14336, "head_dim": 128, "vocab_size": 32000,
}  # fmt: skip


def test_a_name_has_a_size_or_none() -> None:
    assert named("vit-tiny") == ("vit", SIZES["tiny"])
    assert named("xlm-roberta-base") == ("xlm-roberta", SIZES["base"])
    for name in ("vit", "xlm-roberta", "tiny", "-", ""):
        assert named(name) == (name, None)


def test_tiny_is_that_of_deit() -> None:
    assert changes(VIT, SIZES["tiny"]) == {
        "hidden_size": 192, "num_hidden_layers": 12, "num_attention_heads": 3, "intermediate_size": 768,
    }  # fmt: skip
    assert changes(VIT, SIZES["base"]) == {name: value for name, value in VIT.items() if name != "image_size"}


def test_proportions_stay() -> None:
    small = changes(GROUPED, SIZES["base"])
    assert (small["num_attention_heads"], small["num_key_value_heads"], small["head_dim"]) == (12, 3, 64)
    assert small["intermediate_size"] == 2688
    assert "vocab_size" not in small
    # Three heads cannot share keys and values in groups of four.
    assert changes(GROUPED, SIZES["tiny"])["num_key_value_heads"] == 1
    assert changes({**GROUPED, "num_key_value_heads": 24}, SIZES["tiny"])["num_key_value_heads"] == 3


def test_a_pyramid_has_no_one_width() -> None:
    assert changes({"hidden_sizes": [64, 128], "depths": [2, 2], "num_heads": [2, 4]}, SIZES["tiny"]) == {}
    assert changes({"embed_dim": 96, "num_hidden_layers": True}, SIZES["tiny"]) == {}


def test_heads_of_a_state_space_share_its_inner_width() -> None:
    default = {"hidden_size": 4096, "expand": 2, "num_heads": 128, "head_dim": 64, "n_groups": 8}
    assert changes(default, SIZES["tiny"]) == {"hidden_size": 192, "num_heads": 6, "head_dim": 64, "n_groups": 2}
    odd = changes(default, Size(width=144, heads=3, layers=2))
    assert odd["num_heads"] * odd["head_dim"] == 2 * 144
    assert odd["num_heads"] % odd["n_groups"] == 0
    # There heads share something else.
    assert changes({**default, "num_heads": 32}, SIZES["tiny"])["num_heads"] == 3
