"""A model's joint forward and backward graph with shapes, by PyTorch itself, without computing anything.

The model is copied into tensors that have shapes and no values (``FakeTensorMode``), and one iteration is played on
them: forward, loss, backward, optimiser. A dispatch mode below autograd notes what is called. These are the very
operators that eager PyTorch runs: `torch.export` has no backward, and a compiler's graph is of other operators.
"""

from __future__ import annotations

import copy
import sys
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeCopyMode,
    FakeTensorMode,
    UnsupportedOperatorException,
)
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten

from deepprophet.errors import TraceError, exited
from deepprophet.graph import families
from deepprophet.graph.graph import Graph, Operator, Parameter, Phase
from deepprophet.graph.heap import fresh_bytes
from deepprophet.graph.lifetimes import Lifetimes
from deepprophet.graph.reuse import Reuse
from deepprophet.graph.spec import Call, TensorSpec, Word
from deepprophet.graph.subject import Subject, optimiser, total

CPU = torch.device("cpu")
_QUIET = ("prim.", "profiler.")


@dataclass(frozen=True, slots=True)
class TraceOptions:
    """What an iteration is traced with. ``batch_size`` of None: the example batch's."""

    optimizer: str = "sgd"
    dtype: str = "float32"
    batch_size: int | None = None
    device: torch.device = CPU


def trace(subject: Subject, how: TraceOptions = TraceOptions()) -> Graph:
    """The graph of one iteration. Raises TraceError, with the operator and the line, where that is not possible."""
    _refuse_compiled(subject.model)
    recorder = _Recorder()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return _traced(subject, recorder, how)
    except (TraceError, KeyboardInterrupt):
        raise
    except BaseException as error:  # the model's own code may raise anything
        raise TraceError(_problem(error, recorder)) from error


def _refuse_compiled(model: torch.nn.Module) -> None:
    """Raises TraceError for what calls no operator of eager PyTorch that could be seen."""
    # Who compiles has loaded the compiler; to load it for this question takes more than a second.
    compiler = sys.modules.get("torch._dynamo")
    compiled = () if compiler is None else compiler.OptimizedModule
    for name, module in model.named_modules():
        if isinstance(module, torch.jit.ScriptModule):
            what = "is compiled by TorchScript"
        elif isinstance(module, compiled) or module._compiled_call_impl is not None:
            what = "is compiled by torch.compile"
        else:
            continue
        where = f"its module {name}" if name else "the model"
        raise TraceError(
            f"{where} {what}: what runs then is not what PyTorch's operators cost one by one; give the model before "
            "that"
        )


def _traced(subject: Subject, recorder: _Recorder, how: TraceOptions) -> Graph:
    mode = FakeTensorMode()
    with FakeCopyMode(mode):
        model = copy.deepcopy(subject.model)
        batch = copy.deepcopy(subject.batch)
    model.train()
    kind = getattr(torch, how.dtype)
    with mode:
        _convert(model, kind, how.device)
        batch, size = _resized(batch, subject.batch_size, how, kind)
        trained = {name: p for name, p in model.named_parameters() if p.requires_grad}
        if not trained:
            raise TraceError("no parameter gets a gradient: all have requires_grad=False")
        for parameter in trained.values():
            parameter.grad = None
        step = optimiser(how.optimizer, list(trained.values()))
        _warm(step, trained)
        ready: dict[str, int] = {}
        hooks = [p.register_post_accumulate_grad_hook(_noting(ready, n, recorder)) for n, p in trained.items()]
        with recorder, _named_modules(model, recorder):
            output = model(*batch.arguments, **batch.options)
            loss = total(output, batch, subject.loss)
            recorder.phase = "backward"
            loss.backward()
            recorder.phase = "optimizer"
            if step is not None:
                step.step()
        for hook in hooks:
            hook.remove()
    if not ready:
        raise TraceError("no parameter gets a gradient: the loss must depend on the model's parameters")
    return Graph(
        operators=tuple(_placed(recorder, how.device)),
        parameters=tuple(
            Parameter(name, p.numel() * p.element_size(), _name(p.dtype), ready.get(name))
            for name, p in trained.items()
        ),
        buffer_bytes=_buffer_bytes(model),
        batch_size=size,
        dtype=how.dtype,
    )


def _placed(recorder: _Recorder, device: torch.device) -> Iterator[Operator]:
    """The operators, with where their inputs are and how much of their results' memory is new."""
    count = len(recorder.operators)
    # Accelerators keep what was given back.
    fresh = fresh_bytes(recorder.lifetimes.held, count) if device.type == "cpu" else [0.0] * count
    for operator, share, new in zip(recorder.operators, recorder.reuse.far_shares(), fresh, strict=True):
        yield replace(operator, far_share=share, fresh_bytes=new)


class _Recorder(TorchDispatchMode):
    """Notes each operator with its shapes, who made its inputs, when they were touched before, and how long memory is
    held.
    """

    def __init__(self) -> None:
        super().__init__()
        self.operators: list[Operator] = []
        self.reuse = Reuse()
        self.lifetimes = Lifetimes()
        self.phase: Phase = "forward"
        self.module = ""
        self.at: Any = None
        self._modules_of: dict[int, str] = {}
        self._made: dict[int, int] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = str(func)
        if name.startswith(_QUIET):
            return func(*args, **(kwargs or {}))
        self.at = name
        options = kwargs or {}
        self.lifetimes.look(len(self.operators))
        if _asks_for_sparse_gradients(func, args, options):
            # Its backward would be refused too, but then the model's line is not known any more.
            raise _SparseError
        # As it is before: what works in place may change shapes too.
        call = Call(name, tuple(argument(a) for a in args), {k: argument(v) for k, v in options.items()})
        inputs = [x for x in tree_flatten((args, options))[0] if isinstance(x, torch.Tensor)]
        read = [(x.untyped_storage()._cdata, tensor_spec(x).bytes) for x in inputs]
        result = func(*args, **options)
        results = [x for x in tree_flatten(result)[0] if isinstance(x, torch.Tensor)]
        if any(tensor.layout != torch.strided for tensor in results):
            raise _SparseError
        self.at = None
        self._note(call, read, results)
        return result

    def _note(self, call: Call, read: list[tuple[int, int]], results: list[torch.Tensor]) -> None:
        specs = [tensor_spec(x) for x in results]
        kind = families.family(call)
        place = len(self.operators)
        written = [x.untyped_storage()._cdata for x in results]
        after = {self._made[storage] for storage, _ in read if storage in self._made}
        for storage in written:
            self._made[storage] = place
        size = families.moved(call, specs)
        self.reuse.note([] if kind == "view" else read, [] if kind == "view" else written, size)
        self.lifetimes.note(place, [storage for storage, _ in read], results)
        self.operators.append(
            Operator(
                key=call.key(),
                family=kind,
                phase=self.phase,
                flops=families.flops(call, specs),
                bytes=size,
                module=self._owner(),
                after=tuple(sorted(after)),
            )
        )

    def _owner(self) -> str:
        """The module; backward's operators are known by the number of the forward's that they belong to."""
        if self.phase == "forward":
            self._modules_of.setdefault(torch.autograd._get_sequence_nr(), self.module)
            return self.module
        node = torch._C._current_autograd_node() if self.phase == "backward" else None
        return "" if node is None else self._modules_of.get(node._sequence_nr(), "")


class _SparseError(Exception):
    """How much of a sparse tensor there is depends on values."""


def _asks_for_sparse_gradients(func: Any, args: tuple[Any, ...], options: dict[str, Any]) -> bool:
    """Whether an embedding's weights, its first argument, are to get them."""
    if not (args and isinstance(args[0], torch.Tensor) and args[0].requires_grad):
        return False
    names = [parameter.name for parameter in func._schema.arguments]
    return "sparse" in names and bool((dict(zip(names, args, strict=False)) | options).get("sparse"))


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
        return Word(type(value).__name__, _name(value))
    return Word("object", type(value).__name__)


def tensor_spec(tensor: torch.Tensor) -> TensorSpec:
    """A tensor without its values."""
    shape = tuple(int(size) for size in tensor.shape)
    strides = None if tensor.is_contiguous() else tuple(int(step) for step in tensor.stride())
    return TensorSpec(_name(tensor.dtype), shape, strides)


def _name(value: Any) -> str:
    return str(value).removeprefix("torch.")


def _convert(model: torch.nn.Module, kind: torch.dtype, device: torch.device) -> None:
    """What ``model.to(device, kind)`` does; that does not take tensors without values."""
    converted: dict[int, Any] = {}
    for module in model.modules():
        for name, parameter in [*module._parameters.items(), *module._buffers.items()]:
            own = kind if parameter is not None and parameter.is_floating_point() else None
            if parameter is None or (parameter.device == device and own in (None, parameter.dtype, torch.float32)):
                continue
            if id(parameter) not in converted:
                new = parameter.detach().to(device=device, dtype=None if own is torch.float32 else own)
                trained = isinstance(parameter, torch.nn.Parameter)
                # The old one is kept too, so that its identity does not come again.
                converted[id(parameter)] = (
                    torch.nn.Parameter(new, parameter.requires_grad) if trained else new,
                    parameter,
                )
            setattr(module, name, converted[id(parameter)][0])


def _buffer_bytes(model: torch.nn.Module) -> tuple[int, ...]:
    sizes: dict[torch.dtype, int] = {}
    for buffer in model.buffers():
        sizes[buffer.dtype] = sizes.get(buffer.dtype, 0) + buffer.numel() * buffer.element_size()
    return tuple(size for size in sizes.values() if size)


def _noting(ready: dict[str, int], name: str, recorder: _Recorder) -> Any:
    def note(_: torch.Tensor) -> None:
        # A parameter that is used twice is ready when its last part is there.
        ready[name] = len(recorder.operators) - 1

    return note


def _warm(step: Any, trained: dict[str, torch.nn.Parameter]) -> None:
    """An optimiser makes its state at its first step; an iteration is any later one."""
    if step is None:
        return
    for parameter in trained.values():
        parameter.grad = torch.zeros_like(parameter)
    step.step()
    step.zero_grad(set_to_none=True)


@contextmanager
def _named_modules(model: torch.nn.Module, recorder: _Recorder) -> Iterator[None]:
    hooks = []
    stack: list[str] = []

    def enter(name: str) -> Any:
        def note(_: Any, __: Any) -> None:
            stack.append(recorder.module)
            recorder.module = name

        return note

    def leave(_: Any, __: Any, ___: Any) -> None:
        recorder.module = stack.pop()

    for name, module in model.named_modules():
        if name:
            hooks += [module.register_forward_pre_hook(enter(name)), module.register_forward_hook(leave)]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


def _resized(batch: Any, was: int, how: TraceOptions, kind: torch.dtype) -> tuple[Any, int]:
    size = was if how.batch_size is None else how.batch_size

    def resize(tensor: torch.Tensor) -> torch.Tensor:
        if size != was and tensor.dim() > 0 and tensor.shape[0] == was:
            tensor = tensor.new_empty((size, *tensor.shape[1:]))
        tensor = tensor.to(how.device)
        return tensor.to(kind) if tensor.is_floating_point() and kind is not torch.float32 else tensor

    return batch.each(resize), size


def _problem(error: BaseException, recorder: _Recorder) -> str:
    """What cannot be traced: the operator and the model's line."""
    where = _line(error)
    operator = str(getattr(error, "func", None) or recorder.at or "")
    at = f"{where}: " if where else ""
    if isinstance(error, DynamicOutputShapeException):
        return (
            f"{at}the shape of {operator}'s result depends on the data: only static shapes can be predicted; "
            "take a fixed size there, such as a mask instead of a selection"
        )
    if isinstance(error, DataDependentOutputException):
        return (
            f"{at}{operator} asks for a value of a tensor, and what runs next depends on the data: a prediction knows "
            "shapes only; keep the decision out of the model, or in tensors (torch.where)"
        )
    if isinstance(error, UnsupportedOperatorException) or "no fake impl" in str(error):
        return f"{at}{operator} does not say what shape its result has: register a fake kernel for it (torch.library)"
    if isinstance(error, _SparseError):
        return (
            f"{at}{operator} makes a sparse tensor, and how large that is depends on the data: only dense ones can be "
            "predicted; take sparse=False there"
        )
    if isinstance(error, SystemExit):
        return f"{at}the model cannot be traced: {exited(error)}"
    reason = str(error).strip().splitlines()[0] if str(error).strip() else "it says nothing more"
    doing = f" in {operator}" if operator else ""
    return f"{at}the model cannot be traced{doing}: {type(error).__name__}: {reason}"


def _line(error: BaseException) -> str:
    """The innermost line that is not PyTorch's own, nor this package's."""
    own = (Path(torch.__file__).parent, Path(__file__).parent)
    frames = traceback.extract_tb(error.__traceback__)
    for frame in reversed(frames):
        path = Path(frame.filename)
        if frame.lineno is not None and not frame.filename.startswith("<") and not any(o in path.parents for o in own):
            return f"{frame.filename}:{frame.lineno}"
    return ""
