"""An operator's call as a value: its name, and arguments of which tensors are known by type, shape and strides. Pure.

Two calls with the same key cost the same, as far as shapes decide it; the key is what a device's table is kept by.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

ELEMENT_BYTES: Mapping[str, int] = {
    "bool": 1, "uint8": 1, "int8": 1, "int16": 2, "float16": 2, "bfloat16": 2, "int32": 4, "float32": 4,
    "int64": 8, "float64": 8, "complex64": 8, "complex128": 16,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """A tensor without its values. ``strides`` of None: those of a contiguous one."""

    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None = None

    @property
    def elements(self) -> int:
        """How many values it has."""
        return math.prod(self.shape)

    @property
    def bytes(self) -> int:
        """What they take; a value that a stride of 0 repeats is stored once."""
        if self.strides is not None:
            stored = math.prod(size for size, stride in zip(self.shape, self.strides, strict=True) if stride != 0)
            return stored * ELEMENT_BYTES.get(self.dtype, 4)
        return self.elements * ELEMENT_BYTES.get(self.dtype, 4)


@dataclass(frozen=True, slots=True)
class Word:
    """A value of PyTorch's own that is no tensor: a ``dtype``, ``layout``, ``memory_format``, or the ``device``."""

    kind: str
    name: str


Argument = Any
"""A TensorSpec, a Word, None, a bool, number or text, or a list of these."""


@dataclass(frozen=True)
class Call:
    """One operator with its arguments."""

    name: str
    arguments: tuple[Argument, ...]
    options: Mapping[str, Argument]

    def tensors(self) -> Iterator[TensorSpec]:
        """Its tensors, in order."""
        for argument in (*self.arguments, *self.options.values()):
            yield from _tensors(argument)

    def key(self) -> str:
        """The call as one line."""
        options = {name: _plain(value) for name, value in sorted(self.options.items())}
        return json.dumps([self.name, [_plain(value) for value in self.arguments], options], separators=(",", ":"))


def parse(key: str) -> Call:
    """The call that a key is of. Raises ValueError for what is no key."""
    try:
        name, arguments, options = json.loads(key)
        return Call(
            str(name), tuple(_rich(value) for value in arguments), {n: _rich(value) for n, value in options.items()}
        )
    except (TypeError, AttributeError, KeyError, IndexError) as error:
        raise ValueError(f"no operator's key: {key[:80]}") from error


def readable(call: Call) -> str:
    """The call for people: ``aten.mm float32[32,784] float32[784,10]``."""
    name = call.name.removesuffix(".default")
    return " ".join([name, *map(shaped, call.tensors())])


def shaped(tensor: TensorSpec) -> str:
    """A tensor for people: ``float32[32,784]``."""
    return f"{tensor.dtype}[{','.join(map(str, tensor.shape))}]"


def _tensors(argument: Argument) -> Iterator[TensorSpec]:
    if isinstance(argument, TensorSpec):
        yield argument
    elif isinstance(argument, (list, tuple)):
        for part in argument:
            yield from _tensors(part)


def _plain(argument: Argument) -> Any:
    if isinstance(argument, TensorSpec):
        strides = None if argument.strides is None else list(argument.strides)
        return {"t": [argument.dtype, list(argument.shape), strides]}
    if isinstance(argument, Word):
        return {"w": [argument.kind, argument.name]}
    if isinstance(argument, (list, tuple)):
        return [_plain(part) for part in argument]
    if isinstance(argument, float) and not math.isfinite(argument):
        return {"f": repr(argument)}
    return argument


def _rich(value: Any) -> Argument:
    if isinstance(value, dict):
        if "t" in value:
            dtype, shape, strides = value["t"]
            return TensorSpec(str(dtype), _sizes(shape), None if strides is None else _sizes(strides))
        if "w" in value:
            kind, name = value["w"]
            return Word(str(kind), str(name))
        return float(value["f"])
    if isinstance(value, list):
        return [_rich(part) for part in value]
    return value


def _sizes(values: Sequence[Any]) -> tuple[int, ...]:
    return tuple(int(value) for value in values)
