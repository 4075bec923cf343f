"""Puts a model, an optimiser and a transport together."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence

import torch.distributed as dist
from torch import nn
from torch.optim import Optimizer

from sasp.core.errors import SaspError
from sasp.core.staleness import PLAIN
from sasp.exchange import rules
from sasp.training.advice import advice
from sasp.training.hooks import Decoupled
from sasp.training.layer_steps import HalfSteps, LayerSteps
from sasp.training.layers import Layer, find_layers
from sasp.training.optimizer import DecoupledOptimizer, learning_rate, trained_by
from sasp.training.options import AllReduceOptions
from sasp.training.own_steps import OwnStepsContents
from sasp.training.refusals import refuse
from sasp.training.server_contents import ServerContents
from sasp.training.transports.allreduce import AllReduce
from sasp.training.transports.greeting import Greeting, JoinOptions
from sasp.training.transports.transport import GradientTransport
from sasp.training.transports.worker import ServerLink

log = logging.getLogger("sasp")


def over_all_reduce(
    model: nn.Module, optimizer: Optimizer, staleness: int, options: AllReduceOptions
) -> tuple[nn.Module, DecoupledOptimizer]:
    """See ``sasp.wrap``."""
    refuse(model, optimizer)
    if type(staleness) is not int or staleness < 0:
        raise SaspError(f"staleness is {staleness!r}; it must be a whole number of 0 or more")
    _check_partial(options.partial, staleness)
    if options.halves and staleness != 1:
        raise SaspError(f"halves=True with a staleness of {staleness}; it needs 1: one half computes, one is in flight")
    layers = find_layers(model, trained_by(optimizer))
    transport = all_reduce(model, layers, staleness, options)
    _tell(advice(optimizer, 0 if options.halves else staleness, options.late), first=dist.get_rank(options.group) == 0)
    return model, decoupled_over_ranks(model, optimizer, layers, transport, staleness=staleness, options=options)


def all_reduce(model: nn.Module, layers: Sequence[Layer], staleness: int, options: AllReduceOptions) -> AllReduce:
    """The transport of a rank; all have the same options, and begin with the same parameters. Raises SaspError."""
    transport = AllReduce(options)
    try:
        transport.check_same([staleness], "staleness")
        transport.check_same([options.chunk_bytes], "chunk_bytes")
        transport.check_same(options.late.as_numbers(), "prediction, delay_compensation or rates")
        transport.check_same([int(options.partial)], "partial")
        transport.check_same([int(options.halves)], "halves")
        transport.check_same([layer.elements for layer in layers], "layers")
        if options.partial:
            transport.prepare_choices()
        transport.share([*model.parameters(), *model.buffers()])
    except BaseException:
        transport.close()
        raise
    return transport


def decoupled_over_ranks(
    model: nn.Module,
    optimizer: Optimizer,
    layers: Sequence[Layer],
    transport: GradientTransport,
    *,
    staleness: int,
    options: AllReduceOptions,
    clock: Callable[[], float] = time.perf_counter,
) -> DecoupledOptimizer:
    """The optimiser of a rank, over any transport of averaged gradients; ``clock`` measures it (s)."""
    # Where nothing can be late nothing has to be kept for it.
    late = options.late if staleness else PLAIN
    decoupled = Decoupled(
        model,
        layers,
        transport,
        HalfSteps(optimizer) if options.halves else LayerSteps(optimizer, late, transport.divisor, staleness),
        lead=staleness,
        sending="sasp",
        learning_rate=lambda: learning_rate(optimizer),
        # Steps that depend on what gradients were computed with need the same on all ranks.
        exact=late.corrects or options.halves,
        partial=options.partial,
        clock=clock,
    )
    return DecoupledOptimizer(optimizer, decoupled)


def over_server(
    model: nn.Module, optimizer: Optimizer, server: tuple[str, int], who: JoinOptions
) -> tuple[nn.Module, DecoupledOptimizer]:
    """See ``sasp.join``."""
    refuse(model, optimizer)
    who.late.check_server()
    _check_partial(who.partial, who.scheme.lead)
    layers = find_layers(model, trained_by(optimizer))
    _tell(advice(optimizer, who.scheme.lead, who.late), first=who.rank == 0)
    greeting = Greeting(who, *rules.describe(optimizer))
    return model, decoupled_over_server(model, optimizer, layers, ServerLink(server, greeting, layers), who)


def decoupled_over_server(
    model: nn.Module, optimizer: Optimizer, layers: Sequence[Layer], link: GradientTransport, who: JoinOptions
) -> DecoupledOptimizer:
    """The optimiser of a server's worker, over any transport of the server's parameters."""
    decoupled = Decoupled(
        model,
        layers,
        link,
        _contents(optimizer, who),
        lead=who.scheme.lead,
        sending=who.scheme.sending,
        learning_rate=lambda: learning_rate(optimizer),
        partial=who.partial,
    )
    return DecoupledOptimizer(optimizer, decoupled)


def _contents(optimizer: Optimizer, who: JoinOptions) -> ServerContents:
    def rate() -> float:
        return learning_rate(optimizer)

    if who.late.prediction == "local" and who.scheme.lead:
        return OwnStepsContents(optimizer, rate, who.scheme.lead)
    return ServerContents(rate, predicts=who.late.prediction == "momentum")


def _check_partial(partial: bool, lead: int) -> None:
    if partial and not lead:
        raise SaspError("partial=True chooses which layers may be late; it needs a staleness of 1 or more")


def _tell(line: str | None, *, first: bool) -> None:
    """One worker tells it, because all have the same optimiser."""
    if line is not None and first:
        log.warning("%s", line)
