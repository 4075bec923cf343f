"""Sizes of models by name, and what a configuration of another size differs in. Pure.

[known] Tiny, small and base are widths and heads of DeiT (Touvron and others, ICML 2021, arXiv:2012.12877), and base
is that of BERT and GPT-2, too. [ours] Other architectures get the same width, heads and depth, and keep the
proportions of their own default otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeGuard


@dataclass(frozen=True, slots=True)
class Size:
    """A Transformer's width, attention heads and layers."""

    width: int
    heads: int
    layers: int


SIZES: Mapping[str, Size] = {"tiny": Size(192, 3, 12), "small": Size(384, 6, 12), "base": Size(768, 12, 12)}

_WIDTH = ("hidden_size", "d_model")
_LAYERS = ("num_hidden_layers", "num_layers", "encoder_layers", "decoder_layers", "num_decoder_layers")
_HEADS = ("num_attention_heads", "num_heads", "encoder_attention_heads", "decoder_attention_heads")
_BY_WIDTH = ("intermediate_size", "d_ff", "ffn_dim", "encoder_ffn_dim", "decoder_ffn_dim", "word_embed_proj_dim")
_BY_HEAD = ("head_dim", "d_kv")
_ROUND = 8


def named(name: str) -> tuple[str, Size | None]:
    """Return ``vit-tiny`` as ``vit`` and the size; a name without a size as it is."""
    stem, dash, last = name.rpartition("-")
    return (stem, SIZES[last]) if dash and last in SIZES else (name, None)


def changes(default: Mapping[str, Any], size: Size) -> dict[str, int]:
    """Return the values of a configuration of this size that differ from the default's; {} where it has no width.

    ``default``: the values of a configuration of the default size, by name. Lists of widths, as a pyramid of stages
    has, are not changed.
    """
    width = next((default[name] for name in _WIDTH if _is_whole(default.get(name))), None)
    if width is None:
        return {}
    heads = next((default[name] for name in _HEADS if _is_whole(default.get(name))), None)
    new: dict[str, int] = {}
    for name, value in default.items():
        if not _is_whole(value):
            continue
        if name in _WIDTH:
            new[name] = size.width
        elif name in _LAYERS:
            new[name] = size.layers
        elif name in _HEADS:
            new[name] = size.heads
        elif name in _BY_WIDTH:
            new[name] = _scaled(value, width, size.width)
        elif name in _BY_HEAD:
            new[name] = size.width // size.heads
        elif name == "num_key_value_heads" and heads:
            new[name] = _groups(value, heads, size.heads)
    return new | _states(default, width, size)


def _states(default: Mapping[str, Any], width: int, size: Size) -> dict[str, int]:
    """Heads of a state space, which share a width that is a multiple of the model's; {} where there are none."""
    expand, heads, each = (default.get(name) for name in ("expand", "num_heads", "head_dim"))
    if not (_is_whole(expand) and _is_whole(heads) and _is_whole(each)) or expand * width != heads * each:
        return {}
    each = math.gcd(expand * size.width, each)
    new = {"head_dim": each, "num_heads": expand * size.width // each}
    groups = default.get("n_groups")
    return {**new, "n_groups": math.gcd(groups, new["num_heads"])} if _is_whole(groups) else new


def _is_whole(value: object) -> TypeGuard[int]:
    return type(value) is int and value > 0


def _scaled(value: int, before: int, now: int) -> int:
    return max(round(value * now / before / _ROUND) * _ROUND, _ROUND)


def _groups(value: int, before: int, now: int) -> int:
    """So many heads share keys and values as before, if the number of heads allows it."""
    groups = max(now * value // before, 1)
    return groups if now % groups == 0 else now
