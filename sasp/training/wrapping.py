"""Puts a model, an optimiser and a transport together."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.optim import Optimizer

from sasp.core.errors import SaspError
from sasp.exchange import rules
from sasp.training.allreduce import AllReduce
from sasp.training.hooks import Decoupled
from sasp.training.layers import Layer, find_layers
from sasp.training.optimizer import DecoupledOptimizer, LayerSteps, learning_rate, trained_by
from sasp.training.options import AllReduceOptions
from sasp.training.worker import Greeting, JoinOptions, ServerLink


def over_all_reduce(
    model: nn.Module, optimizer: Optimizer, staleness: int, options: AllReduceOptions
) -> tuple[nn.Module, DecoupledOptimizer]:
    """See ``sasp.wrap``."""
    _check(model, optimizer)
    if type(staleness) is not int or staleness < 0:
        raise SaspError(f"staleness is {staleness!r}; it must be a whole number of 0 or more")
    layers = find_layers(model, trained_by(optimizer))
    steps = LayerSteps(optimizer)
    transport = AllReduce(options)
    try:
        transport.check_same([staleness], "staleness")
        transport.check_same([options.chunk_bytes], "chunk_bytes")
        transport.check_same([layer.elements for layer in layers], "layers")
        transport.share([*model.parameters(), *model.buffers()])
    except BaseException:
        transport.close()
        raise
    decoupled = Decoupled(
        model,
        layers,
        transport,
        steps.apply,
        lead=staleness,
        sending="sasp",
        learning_rate=lambda: learning_rate(optimizer),
    )
    return model, DecoupledOptimizer(optimizer, decoupled, steps)


def over_server(
    model: nn.Module, optimizer: Optimizer, server: tuple[str, int], who: JoinOptions
) -> tuple[nn.Module, DecoupledOptimizer]:
    """See ``sasp.join``."""
    _check(model, optimizer)
    layers = find_layers(model, trained_by(optimizer))
    greeting = Greeting(who, *rules.describe(optimizer))
    decoupled = Decoupled(
        model,
        layers,
        ServerLink(server, greeting, layers),
        _copy_in,
        lead=who.scheme.lead,
        sending=who.scheme.sending,
        learning_rate=lambda: learning_rate(optimizer),
    )
    return model, DecoupledOptimizer(optimizer, decoupled, None)


def _copy_in(layer: Layer, pieces: Any) -> None:
    layer.set_parameters(pieces)


def _check(model: nn.Module, optimizer: Optimizer) -> None:
    if isinstance(optimizer, DecoupledOptimizer):
        raise SaspError("this model and optimiser are wrapped already")
    if isinstance(model, (nn.parallel.DistributedDataParallel, nn.DataParallel)):
        raise SaspError(f"the model is wrapped in {type(model).__name__}; give the bare model, this takes its place")
    if isinstance(model, torch.jit.ScriptModule):
        raise SaspError("the model is compiled by TorchScript, which calls no hooks; give the model before that")
