"""Models and optimisers that cannot be wrapped, each refused with what would be right."""

from __future__ import annotations

import torch
from torch import nn
from torch.optim import Optimizer

from sasp.core.errors import SaspError
from sasp.training.optimizer import DecoupledOptimizer

_ALL_PARAMETERS = "; each rank needs all parameters here, so give the model as it was before it was sharded"


def refuse(model: nn.Module, optimizer: Optimizer) -> None:
    """Raises SaspError for what cannot be wrapped."""
    _refuse_model(model)
    _refuse_optimizer(optimizer)


def _refuse_model(model: nn.Module) -> None:
    if isinstance(model, (nn.parallel.DistributedDataParallel, nn.DataParallel)):
        raise SaspError(f"the model is wrapped in {type(model).__name__}; give the bare model, this takes its place")
    if isinstance(model, torch.jit.ScriptModule):
        raise SaspError("the model is compiled by TorchScript, which calls no hooks; give the model before that")
    for name, module in model.named_modules():
        where = name or type(module).__name__
        if _is_a(module, "FullyShardedDataParallel"):
            raise SaspError(f"{where} is sharded by FullyShardedDataParallel{_ALL_PARAMETERS}")
        if getattr(module, "_compiled_call_impl", None) is not None:
            raise SaspError(
                f"{where} was compiled in place by compile(), which would compile hooks with it; "
                "use model = torch.compile(model), and wrap what it returns"
            )
    for name, parameter in model.named_parameters():
        if _is_a(parameter, "DTensor"):
            raise SaspError(f"parameter {name} is a DTensor, as fully_shard makes them{_ALL_PARAMETERS}")


def _is_a(value: object, name: str) -> bool:
    """Whether it is of a class of this name, which takes long to load and is not in every build of PyTorch."""
    return any(known.__name__ == name for known in type(value).__mro__)


def _refuse_optimizer(optimizer: Optimizer) -> None:
    if isinstance(optimizer, DecoupledOptimizer):
        raise SaspError("this model and optimiser are wrapped already")
    if isinstance(optimizer, torch.optim.LBFGS):
        raise SaspError("LBFGS needs all gradients at once; use an optimiser that treats parameters one by one")
    if _is_a(optimizer, "ZeroRedundancyOptimizer"):
        raise SaspError(
            "ZeroRedundancyOptimizer exchanges parameters in its step, which comes layer by layer here; "
            "give the optimiser that it was made of"
        )
