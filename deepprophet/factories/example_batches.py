"""Example batches of random numbers for models of transformers, by the names that ``forward`` takes. Needs PyTorch.

Names of inputs mean the same in all of the library's models: ``input_ids`` are tokens, ``pixel_values`` pictures. Their
shapes follow from the configuration.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch

from deepprophet.errors import InputError

LENGTH = 128
"""An example has so many tokens where none are asked for, if the model takes as many."""

SAMPLES = 16_000
"""An example of sound has so many samples: one second at the rate of most speech models."""

FRAMES = 128
"""An example of sound that is given as features has so many frames."""

SIDE = 224
"""The side of a picture in pixels where the configuration does not say it: that of ImageNet's models."""

_POSITIONS = ("max_position_embeddings", "n_positions", "max_target_positions", "max_sequence_length")


@dataclass(frozen=True)
class _Facts:
    """What the shapes of inputs follow from: the configuration, with its parts, the batch size and tokens."""

    configs: tuple[Any, ...]
    count: int
    tokens: int

    def value(self, *names: str, default: Any = None) -> Any:
        """Return the first value that one of the configurations has for one of the names."""
        for config in self.configs:
            for name in names:
                if (found := getattr(config, name, None)) is not None:
                    return found
        return default

    def whole(self, below: int, *shape: int) -> torch.Tensor:
        """Return random whole numbers, for each example."""
        return torch.randint(max(below, 1), (self.count, *shape))

    def sides(self) -> tuple[int, int]:
        """Return the height and the width of a picture."""
        side = self.value("image_size", "crop_size", default=SIDE)
        if isinstance(side, Mapping):
            side = list(side.values())
        return (int(side[0]), int(side[-1])) if isinstance(side, (list, tuple)) else (int(side), int(side))

    def channels(self) -> int:
        """Return the channels of a picture."""
        return int(self.value("num_channels", "in_channels", "in_chans", default=3))


def batch(model: torch.nn.Module, config: Any, count: int, length: int | None) -> dict[str, Any]:
    """Return the arguments of a training step with so many examples. Raises InputError for what cannot be made up."""
    takes = inspect.signature(model.forward).parameters
    facts = _Facts(tuple(_with_parts(config)), count, _tokens(config, length))
    name = type(model).__name__
    inputs: dict[str, Any] = {}
    for wanted in _wanted(model, takes):
        if wanted not in _INPUTS:
            raise InputError(
                f"{name} needs {wanted}, which cannot be made up; write a factory that returns (model, batch)"
            )
        inputs[wanted] = _INPUTS[wanted](facts)
    return inputs | _labels(facts, name, takes)


def _with_parts(config: Any) -> Iterator[Any]:
    yield config
    for name in getattr(config, "sub_configs", ()):
        if (part := getattr(config, name, None)) is not None:
            yield from _with_parts(part)


def _tokens(config: Any, length: int | None) -> int:
    positions = [getattr(part, name, None) for part in _with_parts(config) for name in _POSITIONS]
    # Some say that there is no limit by a number below 0.
    most = min((count for count in positions if type(count) is int and count > 0), default=None)
    if length is None:
        return LENGTH if most is None else min(LENGTH, most)
    if most is not None and length > most:
        raise InputError(f"--length {length}: an example of this model has at most {most} tokens")
    return length


def _wanted(model: Any, takes: Mapping[str, inspect.Parameter]) -> Iterator[str]:
    """Yield the inputs without which the model does not run; of text and pictures both."""
    main = model.main_input_name
    named = [main] if isinstance(main, str) else list(main)
    wanted = [name for name in named if name in takes] or [next(iter(takes))]
    if {"input_ids", "pixel_values", "return_loss"} <= set(takes):
        wanted = ["input_ids", "pixel_values", "return_loss"]
    no_default = [
        name
        for name, parameter in takes.items()
        if parameter.default is parameter.empty and parameter.kind is parameter.POSITIONAL_OR_KEYWORD
    ]
    if "decoder_input_ids" in takes and "labels" not in takes:
        wanted.append("decoder_input_ids")
    if "future_values" in takes:
        wanted.append("future_values")
    yield from dict.fromkeys([*wanted, *no_default])


def _text(facts: _Facts) -> torch.Tensor:
    return facts.whole(facts.value("vocab_size", default=1000), facts.tokens)


def _pictures(facts: _Facts) -> torch.Tensor:
    """Pictures, or films where the configuration says of how many."""
    frames = facts.value("num_frames", "frames_per_clip")
    shape = (facts.channels(), *facts.sides())
    return torch.randn(facts.count, *shape) if frames is None else torch.randn(facts.count, int(frames), *shape)


def _sound(facts: _Facts) -> torch.Tensor:
    bins, frames = facts.value("num_mel_bins"), facts.value("max_length")
    if bins is not None and frames is not None:
        return torch.randn(facts.count, int(frames), int(bins))
    return torch.randn(facts.count, SAMPLES)


def _features(facts: _Facts) -> torch.Tensor:
    positions, bins = facts.value("max_source_positions"), facts.value("num_mel_bins")
    if bins is not None and positions is not None:
        # Two convolutions halve the frames before the positions.
        return torch.randn(facts.count, int(bins), 2 * int(positions))
    width = facts.value("input_feat_per_channel", "feature_projection_input_dim", "num_mel_bins", default=80)
    return torch.randn(facts.count, FRAMES, int(width))


def _past(facts: _Facts) -> torch.Tensor:
    return _series(facts, int(facts.value("context_length", default=32)))


def _future(facts: _Facts) -> torch.Tensor:
    return _series(facts, int(facts.value("prediction_length", "horizon_length", default=24)))


def _series(facts: _Facts, steps: int) -> torch.Tensor:
    """Series of so many steps, each of several numbers where the configuration says of how many."""
    channels = facts.value("num_input_channels", "input_size")
    return torch.randn(facts.count, steps) if channels is None else torch.randn(facts.count, steps, int(channels))


_INPUTS: Mapping[str, Callable[[_Facts], Any]] = {
    "input_ids": _text, "decoder_input_ids": _text, "pixel_values": _pictures, "pixel_values_videos": _pictures,
    "input_values": _sound, "input_features": _features, "past_values": _past, "future_values": _future,
    "return_loss": lambda _: True,
}  # fmt: skip

_OF_TOKENS = re.compile(
    r"LMHead|MTModel|ForCausalLM|ForMaskedLM|ForConditionalGeneration|ForTokenClassification|ForPreTraining"
)
_OF_EXAMPLES = re.compile(r"For(Image|Video|Audio|Sequence)Classification|ForXVector")
_OF_PIXELS = re.compile(r"ForSemanticSegmentation")


def _labels(facts: _Facts, name: str, takes: Mapping[str, inspect.Parameter]) -> dict[str, torch.Tensor]:
    """Return the labels of the task that the class's name says; {} where they cannot be made up."""
    if {"start_positions", "end_positions"} <= set(takes):
        return {place: facts.whole(facts.tokens) for place in ("start_positions", "end_positions")}
    if "labels" not in takes:
        of_series = "target_values" in takes and "Classification" in name
        return {"target_values": facts.whole(int(facts.value("num_targets", default=1)))} if of_series else {}
    classes = int(facts.value("num_labels", default=2))
    if _OF_EXAMPLES.search(name):
        return {"labels": facts.whole(classes)}
    if _OF_PIXELS.search(name):
        return {"labels": facts.whole(classes, *facts.sides())}
    if _OF_TOKENS.search(name):
        below = classes if "TokenClassification" in name else facts.value("vocab_size", default=1000)
        return {"labels": facts.whole(below, facts.tokens)}
    return {}
