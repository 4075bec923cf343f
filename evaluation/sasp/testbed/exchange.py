"""How a worker of the testbed's jobs exchanges gradients: as scripts do, or taken apart, to record it. Needs PyTorch.

Over all-reduce what SaSP is compared with is PyTorch's own: all gradients in one all-reduce after the backward pass
(``bsp``), and DistributedDataParallel, which sends while the backward pass goes on (``bsp+overlap``). Its buckets are
as large as SaSP's chunks.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.nn.utils import parameters_to_vector, vector_to_parameters

import sasp
from evaluation.sasp.emulation.events import Event
from evaluation.sasp.emulation.recorders import RecordingTransport
from evaluation.sasp.emulation.recording import Recording
from evaluation.sasp.study.training import Stepped
from evaluation.sasp.testbed.request import Ways
from sasp.core.staleness import StalenessOptions
from sasp.exchange import rules
from sasp.training.layers import find_layers
from sasp.training.options import AllReduceOptions
from sasp.training.transports.greeting import Greeting, JoinOptions
from sasp.training.transports.worker import ServerLink
from sasp.training.wrapping import all_reduce, decoupled_over_ranks, decoupled_over_server, over_all_reduce

_MEBIBYTE = 1024 * 1024


class Closable(Stepped, Protocol):
    """The optimiser of a job's worker."""

    def close(self) -> None:
        """End the exchange."""


class Exchange(NamedTuple):
    """What a worker calls and steps; ``recorded``: how late gradients were, where that is recorded."""

    model: nn.Module
    optimizer: Closable
    recorded: Callable[[], Recording] | None = None


@dataclass(frozen=True, slots=True)
class Membership:
    """A worker of a job; ``at``: the server's address, or where the first rank listens. ``patience``: in seconds."""

    rank: int
    workers: int
    at: tuple[str, int]
    scheme: str
    ways: Ways
    chunk_bytes: int
    patience: float
    token: str = ""

    @property
    def late(self) -> StalenessOptions:
        """What is done about late gradients."""
        return StalenessOptions(self.ways.prediction, self.ways.delay_compensation, self.ways.rates)


def over_server(model: nn.Module, inner: torch.optim.Optimizer, who: Membership, *, record: bool) -> Exchange:
    """Join a parameter server. Raises SaspError."""
    if not record:
        late = who.late
        return Exchange(*sasp.join(
            model, inner, server=who.at, rank=who.rank, scheme=who.scheme, token=who.token, partial=who.ways.partial,
            prediction=late.prediction, delay_compensation=late.delay_compensation, rates=late.rates,
            chunk_bytes=who.chunk_bytes, patience=who.patience,
        ))  # fmt: skip
    scheme = sasp.parse(who.scheme)
    options = JoinOptions(who.rank, scheme, who.token, who.chunk_bytes, who.patience, who.late, who.ways.partial)
    layers = find_layers(model, model.parameters())
    link = ServerLink(who.at, Greeting(options, *rules.describe(inner)), layers)
    transport = RecordingTransport(who.rank, link)

    def recorded() -> Recording:
        # What comes and goes in turn is the server's to record.
        return Recording(who.workers, who.scheme, who.chunk_bytes, (), tuple(transport.used))

    return Exchange(model, decoupled_over_server(model, inner, layers, transport, options), recorded)


def over_ranks(model: nn.Module, inner: torch.optim.Optimizer, who: Membership, *, record: bool) -> Exchange:
    """All-reduce, by PyTorch's process group. Raises SaspError."""
    scheme = sasp.parse(who.scheme)
    if scheme.sending != "sasp":
        return _plain(model, inner, who, scheme)
    layers = find_layers(model, model.parameters())
    options = AllReduceOptions(
        chunk_bytes=who.chunk_bytes, patience=who.patience, late=who.late, partial=who.ways.partial,
        halves=who.ways.halves,
    )  # fmt: skip
    if not record:
        return Exchange(*over_all_reduce(model, inner, scheme.lead, options))
    transport = RecordingTransport(who.rank, all_reduce(model, layers, scheme.lead, options))
    optimizer = decoupled_over_ranks(model, inner, layers, transport, staleness=scheme.lead, options=options)

    def recorded() -> Recording:
        return Recording(who.workers, "", who.chunk_bytes, tuple(transport.events), tuple(transport.used))

    return Exchange(model, optimizer, recorded)


def _plain(model: nn.Module, inner: torch.optim.Optimizer, who: Membership, scheme: sasp.Scheme) -> Exchange:
    """PyTorch's own exchange."""
    steps = PlainSteps(inner, who.rank)
    called = model
    if scheme.sending == "overlap":
        # Nor does SaSP exchange buffers, and these never change.
        called = DistributedDataParallel(model, broadcast_buffers=False, bucket_cap_mb=who.chunk_bytes / _MEBIBYTE)
    else:
        inner.register_step_pre_hook(lambda *_: average(model, who.workers))

    def recorded() -> Recording:
        # Nothing is late, so nothing else is to be told.
        return Recording(who.workers, "", who.chunk_bytes, tuple(steps.events), ())

    return Exchange(called, steps, recorded)


class PlainSteps:
    """An optimiser whose steps wait for all; it notes when they are made."""

    def __init__(self, inner: torch.optim.Optimizer, rank: int) -> None:
        self.events: list[Event] = []
        self._inner = inner
        self._rank = rank

    def step(self) -> None:
        """Make it, and forget the gradients."""
        self.events.append(Event("push", self._rank, 0, len(self.events) + 1, time.perf_counter()))
        self._inner.step()
        self._inner.zero_grad()

    def flush(self) -> None:
        """Nothing is in flight."""

    def close(self) -> None:
        """Nothing is open."""


def average(model: nn.Module, ranks: int) -> None:
    """Put the mean of all ranks' gradients in the place of each one's, by one all-reduce."""
    gradients = [parameter.grad for parameter in model.parameters() if parameter.grad is not None]
    flat = parameters_to_vector(gradients)
    dist.all_reduce(flat)
    vector_to_parameters(flat.div_(ranks), gradients)
