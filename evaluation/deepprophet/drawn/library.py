"""Types of models of the library transformers: which there are of a kind, and whether one of a drawn size trains.

Needs PyTorch and transformers.
"""

from __future__ import annotations

import json
import random
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from transformers import CONFIG_MAPPING
from transformers.models.auto import modeling_auto as auto

from deepprophet.device.loop import iteration
from deepprophet.errors import ProphetError
from deepprophet.factories.config_values import parts, renamed, values
from deepprophet.factories.functions import said
from deepprophet.factories.transformers_models import META, of_config
from deepprophet.graph.graph import Graph
from deepprophet.graph.subject import Subject
from deepprophet.graph.trace import trace
from evaluation.deepprophet.drawn import rule
from evaluation.deepprophet.drawn.rule import Kind

CPU = torch.device("cpu")
PACKAGES = Path(torch.__file__).parent.parent

_FLOAT = "__float__"


class UnfitError(Exception):
    """A model of a drawn size that does not train, or is too small or too large; the message says why."""


def types_of(kind: Kind) -> Iterator[tuple[str, str]]:
    """Yields the types of models of a kind with the class that trains each."""
    for task in kind.tasks:
        mapping: Mapping[str, Any] = getattr(auto, f"MODEL_FOR_{task}_MAPPING_NAMES")
        for name, class_name in mapping.items():
            if name not in CONFIG_MAPPING:
                continue
            try:
                default = CONFIG_MAPPING[name]()
                found = {k: v for _, part in parts(default) for k, v in values(part).items()} | values(default)
            except Exception:  # noqa: S112 - a type whose configuration has no default is none that can be drawn
                continue
            if kind.has(found):
                yield name, class_name if isinstance(class_name, str) else class_name[0]


def drawn_config(name: str, draw: random.Random) -> dict[str, Any]:
    """Returns the configuration of a type of model with drawn sizes, as ``config.json`` has it. Raises UnfitError."""
    kind: Any = CONFIG_MAPPING[name]
    default = kind()
    new = renamed(kind, rule.sized(values(default), draw))
    for part, value in parts(default):
        new[part] = {"model_type": value.model_type, **renamed(type(value), rule.sized(values(value), draw))}
    try:
        # As a file has it: the library writes numbers without an end as objects, for JSON has none.
        config: dict[str, Any] = json.loads(kind(**new).to_json_string())
    except Exception as error:
        raise UnfitError(f"its configuration: {type(error).__name__}: {_line(error)}") from error
    return {**config, "model_type": name}


def check(config: Mapping[str, Any], class_name: str, count: int, length: int | None) -> None:
    """Trains a step, and counts what it takes. Raises UnfitError."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            without_values = made(config, class_name, count, length, META)
            _check_parameters(without_values)
            refusal = _refusal(without_values)
            iteration(made(config, class_name, count, length, CPU), "sgd", CPU)()
    except UnfitError:
        raise
    except ProphetError as error:
        raise UnfitError(_line(error)) from error
    except Exception as error:
        raise UnfitError(f"{type(error).__name__}: {_line(error)}") from error
    if refusal is not None:
        raise UnfitError(f"{rule.REFUSED}{refusal}")


def made(config: Mapping[str, Any], class_name: str, count: int, length: int | None, device: torch.device) -> Subject:
    """Returns a model of a configuration with its batch. Raises what the library does."""
    own = CONFIG_MAPPING[config["model_type"]].from_dict(_numbers(config))
    return of_config(own, class_name, count, length, device, path=f"transformers:{config['model_type']}")


def _numbers(value: Any) -> Any:
    """Returns a part of a configuration with numbers without an end, which a file has as ``{"__float__": NAME}``."""
    if isinstance(value, Mapping):
        return float(value[_FLOAT]) if set(value) == {_FLOAT} else {name: _numbers(v) for name, v in value.items()}
    return [_numbers(part) for part in value] if isinstance(value, list) else value


def _check_parameters(subject: Subject) -> None:
    size = sum(parameter.numel() * parameter.element_size() for parameter in subject.model.parameters())
    if size > rule.MAX_PARAMETER_BYTES:
        raise UnfitError(f"it has {size / 1e6:.0f} MB of parameters")


def _refusal(subject: Subject) -> str | None:
    """Returns why DeepProphet cannot predict a model; None where it can. Raises UnfitError for its size."""
    try:
        graph = trace(subject)
    except ProphetError as error:
        return _line(error)
    _check_size(graph)
    return None


def _check_size(graph: Graph) -> None:
    flops = sum(operator.flops for operator in graph.operators)
    if not rule.MIN_FLOPS <= flops <= rule.MAX_FLOPS:
        raise UnfitError(f"an iteration has {flops:.2g} operations")
    if len(graph.operators) > rule.MAX_OPERATORS:
        raise UnfitError(f"an iteration has {len(graph.operators)} operators")


def _line(error: BaseException) -> str:
    """Returns what an error says, without where this machine has its packages."""
    return said(error).replace(f"{PACKAGES}/", "")[:300]
