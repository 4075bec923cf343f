"""PyTorch's values as those of ``spec``: tensors without what is in them, and its words. Needs PyTorch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from deepprophet.graph.spec import TensorSpec, Word


def argument(value: Any) -> Any:
    """An argument as a value of ``spec``."""
    if isinstance(value, torch.Tensor):
        return tensor_spec(value)
    if isinstance(value, (list, tuple)):
        return [argument(part) for part in value]
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, torch.device):
        return Word("device", "")
    if isinstance(value, (torch.dtype, torch.layout, torch.memory_format)):
        return Word(type(value).__name__, name_of(value))
    return Word("object", type(value).__name__)


def tensor_spec(tensor: torch.Tensor) -> TensorSpec:
    """A tensor without its values."""
    shape = tuple(int(size) for size in tensor.shape)
    strides = None if tensor.is_contiguous() else tuple(int(step) for step in tensor.stride())
    return TensorSpec(name_of(tensor.dtype), shape, strides)


def name_of(value: Any) -> str:
    """Return PyTorch's name of a data type, layout or memory format, without its package."""
    return str(value).removeprefix("torch.")


def tensors(value: Any) -> Iterator[torch.Tensor]:
    """The tensors of an operator's arguments or results, which are nested in tuples and lists alone."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (tuple, list)):
        for part in value:
            yield from tensors(part)
