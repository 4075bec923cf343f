"""Makes the results of calls that came before again, without asking PyTorch for their shapes. Needs PyTorch.

For a call on tensors without values PyTorch works out the shapes of the results in its Python code, which takes longer
than the operator itself where that is small: of a scan over a sequence there are tens of thousands of calls, and a few
hundred kinds of them. [ours] So a call is asked for once. Later calls with the same arguments, on tensors of the same
layouts, have results of the layouts that the first had: each in memory of its own, or as far on in the memory of an
argument, or the first argument itself, where the operator writes to it. (``FakeTensorMode`` has such a cache too; to
look a call up there takes as long as many small operators.)

Not all calls can be told by layouts. The values of small tensors are known at times (``FakeTensor.constant``),
operators of other libraries may do anything, and some change the layout of what they are given: those are asked for
every time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor

META = torch.device("meta")
PLAIN = "_is_plain"
"""An attribute of tensors of which all that matters is their layout, so that nobody asks again."""

_QUERIES = ("prim.", "profiler.")
_LIBRARIES = ("aten", "prims")
"""Results of these libraries' operators follow from the arguments."""

_TOLD_BY_VALUES = (torch.Tag.data_dependent_output, torch.Tag.inplace_view)
"""Operators with one of these tags have results that follow from values, or change the layout of an argument."""

_FROM_THE_BEGINNING = ("aten.as_strided.default",)
"""These operators are told where in the memory of a tensor their result begins, wherever the tensor itself begins."""

_WORDS = frozenset({type(None), str, torch.dtype, torch.layout, torch.memory_format, torch.device})


@dataclass(frozen=True, slots=True)
class Overload:
    """An operator, whatever it is called with.

    ``is_query``: it computes nothing. ``repeats``: its results follow from the layouts of what it is given. ``writes``:
    it writes to its first argument.
    """

    name: str
    is_query: bool
    repeats: bool
    writes: bool


def overload(func: Any) -> Overload:
    """Return what is known of an operator."""
    name = str(func)
    if not isinstance(func, torch._ops.OpOverload) or func.namespace not in _LIBRARIES:
        return Overload(name, name.startswith(_QUERIES), repeats=False, writes=False)
    written = [a.alias_info is not None and a.alias_info.is_write for a in func._schema.arguments]
    # Whether an embedding has sparse gradients is asked at each call.
    is_odd = any(tag in func.tags for tag in _TOLD_BY_VALUES) or any(a.name == "sparse" for a in func._schema.arguments)
    repeats = not is_odd and not any(written[1:]) and name not in _FROM_THE_BEGINNING
    return Overload(name, is_query=False, repeats=repeats, writes=any(written))


@dataclass(frozen=True, slots=True)
class Result:
    """A tensor that a call gives: its layout, and of which input it is a view; None: it has memory of its own.

    ``offset``: how many elements a view begins after its input. ``state``: the attributes of such a tensor.
    """

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int
    dtype: torch.dtype
    device: torch.device
    viewed: int | None
    state: dict[str, Any]

    def make(self, inputs: Sequence[torch.Tensor]) -> torch.Tensor:
        """Return such a tensor. Within ``torch._C._DisableTorchDispatch`` alone, as PyTorch makes its own."""
        plain = torch.empty_strided(self.shape, self.strides, dtype=self.dtype, device=META)
        if self.viewed is not None:
            viewed = inputs[self.viewed]
            plain.set_(
                viewed.untyped_storage(),
                viewed.storage_offset() + self.offset,
                self.shape,
                self.strides,
            )
        tensor = torch.Tensor._make_subclass(
            FakeTensor, plain, False, dispatch_device=True, device_for_backend_keys=self.device
        )
        torch._C._set_throw_on_mutable_data_ptr(tensor)
        tensor.__dict__.update(self.state)
        return tensor


@dataclass(frozen=True, slots=True)
class Recipe:
    """How a call's results are made: each by itself, the first argument (``first``), or none.

    ``container``: what they are in, where there are several.
    """

    results: tuple[Result | None, ...]
    container: Callable[[Iterable[Any]], Any] | None = None
    first: bool = False

    def make(self, inputs: Sequence[torch.Tensor]) -> tuple[Any, list[torch.Tensor]]:
        """Return what the operator returns for these inputs, and the tensors that are in it."""
        if self.first:
            return inputs[0], [inputs[0]]
        with torch._C._DisableTorchDispatch():
            made = [None if result is None else result.make(inputs) for result in self.results]
        if self.container is None:
            return (made[0], made) if made else (None, made)
        return self.container(made), [tensor for tensor in made if tensor is not None]

    @property
    def shares(self) -> bool:
        """Whether all that is returned is in the memory of the first input."""
        return self.first or all(result is not None and result.viewed is not None for result in self.results)

    def moved(self, shift: int) -> Recipe:
        """Return the recipe for views that begin so many elements later."""
        if not shift:
            return self
        moved = [r if r is None or r.viewed is None else replace(r, offset=r.offset + shift) for r in self.results]
        return replace(self, results=tuple(moved))


def describe(values: Iterable[Any], parts: list[Any], inputs: list[torch.Tensor]) -> bool:
    """Add what tells arguments apart to ``parts``, and their tensors to ``inputs``.

    Returns whether that is all that tells them apart.
    """
    is_all = True
    for value in values:
        kind = type(value)
        if kind is FakeTensor:
            inputs.append(value)
            if PLAIN in value.__dict__ or _is_plain(value):
                parts += (value.dtype, value.shape, value.stride(), value.fake_device)
            else:
                is_all = False
        elif kind is int or kind is bool:
            # 1 and True are equal in Python.
            parts += (kind, value)
        elif kind is float:
            parts += (kind, repr(value))
        elif kind in _WORDS:
            parts.append(value)
        elif kind is list or kind is tuple:
            parts += (kind, len(value))
            is_all = describe(value, parts, inputs) and is_all
        else:
            if isinstance(value, torch.Tensor):
                inputs.append(value)
            is_all = False
    return is_all


def _is_plain(tensor: Any) -> bool:
    """Return whether a tensor's layout is all that matters: neither a value nor what is yet to be done to it."""
    return not (
        tensor.layout is not torch.strided or tensor.constant is not None or tensor.dtype.is_complex or tensor.is_neg()
    )


def recipe(of: Overload, arguments: Sequence[Any], inputs: Sequence[torch.Tensor], result: Any) -> Recipe | None:
    """Return how to make a call's result again; None: it must be asked for each time."""
    if result is None or (isinstance(result, (tuple, list)) and not result):
        return Recipe((), None if result is None else type(result)) if of.writes else None
    if of.writes:
        return Recipe((), first=True) if result is arguments[0] and result is inputs[0] else None
    several = type(result) if type(result) in (tuple, list) else None
    theirs = list(result) if several else [result]
    results = [None if tensor is None else _result(tensor, inputs) for tensor in theirs]
    if any(made is None and tensor is not None for made, tensor in zip(results, theirs, strict=True)):
        return None
    found = Recipe(tuple(results), several)
    return found if _makes(found, inputs, [tensor for tensor in theirs if tensor is not None]) else None


def _makes(found: Recipe, inputs: Sequence[torch.Tensor], theirs: Sequence[torch.Tensor]) -> bool:
    """Return whether what a recipe makes is what PyTorch has made."""
    try:
        made = found.make(inputs)[1]
    except (AttributeError, TypeError, RuntimeError):
        # Another version of PyTorch may make its tensors in another way.
        return False
    return _are_same(made, theirs)


def _result(tensor: Any, inputs: Sequence[Any]) -> Result | None:
    """Return how a tensor is made again; None where it cannot be told what it is a view of."""
    if type(tensor) is not FakeTensor:
        return None
    address = tensor.untyped_storage()._cdata
    shares = any(given.untyped_storage()._cdata == address for given in inputs)
    is_odd = len(inputs) != 1 or tensor is inputs[0] or tensor.dtype != inputs[0].dtype
    if not _is_plain(tensor) or (shares and is_odd):
        return None
    return Result(
        tuple(tensor.shape), tensor.stride(), tensor.storage_offset() - (inputs[0].storage_offset() if shares else 0),
        tensor.dtype, tensor.fake_device, 0 if shares else None, {**vars(tensor), PLAIN: True},
    )  # fmt: skip


def _are_same(made: Sequence[Any], theirs: Sequence[Any]) -> bool:
    """Return whether what a recipe makes is what PyTorch has made, in memory that is shared alike."""
    alike = len(_memories(made)) == len(_memories(theirs))
    return alike and all(_told(ours) == _told(other) for ours, other in zip(made, theirs, strict=True))


def _memories(tensors: Sequence[Any]) -> set[int]:
    return {tensor.untyped_storage()._cdata for tensor in tensors}


def _told(tensor: Any) -> tuple[Any, ...]:
    parts: list[Any] = []
    describe([tensor], parts, [])
    keys = torch._C._dispatch_key_set(tensor)
    return *parts, tensor.storage_offset(), tensor.untyped_storage().nbytes(), tensor.requires_grad, keys
