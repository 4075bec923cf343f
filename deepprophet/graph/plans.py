"""What a training plan changes of a model before it is traced: modules that run again, and weights that are cut.

Needs PyTorch. The changes are made to the copy without values, so that the trace has the operators of such a rank.

[known] Checkpointed modules keep their inputs only, and run again in the backward pass (Chen and others, 2016,
arXiv:1604.06174). Of two linear layers the first is cut by columns and the second by rows, and the ranks add up the
second's output, and in the backward pass the gradient of the first's input (Shoeybi and others, 2019,
arXiv:1909.08053). Where several layers that are cut by columns read the same input, PyTorch adds each one's gradient
up by itself (torch.distributed.tensor.parallel.ColwiseParallel).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch.utils.checkpoint import checkpoint

from deepprophet.errors import TraceError
from deepprophet.graph.patterns import matches
from deepprophet.graph.recording.recorder import Recorder


@dataclass(frozen=True, slots=True)
class ModelPlan:
    """Patterns of modules: those that run again, and those that are cut among so many ``ranks``."""

    checkpoint: tuple[str, ...] = ()
    ranks: int = 1
    columns: tuple[str, ...] = ()
    rows: tuple[str, ...] = ()


AS_IT_IS = ModelPlan()


def apply(model: torch.nn.Module, plan: ModelPlan, recorder: Recorder) -> None:
    """Change a copy of a model. Raises TraceError for patterns of no module, and for what cannot be cut."""
    modules = dict(model.named_modules())
    for name in _named(modules, plan.columns, "columns"):
        _cut(name, modules[name], 0, plan.ranks)
        modules[name].register_forward_pre_hook(partial(_watch_input, recorder))
    for name in _named(modules, plan.rows, "rows"):
        _cut(name, modules[name], 1, plan.ranks)
        modules[name].register_forward_hook(lambda _module, _given, result: recorder.reduce(result))
    for name in _named(modules, plan.checkpoint, "checkpoint"):
        module: Any = modules[name]
        module.forward = partial(checkpoint, module.forward, use_reentrant=False, preserve_rng_state=False)


def _named(modules: dict[str, torch.nn.Module], patterns: Sequence[str], what: str) -> list[str]:
    for pattern in patterns:
        if not any(matches(name, [pattern]) for name in modules if name):
            some = ", ".join([name for name in modules if name][:8])
            raise TraceError(f"the mapping's {what}: no module of the model is named {pattern}; there are {some}, ...")
    return [name for name in modules if name and matches(name, patterns)]


def _cut(name: str, module: torch.nn.Module, dimension: int, ranks: int) -> None:
    """Keep one rank's part of a linear layer; a bias belongs to its outputs."""
    if not isinstance(module, torch.nn.Linear):
        raise TraceError(f"its module {name} is a {type(module).__name__}: only nn.Linear can be cut among ranks")
    size = module.weight.shape[dimension]
    if size % ranks:
        what = "outputs" if dimension == 0 else "inputs"
        raise TraceError(f"its module {name} has {size} {what}, which cannot be cut among {ranks} ranks")
    module.weight = _part(module.weight, dimension, ranks)
    if dimension == 0 and module.bias is not None:
        module.bias = _part(module.bias, 0, ranks)


def _part(parameter: torch.nn.Parameter, dimension: int, ranks: int) -> torch.nn.Parameter:
    shape = list(parameter.shape)
    shape[dimension] //= ranks
    return torch.nn.Parameter(parameter.detach().new_empty(shape), parameter.requires_grad)


def _watch_input(recorder: Recorder, _module: torch.nn.Module, given: tuple[Any, ...]) -> None:
    """Note when the gradient of what a layer reads is whole; of several layers that read it, once for each."""
    for tensor in given[:1]:
        if isinstance(tensor, torch.Tensor) and tensor.requires_grad:
            tensor.register_hook(recorder.reduce)
