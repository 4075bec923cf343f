"""What is predicted: the model, its example batch and its loss, as a factory gives them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch.utils._pytree import tree_flatten, tree_map_only

from deepprophet.errors import InputError
from deepprophet.graph.arguments import EVERYTHING, Selection, selection

OPTIMIZERS: tuple[str, ...] = ("sgd", "momentum", "adam", "adamw", "none")


@dataclass(frozen=True)
class Batch:
    """An example batch. ``whole`` is the batch as it was given, for the loss; ``selected`` of it is the model's.

    A tuple or list is the model's arguments, a mapping its options, all else its one argument.
    """

    whole: Any
    selected: Selection = EVERYTHING

    @property
    def arguments(self) -> tuple[Any, ...]:
        """The model's positional arguments."""
        if isinstance(self.whole, Mapping):
            return ()
        if isinstance(self.whole, (tuple, list)):
            return tuple(self.whole[: self.selected.count])
        return (self.whole,)

    @property
    def options(self) -> dict[str, Any]:
        """The model's keyword arguments."""
        if not isinstance(self.whole, Mapping):
            return {}
        names = self.selected.names
        return {name: value for name, value in self.whole.items() if names is None or name in names}

    def each(self, change: Callable[[torch.Tensor], torch.Tensor]) -> Batch:
        """The batch with every tensor changed."""
        return replace(self, whole=tree_map_only(torch.Tensor, change, self.whole))


@dataclass(frozen=True)
class Subject:
    """A model with an example batch; ``loss`` takes the model's output and the batch as it was given.

    ``notes``: what a reader of the prediction must know of how the model was made.
    """

    model: torch.nn.Module
    batch: Batch
    loss: Callable[[Any, Any], torch.Tensor] | None
    batch_size: int
    notes: tuple[str, ...] = ()


def subject(answer: Any, path: str = "the factory") -> Subject:
    """A model and an example batch, or these and a loss. Raises InputError."""
    if not isinstance(answer, tuple) or len(answer) not in (2, 3):
        raise InputError(
            f"{path} must return (model, batch) or (model, batch, loss); it returned {_kind(answer)}. A batch is a "
            "tensor, a tuple of the model's arguments, or a dict of its keywords"
        )
    model, batch, loss = (*answer, None) if len(answer) == 2 else answer
    if not isinstance(model, torch.nn.Module):
        raise InputError(f"{path}: the model must be a torch.nn.Module; it is {_kind(model)}")
    if loss is not None and not callable(loss):
        raise InputError(f"{path}: the loss must be callable, loss(output, batch); it is {_kind(loss)}")
    if isinstance(batch, Mapping):
        # A tokenizer's batch is a mapping, too, but no dict.
        batch = dict(batch)
    tensors = [part for part in tree_flatten(batch)[0] if isinstance(part, torch.Tensor)]
    if not tensors:
        raise InputError(f"{path}: the batch has no tensor; it is {_kind(batch)}")
    shaped = [tensor for tensor in tensors if tensor.dim() > 0]
    size = int(shaped[0].shape[0]) if shaped else 1
    if size == 0 or not any(tensor.numel() for tensor in tensors):
        raise InputError(f"{path}: the batch has no example; it begins with {_kind(shaped[0])}")
    try:
        selected = selection(model.forward, batch, has_loss=loss is not None)
    except InputError as error:
        raise InputError(f"{path}: {error}") from error
    return Subject(model, Batch(batch, selected), loss, size)


def total(output: Any, batch: Batch, loss: Callable[[Any, Any], torch.Tensor] | None) -> torch.Tensor:
    """The loss: by the factory's own, the model's if it returns one number, else the mean of all that it returns."""
    if loss is not None:
        value = loss(output, batch.whole)
        if not isinstance(value, torch.Tensor) or value.numel() != 1:
            raise InputError(f"the loss must be one number in a tensor; it is {_kind(value)}")
        return value
    floats = _numbers(output)
    if not floats:
        raise InputError(f"the model returns no numbers to take a loss of, but {_kind(output)}; give a loss")
    if is_loss(output):
        return floats[0].reshape(())
    value = floats[0].mean()
    for part in floats[1:]:
        value = value + part.mean()
    return value


def is_loss(output: Any) -> bool:
    """Whether a model has returned its loss: one number, or something that has a ``loss``."""
    floats = _numbers(output)
    return len(floats) == 1 and floats[0].numel() == 1


def _numbers(output: Any) -> list[torch.Tensor]:
    named = output.get("loss") if isinstance(output, Mapping) else getattr(output, "loss", None)
    parts = [named] if isinstance(named, torch.Tensor) else tree_flatten(output)[0]
    return [part for part in parts if isinstance(part, torch.Tensor) and part.is_floating_point()]


def optimiser(name: str, parameters: list[Any]) -> torch.optim.Optimizer | None:
    """An optimiser by its name; None for ``none``."""
    if name == "none":
        return None
    makers: dict[str, Callable[[], torch.optim.Optimizer]] = {
        "sgd": lambda: torch.optim.SGD(parameters, lr=0.01),
        "momentum": lambda: torch.optim.SGD(parameters, lr=0.01, momentum=0.9),
        "adam": lambda: torch.optim.Adam(parameters),
        "adamw": lambda: torch.optim.AdamW(parameters),
    }
    return makers[name]()


def _kind(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        return f"a tensor of shape {tuple(value.shape)}"
    if isinstance(value, (tuple, list, dict)) and not value:
        return f"an empty {type(value).__name__}"
    if isinstance(value, tuple):
        return f"a tuple of {len(value)}"
    return "None" if value is None else f"a {type(value).__name__}"
