"""Parts of tensors: the same part at another place has the same layout, only further on in memory. Needs PyTorch.

A scan takes one part of a sequence after the other, and each is a call with another place.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import torch


class Part(NamedTuple):
    """A call's arguments without the place, and how many elements into the memory of its tensor the place is."""

    arguments: tuple[Any, ...]
    shift: int


def part(name: str, arguments: Sequence[Any]) -> Part | None:
    """Return a call that takes a part of a tensor, or puts one back; None: it does not, or there is no such part."""
    of = _PARTS.get(name)
    return None if of is None else of(*arguments)


def _select(tensor: torch.Tensor, dimension: int, index: int) -> Part | None:
    place = _place(tensor.shape, dimension, index)
    return None if place is None else Part((tensor, dimension), place * tensor.stride(dimension))


def _select_backward(gradient: torch.Tensor, sizes: Sequence[int], dimension: int, index: int) -> Part | None:
    place = _place(sizes, dimension, index)
    return None if place is None else Part((gradient, sizes, dimension), 0)


def _slice(
    tensor: torch.Tensor, dimension: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Part | None:
    places = _places(tensor.shape, dimension, start, end, step)
    if places is None:
        return None
    return Part((tensor, dimension, len(places), step), places.start * tensor.stride(dimension))


def _slice_backward(gradient: torch.Tensor, sizes: Sequence[int], dimension: int, *places: int) -> Part | None:
    of = _places(sizes, dimension, *places)
    return None if of is None else Part((gradient, sizes, dimension, len(of), of.step), 0)


def _place(sizes: Sequence[int], dimension: int, index: int) -> int | None:
    if not -len(sizes) <= dimension < len(sizes) or not -sizes[dimension] <= index < sizes[dimension]:
        return None
    return index % sizes[dimension]


def _places(sizes: Sequence[int], dimension: int, start: int | None, end: int | None, step: int) -> range | None:
    """Return the places of a slice, which PyTorch cuts off at the ends as Python does."""
    if not -len(sizes) <= dimension < len(sizes) or step < 1:
        return None
    return range(*slice(start, end, step).indices(sizes[dimension]))


_PARTS: Mapping[str, Callable[..., Part | None]] = {
    "aten.select.int": _select, "aten.select_backward.default": _select_backward,
    "aten.slice.Tensor": _slice, "aten.slice_backward.default": _slice_backward,
}  # fmt: skip
