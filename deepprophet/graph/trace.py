"""A model's joint forward and backward graph with shapes, by PyTorch itself, without computing anything.

The model is copied into tensors that have shapes and no values (``FakeTensorMode``), and one iteration is played on
them: forward, loss, backward, optimiser. A dispatch mode below autograd notes what is called. These are the very
operators that eager PyTorch runs: `torch.export` has no backward, and a compiler's graph is of other operators.
"""

from __future__ import annotations

import copy
import logging
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeCopyMode, FakeTensorMode

from deepprophet import collector
from deepprophet.errors import InputError, TraceError
from deepprophet.graph import chance
from deepprophet.graph.copies import buffer_bytes, convert, resized
from deepprophet.graph.graph import Graph, Operator, Parameter
from deepprophet.graph.memory.heap import fresh_bytes
from deepprophet.graph.packed import no_packed_sequences
from deepprophet.graph.plans import AS_IT_IS, ModelPlan, apply
from deepprophet.graph.problems import problem
from deepprophet.graph.recording.modules import named_modules
from deepprophet.graph.recording.recorder import Recorder
from deepprophet.graph.recording.values import name_of
from deepprophet.graph.refusals import refuse
from deepprophet.graph.spec import parse, readable
from deepprophet.graph.subject import Batch, Subject, is_loss, optimiser, total

CPU = torch.device("cpu")
LOG = logging.getLogger("torch._subclasses.fake_tensor")
OF_OUTPUTS = "no loss is given: it is the mean of all that the model returns"


@dataclass(frozen=True, slots=True)
class TraceOptions:
    """What an iteration is traced with. ``batch_size`` of None: the example batch's.

    ``micro_batches`` of a batch each are added up before the optimiser works.
    """

    optimizer: str = "sgd"
    dtype: str = "float32"
    batch_size: int | None = None
    device: torch.device = CPU
    plan: ModelPlan = AS_IT_IS
    micro_batches: int = 1


def trace(subject: Subject, how: TraceOptions = TraceOptions()) -> Graph:
    """The graph of one iteration. Raises TraceError, with the operator and the line, where that is not possible."""
    refuse(subject.model)
    before = chance.drawn()
    graph = _once(subject, how)
    if chance.drawn() != before and _shapes(_once(subject, how)) != _shapes(graph):
        raise TraceError(
            "the model runs other operators in each iteration, because its code draws random numbers (random, "
            "numpy.random): let it decide the same way each time, as with a layer drop of 0"
        )
    return graph


def _shapes(graph: Graph) -> list[str]:
    """The operators with the shapes of their tensors; their numbers may be drawn."""
    return [readable(parse(operator.key)) for operator in graph.operators]


def _once(subject: Subject, how: TraceOptions) -> Graph:
    recorder = Recorder()
    # It would print a traceback of its own where shapes do not fit.
    LOG.setLevel(logging.CRITICAL)
    try:
        with warnings.catch_warnings(), no_packed_sequences(), collector.paused():
            warnings.simplefilter("ignore")
            return _traced(subject, recorder, how)
    except (InputError, KeyboardInterrupt):
        raise
    except BaseException as error:  # the model's own code may raise anything
        raise TraceError(problem(error, recorder, _hint(subject, how))) from error


def _hint(subject: Subject, how: TraceOptions) -> str:
    """What else may be the reason where shapes do not fit."""
    if how.plan.ranks > 1:
        return "; where weights are cut, the model's code must take the number of heads from the sizes of tensors"
    if how.batch_size in (None, subject.batch_size):
        return ""
    return (
        f"; the example batch has {subject.batch_size} examples, and was made one of {how.batch_size}: a factory that "
        "takes batch_size makes its own"
    )


def _traced(subject: Subject, recorder: Recorder, how: TraceOptions) -> Graph:
    mode = FakeTensorMode()
    with FakeCopyMode(mode):
        model = copy.deepcopy(subject.model)
        batch = copy.deepcopy(subject.batch)
    model.train()
    kind = getattr(torch, how.dtype)
    size = subject.batch_size if how.batch_size is None else how.batch_size
    with mode:
        convert(model, kind, how.device)
        apply(model, how.plan, recorder)
        batch = resized(batch, subject.batch_size, size, kind, how.device)
        trained = {name: p for name, p in model.named_parameters() if p.requires_grad}
        for parameter in trained.values():
            parameter.grad = None
        step = optimiser(how.optimizer, list(trained.values()))
        _warm(step, trained)
        ready: dict[str, int] = {}
        hooks = [p.register_post_accumulate_grad_hook(_noting(ready, n, recorder)) for n, p in trained.items()]
        later = 0
        # The recorder has a cache of its own, which is sooner asked.
        mode.cache_enabled = False
        with recorder, named_modules(model, recorder):
            _forward_and_backward(model, batch, subject, recorder)
            if how.micro_batches > 1:
                later = len(recorder.operators)
                _forward_and_backward(model, batch, subject, recorder)
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
            Parameter(name, p.numel() * p.element_size(), name_of(p.dtype), ready.get(name))
            for name, p in trained.items()
        ),
        buffer_bytes=buffer_bytes(model),
        batch_size=size,
        dtype=how.dtype,
        later=later,
        micro_batches=how.micro_batches,
        reductions=tuple(recorder.reductions),
        notes=recorder.notes,
    )


def _forward_and_backward(model: torch.nn.Module, batch: Batch, subject: Subject, recorder: Recorder) -> None:
    # Modules that run again may end early, and do not say so.
    recorder.phase, recorder.module = "forward", ""
    output = model(*batch.arguments, **batch.options)
    if subject.loss is None and not is_loss(output):
        recorder.notes = (OF_OUTPUTS,)
    loss = total(output, batch, subject.loss)
    recorder.phase = "backward"
    loss.backward()


def _placed(recorder: Recorder, device: torch.device) -> Iterator[Operator]:
    """The operators, with where their inputs are and how much of their results' memory is new."""
    count = len(recorder.operators)
    # Accelerators keep what was given back.
    fresh = fresh_bytes(recorder.lifetimes.held, count) if device.type == "cpu" else [0.0] * count
    whole = Counter(recorder.whole)
    rows = zip(recorder.operators, recorder.reuse.far_shares(), fresh, strict=True)
    for place, (call, share, new) in enumerate(rows):
        facts = call.facts
        yield Operator(
            key=facts.key, family=facts.family, phase=call.phase, flops=facts.flops, bytes=facts.bytes,
            far_share=share, fresh_bytes=new, module=call.module, after=call.after, result_bytes=facts.result_bytes,
            recomputed=call.recomputed, modules=call.modules, gradients=whole[place],
        )  # fmt: skip


def _noting(ready: dict[str, int], name: str, recorder: Recorder) -> Any:
    def note(_: torch.Tensor) -> None:
        # A parameter that is used twice is ready when its last part is there.
        ready[name] = len(recorder.operators) - 1
        recorder.whole.append(ready[name])

    return note


def _warm(step: Any, trained: dict[str, torch.nn.Parameter]) -> None:
    """An optimiser makes its state at its first step; an iteration is any later one."""
    if step is None:
        return
    for parameter in trained.values():
        parameter.grad = torch.zeros_like(parameter)
    step.step()
    step.zero_grad(set_to_none=True)
