"""The optimisers that a parameter server knows: those that treat each number alone, so that chunks can be stepped."""

from __future__ import annotations

import math
import reprlib
from collections.abc import Callable, Mapping
from typing import Any, TypeGuard

import torch
from torch.optim import Optimizer

from sasp.core.errors import SaspError

KNOWN: Mapping[str, tuple[Callable[..., Optimizer], frozenset[str]]] = {
    "SGD": (torch.optim.SGD, frozenset({"lr", "momentum", "dampening", "weight_decay", "nesterov", "maximize"})),
    "Adam": (torch.optim.Adam, frozenset({"lr", "betas", "eps", "weight_decay", "amsgrad", "maximize"})),
    "AdamW": (torch.optim.AdamW, frozenset({"lr", "betas", "eps", "weight_decay", "amsgrad", "maximize"})),
    "Adagrad": (
        torch.optim.Adagrad,
        frozenset({"lr", "lr_decay", "weight_decay", "initial_accumulator_value", "eps", "maximize"}),
    ),
    "RMSprop": (
        torch.optim.RMSprop,
        frozenset({"lr", "alpha", "eps", "weight_decay", "momentum", "centered", "maximize"}),
    ),
}
_FLAGS = frozenset({"nesterov", "maximize", "amsgrad", "centered"})
_PAIRS = frozenset({"betas"})


def describe(optimizer: Optimizer) -> tuple[str, dict[str, Any]]:
    """Return an optimiser's kind and options, for the server. Raises SaspError for one that the server cannot run."""
    kind = type(optimizer).__name__
    if kind not in KNOWN or type(optimizer) is not KNOWN[kind][0]:
        raise SaspError(f"a parameter server cannot run {kind}; choose from {', '.join(KNOWN)}")
    if len(optimizer.param_groups) > 1:
        raise SaspError("the optimiser has several parameter groups; a parameter server needs one")
    group = optimizer.param_groups[0]
    if kind == "Adam" and group.get("decoupled_weight_decay"):
        raise SaspError("a parameter server's Adam has no decoupled weight decay; use AdamW")
    options = {name: _plain(group[name]) for name in sorted(KNOWN[kind][1]) if name in group}
    optimizer_factory(kind, options)
    return kind, options


def optimizer_factory(kind: object, options: object) -> Callable[[torch.nn.Parameter], Optimizer]:
    """Return the function that makes the optimiser of one chunk. Raises SaspError for unknown kinds and options."""
    if not isinstance(kind, str) or kind not in KNOWN:
        raise SaspError(f"an optimiser called {reprlib.repr(kind)}; choose from {', '.join(KNOWN)}")
    optimizer_class, names = KNOWN[kind]
    if not isinstance(options, dict) or not set(options) <= names:
        raise SaspError(f"options of {kind} that are not numbers of {', '.join(sorted(names))}")
    values = {name: _value(kind, name, value) for name, value in options.items()}
    try:
        optimizer_class([torch.nn.Parameter(torch.zeros(1))], **values)
    except (TypeError, ValueError) as error:
        raise SaspError(f"options of {kind} that it does not take: {error}") from error
    return lambda parameter: optimizer_class([parameter], **values)


def _plain(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return float(value)
    return [_plain(part) for part in value] if isinstance(value, tuple) else value


def _value(kind: str, name: str, given: object) -> Any:
    """An option as the optimiser takes it. Raises SaspError."""
    if name in _PAIRS and isinstance(given, list) and len(given) == 2 and all(_is_number(number) for number in given):
        return tuple(float(number) for number in given)
    if name in _PAIRS or not _is_number(given):
        wanted = "two finite numbers" if name in _PAIRS else "a finite number"
        raise SaspError(f"{name} of {kind} is {reprlib.repr(given)}; it must be {wanted}")
    # A whole number beyond 64 bits is one that an optimiser takes, and then fails with at its first step.
    return bool(given) if name in _FLAGS else float(given)


def _is_number(value: object) -> TypeGuard[float]:
    if not isinstance(value, (bool, int, float)):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:
        return False
