"""Real training by a mapping: each plan by what PyTorch has for it. Needs PyTorch, and a process group of all ranks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from functools import partial

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch.nn.parallel import DistributedDataParallel
from torch.utils.checkpoint import checkpoint

from deepprophet.graph.patterns import matches
from deepprophet.graph.subject import Subject, optimiser, total
from deepprophet.predict.mapping import MappingSpec, Pipeline, Sharding, TensorParallel

CPU = torch.device("cpu")
SCHEDULES = {"1f1b": Schedule1F1B, "gpipe": ScheduleGPipe}


def iteration_of(given: Subject, spec: MappingSpec, rank: int = 0, world: int = 1) -> Callable[[], None]:
    """Returns one training iteration of a rank, to be called again and again.

    The model is the subject's own and is changed. Of a ``tensor`` or ``pipeline`` mapping, the ranks hold it once.
    """
    model = given.model.train()
    for module in _named(model, spec.checkpoint):
        module.forward = partial(checkpoint, module.forward, use_reentrant=False)
    if spec.pipeline is not None:
        return _pipelined(given, spec.pipeline, rank, world)
    if spec.fsdp is not None:
        _shard(model, spec.fsdp, world)
    elif spec.tensor is not None:
        _cut(model, spec.tensor)
    elif world > 1:
        return _added_up(given, spec.accumulate, DistributedDataParallel(model))
    return _added_up(given, spec.accumulate, model)


def _named(model: nn.Module, patterns: Sequence[str]) -> list[nn.Module]:
    return [module for name, module in model.named_modules() if name and matches(name, patterns)]


def _added_up(given: Subject, batches: int, model: nn.Module) -> Callable[[], None]:
    """Returns an iteration that adds up the gradients of so many batches, which are exchanged with the last one's."""
    batch = given.batch
    step = optimiser("sgd", list(model.parameters()))

    def run() -> None:
        model.zero_grad(set_to_none=True)
        for number in range(batches):
            is_kept = isinstance(model, DistributedDataParallel) and number < batches - 1
            with model.no_sync() if is_kept else nullcontext():
                total(model(*batch.arguments, **batch.options), batch, given.loss).backward()
        if step is not None:
            step.step()

    return run


def _shard(model: nn.Module, sharding: Sharding, world: int) -> None:
    mesh = init_device_mesh("cpu", (world,))
    for module in _named(model, sharding.units):
        fully_shard(module, mesh=mesh, reshard_after_forward=sharding.reshard_after_forward)
    fully_shard(model, mesh=mesh)


def _cut(model: nn.Module, tensor: TensorParallel) -> None:
    styles = {
        name: ColwiseParallel() if matches(name, tensor.columns) else RowwiseParallel()
        for name, _ in model.named_modules()
        if name and matches(name, (*tensor.columns, *tensor.rows))
    }
    parallelize_module(model, init_device_mesh("cpu", (tensor.ranks,)), styles)


def _pipelined(given: Subject, pipeline: Pipeline, rank: int, world: int) -> Callable[[], None]:
    """Returns an iteration of a stage. The model must be a chain of the modules that the stages name."""
    parts = [_named(given.model, patterns) for patterns in pipeline.stages]
    if _count(part for stage in parts for part in stage) != _count([given.model]):
        raise ValueError("the stages do not have all of the model's parameters")
    own = nn.Sequential(*parts[rank])
    examples, labels = (torch.cat([tensor] * pipeline.micro_batches) for tensor in given.batch.whole)

    def loss(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return total(output, given.batch, lambda output, _: given.loss(output, (target,)) if given.loss else output)

    stage = PipelineStage(own, rank, world, CPU, group=dist.group.WORLD)
    schedule = SCHEDULES[pipeline.schedule](stage, pipeline.micro_batches, loss_fn=loss)
    step = optimiser("sgd", list(own.parameters()))

    def run() -> None:
        own.zero_grad(set_to_none=True)
        schedule.step(*([examples] if rank == 0 else []), **({"target": labels} if rank == world - 1 else {}))
        if step is not None:
            step.step()

    return run


def _count(modules: Iterable[nn.Module]) -> int:
    return sum(parameter.numel() for module in modules for parameter in module.parameters())
