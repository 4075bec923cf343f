"""The rule of the draw: which kinds there are, in which order types of models come, and of which sizes they are. Pure.

A seed decides everything. Types of a kind come in the order of a hash of the seed and their name. The first ones that
train are taken, each with sizes that the seed draws. Types of the draw that is studied (``STUDIED``) are never held out
(``HELD_OUT``), nor are those of ``LOOKED_AT``: what was learned on them says nothing about others.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from deepprophet.factories.sizes import Size, changes

STUDIED, HELD_OUT = 31, 3107
"""The seeds of the two draws."""

PER_KIND: Mapping[int, int] = {STUDIED: 1, HELD_OUT: 2}
NETWORKS: Mapping[int, int] = {STUDIED: 6, HELD_OUT: 6}
"""How many types of each kind are taken, and how many networks are drawn layer by layer."""

LOOKED_AT = frozenset({"bert", "gpt2", "llama", "mamba", "mobilenet_v2", "resnet", "swin", "vit"})
"""Types of models that were looked at while DeepProphet was made: they are not held out either."""

REFUSED = "it trains, and DeepProphet refuses it: "
"""What the reason begins with why such a type was not taken; readers are told how many there are."""

TRIES = 6
"""A type of model is tried in so many sizes before the next one is."""

MIN_FLOPS, MAX_FLOPS = 1e8, 2e10
MAX_PARAMETER_BYTES = 200e6
MAX_OPERATORS = 20_000
"""A model is of a size that this evaluation measures: an iteration takes milliseconds to a second on one core."""

BATCH_SIZES, LENGTHS, SIDES, VOCABULARIES = (2, 4, 8, 16), (32, 64, 128), (64, 96, 128, 160, 224), (2000, 5000, 12_000)
FRAMES = (4, 8)

_STATE = ("state_size", "mamba_d_state", "ssm_state_size", "time_step_rank", "attention_hidden_size", "lru_width")
_EXPERTS = ("num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts")
_HEADS = ("num_attention_heads", "num_heads", "encoder_attention_heads")


@dataclass(frozen=True, slots=True)
class Kind:
    """Types of models that the library trains for one of its ``tasks``, if what their configuration has fits.

    ``needs``: at least one of these values; ``lacks``: none of these.
    """

    name: str
    tasks: tuple[str, ...]
    needs: tuple[str, ...] = ()
    lacks: tuple[str, ...] = ()

    def has(self, values: Mapping[str, Any]) -> bool:
        """Returns whether a configuration is of this kind, by its values."""
        present = {name for name, value in values.items() if value not in (None, 0, False)}
        return (not self.needs or bool(present & set(self.needs))) and not present & set(self.lacks)


KINDS = (
    Kind("causal language model", ("CAUSAL_LM",), lacks=(*_STATE, *_EXPERTS)),
    Kind("masked language model", ("MASKED_LM",), lacks=_EXPERTS),
    Kind("encoder and decoder", ("SEQ_TO_SEQ_CAUSAL_LM",), lacks=_EXPERTS),
    Kind("state space", ("CAUSAL_LM",), needs=_STATE, lacks=_EXPERTS),
    Kind("mixture of experts", ("CAUSAL_LM", "SEQ_TO_SEQ_CAUSAL_LM"), needs=_EXPERTS),
    Kind("pictures by attention", ("IMAGE_CLASSIFICATION",), needs=_HEADS),
    Kind("pictures by convolutions", ("IMAGE_CLASSIFICATION",), lacks=_HEADS),
    Kind("pixels", ("SEMANTIC_SEGMENTATION", "DEPTH_ESTIMATION")),
    Kind("films", ("VIDEO_CLASSIFICATION",)),
    Kind("sound", ("AUDIO_CLASSIFICATION", "SPEECH_SEQ_2_SEQ")),
    Kind("pictures and text", ("ZERO_SHOT_IMAGE_CLASSIFICATION",)),
    Kind("series", ("TIME_SERIES_PREDICTION", "TIME_SERIES_CLASSIFICATION")),
)

NETWORK = "drawn layer by layer"
"""The kind of networks that are not of the library."""


def ordered(seed: int, kind: Kind, types: Iterable[str]) -> list[str]:
    """Returns the types of a kind in the order in which they are tried."""
    return sorted(set(types), key=lambda name: hashlib.sha256(f"{seed} {kind.name} {name}".encode()).digest())


def random_of(seed: int, *names: object) -> random.Random:
    """Returns the random numbers of one thing that is drawn."""
    text = " ".join(map(str, (seed, *names)))
    return random.Random(hashlib.sha256(text.encode()).digest())  # noqa: S311 - no secret hangs on it


def sized(values: Mapping[str, Any], draw: random.Random) -> dict[str, Any]:
    """Returns what a configuration of a drawn size differs in from the default, by the library's common names."""
    heads = draw.choice((2, 3, 4, 6, 8))
    size = Size(width=heads * draw.choice((16, 32, 48, 64)), heads=heads, layers=draw.choice((1, 2, 3, 4, 6)))
    side, words, frames = draw.choice(SIDES), draw.choice(VOCABULARIES), draw.choice(FRAMES)
    new: dict[str, Any] = dict(changes(values, size))
    for name, value in values.items():
        if name == "vocab_size" and isinstance(value, int):
            new[name] = min(value, words)
        elif name in ("image_size", "crop_size") and isinstance(value, int):
            new[name] = side
        elif name in ("num_frames", "frames_per_clip") and isinstance(value, int):
            new[name] = min(value, frames)
        elif name == "depths" and isinstance(value, (list, tuple)):
            new[name] = [min(int(depth), draw.randint(1, 3)) for depth in value]
        elif name in _EXPERTS and isinstance(value, int):
            new[name] = min(value, draw.choice((4, 8)))
    return new
