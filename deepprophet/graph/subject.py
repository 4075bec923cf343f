"""What is predicted: the model, its example batch and its loss, as MODULE:FACTORY gives them."""

from __future__ import annotations

import importlib
import inspect
import sys
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch.utils._pytree import tree_flatten, tree_map_only

from deepprophet.errors import InputError, exited

OPTIMIZERS: tuple[str, ...] = ("sgd", "momentum", "adam", "adamw", "none")


@dataclass(frozen=True)
class Batch:
    """What the model is called with. ``whole`` is the batch as it was given, for the loss."""

    arguments: tuple[Any, ...]
    options: Mapping[str, Any]
    whole: Any

    def each(self, change: Callable[[torch.Tensor], torch.Tensor]) -> Batch:
        """The batch with every tensor changed."""
        whole = tree_map_only(torch.Tensor, change, self.whole)
        return as_batch(whole)


@dataclass(frozen=True)
class Subject:
    """A model with an example batch; ``loss`` takes the model's output and the batch as it was given."""

    model: torch.nn.Module
    batch: Batch
    loss: Callable[[Any, Any], torch.Tensor] | None
    batch_size: int


def as_batch(given: Any) -> Batch:
    """A tuple or list is the model's arguments, a mapping its options, all else its one argument."""
    if isinstance(given, Mapping):
        return Batch((), dict(given), given)
    if isinstance(given, (tuple, list)):
        return Batch(tuple(given), {}, given)
    return Batch((given,), {}, given)


def load(path: str, batch_size: int | None = None) -> Subject:
    """What ``MODULE:FACTORY`` gives. Raises InputError.

    A factory that takes ``batch_size`` is asked for that many examples; otherwise the example batch is cut or grown.
    """
    module_name, colon, name = path.partition(":")
    if not colon or not module_name or not name:
        raise InputError(f"{path}: it must be MODULE:FACTORY, such as my_models:resnet")
    try:
        factory = _find(module_name, name)
        sized = batch_size is not None and _takes_batch_size(factory)
        answer = factory(batch_size=batch_size) if sized else factory()
    except (InputError, KeyboardInterrupt):
        raise
    except BaseException as error:  # it is anybody's code
        raise InputError(f"{path} failed: {_told(error)}") from error
    return subject(answer, path)


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
    tensors = [part for part in tree_flatten(batch)[0] if isinstance(part, torch.Tensor)]
    if not tensors:
        raise InputError(f"{path}: the batch has no tensor; it is {_kind(batch)}")
    shaped = [tensor for tensor in tensors if tensor.dim() > 0]
    size = int(shaped[0].shape[0]) if shaped else 1
    if size == 0 or not any(tensor.numel() for tensor in tensors):
        raise InputError(f"{path}: the batch has no example; it begins with {_kind(shaped[0])}")
    return Subject(model, as_batch(batch), loss, size)


def total(output: Any, batch: Batch, loss: Callable[[Any, Any], torch.Tensor] | None) -> torch.Tensor:
    """The loss: by the factory's own, the model's if it returns one number, else the mean of all that it returns."""
    if loss is not None:
        value = loss(output, batch.whole)
        if not isinstance(value, torch.Tensor) or value.numel() != 1:
            raise InputError(f"the loss must be one number in a tensor; it is {_kind(value)}")
        return value
    named = output.get("loss") if isinstance(output, Mapping) else getattr(output, "loss", None)
    parts = [named] if isinstance(named, torch.Tensor) else tree_flatten(output)[0]
    floats = [part for part in parts if isinstance(part, torch.Tensor) and part.is_floating_point()]
    if not floats:
        raise InputError(f"the model returns no numbers to take a loss of, but {_kind(output)}; give a loss")
    if len(floats) == 1 and floats[0].numel() == 1:
        return floats[0].reshape(())
    value = floats[0].mean()
    for part in floats[1:]:
        value = value + part.mean()
    return value


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


def _find(module_name: str, name: str) -> Callable[..., Any]:
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)  # as "python -m" does: factories stand beside the training script
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is not None and (module_name == error.name or module_name.startswith(f"{error.name}.")):
            raise InputError(
                f"no module {module_name}: it is looked for in this folder and where Python finds modules"
            ) from error
        raise InputError(f"{module_name} cannot be imported: {error}") from error
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise InputError(f"{module_name} cannot be imported: {_told(error)}") from error
    target: Any = module
    for part in name.split("."):
        if not hasattr(target, part):
            near = [key for key in vars(module) if callable(getattr(module, key)) and not key.startswith("_")]
            raise InputError(
                f"{module_name} has no {name}; it has {', '.join(sorted(near)[:12]) or 'nothing callable'}"
            )
        target = getattr(target, part)
    if not callable(target):
        raise InputError(f"{module_name}:{name} must be a function that returns (model, batch); it is {_kind(target)}")
    factory: Callable[..., Any] = target
    return factory


def _takes_batch_size(factory: Callable[..., Any]) -> bool:
    try:
        return "batch_size" in inspect.signature(factory).parameters
    except (TypeError, ValueError):  # what is written in C does not say
        return False


def _told(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    at = f" ({frames[-1].filename}:{frames[-1].lineno})" if frames else ""
    if isinstance(error, SystemExit):
        return f"{exited(error)}{at}"
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0] if lines else 'it says nothing more'}{at}"


def _kind(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        return f"a tensor of shape {tuple(value.shape)}"
    if isinstance(value, (tuple, list, dict)) and not value:
        return f"an empty {type(value).__name__}"
    if isinstance(value, tuple):
        return f"a tuple of {len(value)}"
    return "None" if value is None else f"a {type(value).__name__}"
