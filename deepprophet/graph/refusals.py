"""Models whose iteration cannot be seen from outside: each is refused with one line that says what to give instead.

Needs PyTorch.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import torch
from torch.nn.parallel import DataParallel, DistributedDataParallel
from torch.utils._python_dispatch import is_traceable_wrapper_subclass

from deepprophet.errors import TraceError

_QUANTISED = ("torch.ao.nn.quantized", "torch.ao.nn.intrinsic.quantized", "torch.nn.quantized", "bitsandbytes",
              "torchao", "optimum.quanto", "auto_gptq", "awq", "hqq")  # fmt: skip
"""Packages whose modules compute with weights of few bits."""


def refuse(model: torch.nn.Module) -> None:
    """Raises TraceError for a model of which no operators of eager PyTorch could be seen, or none that trains it."""
    for name, module in model.named_modules():
        where = f"its module {name}" if name else "the model"
        for problem in (*_of_compiled(module), *_of_wrapped(module), *_of_quantised(module)):
            raise TraceError(f"{where} {problem}")
    tensors = [*model.named_parameters(), *model.named_buffers()]
    for name, tensor in tensors:
        for problem in _of_tensor(tensor):
            raise TraceError(f"its tensor {name} {problem}")
    parameters = list(model.parameters())
    if not parameters:
        raise TraceError("the model has no parameters, so there is nothing to train: give the model that is trained")
    if not any(parameter.requires_grad for parameter in parameters):
        raise TraceError(
            "no parameter gets a gradient, because all have requires_grad=False: give the model as it is trained"
        )


def _of_compiled(module: torch.nn.Module) -> Iterator[str]:
    # Who compiles has loaded the compiler; to load it for this question takes more than a second.
    compiler = sys.modules.get("torch._dynamo")
    compiled: Any = () if compiler is None else compiler.OptimizedModule
    if isinstance(module, torch.jit.ScriptModule):
        what = "is compiled by TorchScript"
    elif isinstance(module, compiled) or module._compiled_call_impl is not None:
        what = "is compiled by torch.compile"
    else:
        return
    yield f"{what}: what runs then is not what PyTorch's operators cost one by one; give the model before that"


def _of_wrapped(module: torch.nn.Module) -> Iterator[str]:
    if isinstance(module, (DistributedDataParallel, DataParallel)):
        yield (
            f"is wrapped in {type(module).__name__}: give the model inside, its module; --workers N predicts what the "
            "wrapper does"
        )
    # Who shards has loaded it.
    sharding = sys.modules.get("torch.distributed.fsdp")
    kinds = () if sharding is None else (sharding.FullyShardedDataParallel, getattr(sharding, "FSDPModule", ()))
    if any(isinstance(module, kind) for kind in kinds):
        yield "is sharded by FSDP: give the model before that; --mapping FILE with fsdp predicts what sharding does"


def _of_quantised(module: torch.nn.Module) -> Iterator[str]:
    if type(module).__module__.startswith(_QUANTISED):
        yield (
            f"is quantised ({type(module).__name__}): such weights are not trained; give the model before that, or "
            "with adapters of plain PyTorch"
        )


def _of_tensor(tensor: torch.Tensor) -> Iterator[str]:
    if torch.nn.parameter.is_lazy(tensor):
        yield "has no shape yet, because its module is lazy: call the model once on the batch in the factory"
    elif tensor.is_quantized:
        yield "is quantised: such weights are not trained; give the model before that"
    elif is_traceable_wrapper_subclass(tensor):
        yield f"is a {type(tensor).__name__}, whose operators are not PyTorch's own: give the model with plain tensors"
