"""Notes the operators of an iteration that is played on tensors without values. Needs PyTorch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._python_dispatch import TorchDispatchMode

from deepprophet.graph.graph import Phase, Reduction
from deepprophet.graph.memory.lifetimes import Lifetimes
from deepprophet.graph.memory.reuse import Reuse
from deepprophet.graph.recording import grouped
from deepprophet.graph.recording.calls import CallFacts, Recorded, facts_of
from deepprophet.graph.recording.dispatch_cache import Overload, Recipe, describe, overload, recipe
from deepprophet.graph.recording.places import Part, part
from deepprophet.graph.recording.values import argument, tensor_spec, tensors
from deepprophet.graph.spec import Call, shaped

_LIFTS = ("aten.lift_fresh", "aten.lift.", "aten._lift")
"""Operators that take the value of a ``torch.tensor(...)``, which is made without values only by them."""

_DEVICE_OF = torch.ops.prim.device.default
"""PyTorch asks for the device of a tensor without values several times a call."""


class SparseError(Exception):
    """How much of a sparse tensor there is depends on values."""


class ForeignTensorError(Exception):
    """A tensor with values is used, which is neither of the model nor of the batch."""


@dataclass(frozen=True, slots=True)
class _Known:
    """An operator, the kinds of calls that came before, and how parts of tensors are made, wherever they are."""

    overload: Overload
    calls: dict[tuple[Any, ...], CallFacts] = field(default_factory=dict)
    parts: dict[tuple[Any, ...], Recipe] = field(default_factory=dict)


class Recorder(TorchDispatchMode):
    """Notes each operator with its shapes, who made its inputs, when they were touched before, and how long memory is
    held.
    """

    def __init__(self) -> None:
        super().__init__()
        self.operators: list[Recorded] = []
        self.reductions: list[Reduction] = []
        self.reuse = Reuse()
        self.lifetimes = Lifetimes()
        self.phase: Phase = "forward"
        self.module = ""
        self.at: str | None = None
        self.given: list[torch.Tensor] = []
        """The operator that runs now, and the tensors that it was given; they stay where it fails."""
        self.notes: tuple[str, ...] = ()
        self.called = 0
        """How many modules were called since the last operator."""
        self.whole: list[int] = []
        """After which operators a parameter's gradient is whole."""
        self._modules_of: dict[int, str] = {}
        self._made: dict[int, int] = {}
        self._known: dict[Any, _Known] = {}

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """PyTorch would wrap each dispatch against its compiler, which does not run here, and load it for that."""
        return False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is _DEVICE_OF and type(args[0]) is FakeTensor:
            return args[0].device
        known = self._known.get(func)
        if known is None:
            known = self._known[func] = _Known(overload(func))
        options = kwargs or {}
        if known.overload.is_query:
            return func(*args, **options)
        parts = _circumstances()
        inputs: list[torch.Tensor] = []
        repeats = describe(args, parts, inputs)
        if options:
            repeats = describe(options.items(), parts, inputs) and repeats
        self.at, self.given = known.overload.name, inputs
        self.lifetimes.look(len(self.operators))
        if not (repeats and known.overload.repeats):
            return self._asked(func, known, None, args, options)
        kind = tuple(parts)
        facts = known.calls.get(kind)
        if facts is None or facts.recipe is None:
            return self._first(func, known, kind, args, options)
        read = [x.untyped_storage()._cdata for x in inputs]
        result, made = facts.recipe.make(inputs)
        self._note(facts, read, made, shares=facts.shares)
        return result

    def _first(
        self, func: Any, known: _Known, kind: tuple[Any, ...], args: tuple[Any, ...], options: dict[str, Any]
    ) -> Any:
        """Return what the first call of its kind returns: a part of a tensor may have been taken elsewhere."""
        place = part(known.overload.name, args) if not options else None
        if place is None:
            return self._asked(func, known, kind, args, options)
        alike = self._alike(place)
        if (recipe_ := known.parts.get(alike)) is None:
            result = self._asked(func, known, kind, args, options)
            if kind in known.calls and (learned := known.calls[kind].recipe) is not None:
                known.parts[alike] = learned.moved(-place.shift)
            return result
        moved = recipe_.moved(place.shift)
        call, read = self._call(known, args, options), self._read()
        result, made = moved.make(self.given)
        known.calls[kind] = facts = replace(facts_of(call, read, made), recipe=moved, shares=moved.shares)
        self._note(facts, [storage for storage, _ in read], made)
        return result

    def _alike(self, place: Part) -> tuple[Any, ...]:
        parts = _circumstances()
        describe(place.arguments, parts, [])
        return tuple(parts)

    def _asked(
        self, func: Any, known: _Known, kind: tuple[Any, ...] | None, args: tuple[Any, ...], options: dict[str, Any]
    ) -> Any:
        """Let PyTorch say what a call returns; it is the first of its ``kind``, or of none."""
        name, inputs = known.overload.name, self.given
        for foreign in (x for x in inputs if not isinstance(x, FakeTensor)):
            _refuse_foreign(name, foreign)
            self.lifetimes.keep_address(foreign.untyped_storage())
        if _asks_for_sparse_gradients(func, args, options):
            # Its backward would be refused too, but then the model's line is not known any more.
            raise SparseError
        # As it is before: what works in place may change shapes too.
        call, read = self._call(known, args, options), self._read()
        result = grouped.result(*args, **options) if name.startswith(grouped.NAME) else func(*args, **options)
        results = list(tensors(result))
        if any(tensor.layout != torch.strided for tensor in results):
            raise SparseError
        facts = facts_of(call, read, results)
        if kind is not None and (made := recipe(known.overload, args, inputs, result)) is not None:
            known.calls[kind] = facts = replace(facts, recipe=made, shares=made.shares)
        self._note(facts, [storage for storage, _ in read], results)
        return result

    def _call(self, known: _Known, args: Sequence[Any], options: dict[str, Any]) -> Call:
        return Call(known.overload.name, tuple(argument(a) for a in args), {k: argument(v) for k, v in options.items()})

    def _read(self) -> list[tuple[int, int]]:
        """Return the storages that are read, by address, and the bytes."""
        return [(x.untyped_storage()._cdata, tensor_spec(x).bytes) for x in self.given]

    def _note(
        self, facts: CallFacts, read: list[int], results: Sequence[torch.Tensor], *, shares: bool = False
    ) -> None:
        """Note a call: the storages that it has read, by address, and what it has returned."""
        self.at, self.given = None, []
        place, made = len(self.operators), self._made
        after = tuple(sorted({made[storage] for storage in read if storage in made}))
        if shares:
            written = [read[0]] if results else []
        else:
            storages = [x.untyped_storage() for x in results]
            written = [storage._cdata for storage in storages]
            self.lifetimes.note(place, read, storages)
        for storage in written:
            made[storage] = place
        if facts.family == "view":
            self.reuse.note((), (), (), facts.bytes)
        else:
            self.reuse.note(read, facts.read, written, facts.bytes)
        module, again = self._owner()
        self.operators.append(Recorded(facts, self.phase, module, after, again, self.called))
        self.called = 0

    def reduce(self, tensor: torch.Tensor) -> None:
        """Note that ranks add a tensor up now."""
        self.reductions.append(Reduction(len(self.operators) - 1, tensor_spec(tensor).bytes))

    def _owner(self) -> tuple[str, bool]:
        """Return the module, and whether it runs again.

        Backward's operators are known by the number of the forward's that they belong to. The model's code runs again
        within the backward pass where gradients are enabled: the pass's own operators run without.
        """
        if self.phase == "forward":
            self._modules_of.setdefault(torch.autograd._get_sequence_nr(), self.module)
            return self.module, False
        node = torch._C._current_autograd_node() if self.phase == "backward" else None
        if node is None:
            return "", False
        module = self._modules_of.get(node._sequence_nr(), "")
        if not torch.is_grad_enabled():
            return module, False
        module = self.module or module
        self._modules_of.setdefault(torch.autograd._get_sequence_nr(), module)
        return module, True


def _circumstances() -> list[Any]:
    """Return what results follow from beside the arguments: the type of Python's numbers, and the kind of tensors."""
    return [torch.get_default_dtype(), torch.is_inference_mode_enabled()]


def _refuse_foreign(operator: str, tensor: torch.Tensor) -> None:
    if not operator.startswith(_LIFTS):
        raise ForeignTensorError(shaped(tensor_spec(tensor)))


def _asks_for_sparse_gradients(func: Any, args: tuple[Any, ...], options: dict[str, Any]) -> bool:
    """Whether an embedding's weights, its first argument, are to get them."""
    if not (args and isinstance(args[0], torch.Tensor) and args[0].requires_grad):
        return False
    names = [parameter.name for parameter in func._schema.arguments]
    return "sparse" in names and bool((dict(zip(names, args, strict=False)) | options).get("sparse"))
