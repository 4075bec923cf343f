"""A parameter server and its workers in one process: the server's own store, and no network.

The order of what the server does is given; a worker computes an iteration when the first of its gradients comes in.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

import torch

from evaluation.sasp.emulation.events import Event, Lateness, taken
from sasp.core.chunks import Layout, chunk_elements
from sasp.core.errors import SaspError
from sasp.core.in_flight import InFlight
from sasp.exchange import rules
from sasp.exchange.frames import MAX_LATE, Frame, Kind
from sasp.exchange.peers import Hello
from sasp.server.store import Store
from sasp.training.layers import Layer
from sasp.training.transports.greeting import JoinOptions
from sasp.training.transports.transport import Piece
from sasp.training.transports.worker import as_bytes


class Job:
    """The server's side of one job."""

    def __init__(
        self, workers: int, who: JoinOptions, optimizer: torch.optim.Optimizer, layers: Sequence[Layer]
    ) -> None:
        """``optimizer``, ``layers``: worker 0's; ``who``: how all of them join."""
        self._who = who
        self._store = Store(workers, who.scheme)
        self._layers = layers
        dtype = str(layers[0].dtype).removeprefix("torch.")
        kind, options = rules.describe(optimizer)
        sizes = tuple(layer.elements for layer in layers)
        for rank in range(workers):
            self._store.accept_hello(Hello(rank, "", dtype, who.chunk_bytes, sizes, kind, options, who.late))
        for number, layer in enumerate(layers):
            self._store.accept_layer(number, bytearray(as_bytes(layer.flat_parameters())))
        self.order: tuple[int, ...] | None = None
        self.layout: Layout | None = None

    def begin(self, order: Sequence[int]) -> tuple[int, ...]:
        """The first worker that trains says the order of layers."""
        if self.order is None:
            self.order = tuple(order)
            self._store.begin(self.order)
            sizes = [self._layers[number].elements for number in self.order]
            width, whole = self._layers[0].dtype.itemsize, self._who.scheme.sending != "sasp"
            self.layout = Layout(sizes, chunk_elements(sizes, self._who.chunk_bytes, width, whole_layers=whole))
        return self.order

    def push(self, rank: int, frame: Frame, body: bytearray) -> None:
        """Take in a worker's gradients of a chunk."""
        self._store.push(rank, frame, body)

    def read(self, rank: int, chunk: int, iteration: int) -> torch.Tensor:
        """A chunk's parameters, as the answer to a worker's ``iteration``."""
        body = bytearray(self._store.contents(chunk, rank, iteration))
        return torch.frombuffer(body, dtype=self._layers[0].dtype)


class WorkerTransport:
    """The transport of one worker: see ``sasp.training.transports.transport.GradientTransport``."""

    def __init__(self, rank: int, job: Job, lateness: Lateness) -> None:
        self.divisor = 1
        self.in_flight = InFlight()
        self.rank = rank
        self.computed = 0
        self._job = job
        self._lateness = lateness
        self._sent: list[int] = []
        self._used: list[int] = []
        self._waiting: dict[tuple[int, int], tuple[torch.Tensor, float, int]] = {}
        self._answers: list[dict[int, torch.Tensor]] = []

    def agree_on_order(self, order: Sequence[int]) -> tuple[int, ...]:
        """The first worker's."""
        return self._job.begin(order)

    def begin(self, layers: Sequence[Layer]) -> None:
        """Count from the first iteration on."""
        assert self._job.layout is not None
        self._sent = [0] * len(layers)
        self._used = [0] * len(self._job.layout)
        self._answers = [{} for _ in self._used]

    def send(self, layer: int, flat: torch.Tensor, rate: float) -> None:
        """Let the layer's chunks wait until the server takes them in."""
        assert self._job.layout is not None
        self._sent[layer] += 1
        iteration = self.computed = self._sent[layer]
        for number in self._job.layout.of(layer):
            chunk = self._job.layout.chunks[number]
            late = min(iteration - 1 - self._used[number], MAX_LATE)
            self._waiting[number, iteration] = flat[chunk.start : chunk.stop], rate, late

    def receive(self, layer: int, at_least: int, until: int) -> tuple[int, list[Piece]]:
        """Parameters of answers, the newest that are not missing."""
        if self._job.layout is None or not self._sent:
            return 0, []
        iteration, pieces = self._sent[layer] + 1, []
        numbers = self._job.layout.of(layer)
        for number in numbers:
            start = self._job.layout.chunks[number].start
            wanted = max(at_least, min(until, self._lateness.newest(self.rank, iteration, layer, start)))
            if (piece := self._take(number, at_least, wanted)) is not None:
                pieces.append(piece)
        reached = min(self._used[number] for number in numbers)
        # Without decoupling a worker waits for answers at an iteration's end; here it has them before the next one.
        if reached < at_least and not self._waiting:
            raise SaspError(f"worker {self.rank} needs iteration {at_least} of layer {layer}, and {reached} has come")
        return reached, pieces

    def _take(self, number: int, at_least: int, wanted: int) -> Piece | None:
        """The answer for a chunk that its worker computes with from here on, if it is another one than before."""
        assert self._job.layout is not None
        answers = self._answers[number]
        version = taken(answers, self._used[number], at_least, wanted)
        if version == self._used[number]:
            return None
        self._used[number] = version
        values = answers[version]
        for older in [known for known in answers if known <= version]:
            del answers[older]
        return Piece(version, self._job.layout.chunks[number].start, values)

    def push(self, chunk: int, iteration: int) -> None:
        """The server takes in this worker's gradients of a chunk."""
        flat, rate, late = self._waiting.pop((chunk, iteration))
        body = bytearray(as_bytes(flat))
        self._job.push(self.rank, Frame(Kind.PUSH, len(body), chunk, iteration, rate, late), body)

    def answer(self, chunk: int, iteration: int) -> None:
        """The server reads a chunk to answer this worker's ``iteration``."""
        self._answers[chunk][iteration] = self._job.read(self.rank, chunk, iteration)

    def set_leads(self, leads: Sequence[int], since: int) -> None:
        """The order of sending is given."""

    def largest(self, numbers: Sequence[float]) -> list[float]:
        """Nothing is measured here."""
        return list(numbers)

    def first_ones(self, numbers: Sequence[int]) -> list[int]:
        """Nothing is measured here."""
        return list(numbers)

    def close(self) -> None:
        """Nothing is open."""


class Trainee(Protocol):
    """A worker that computes when it is told to."""

    transport: WorkerTransport

    def iterate(self) -> None:
        """One iteration: forward, backward, step."""


def play(events: Iterable[Event], workers: Sequence[Trainee]) -> None:
    """Let the server do ``events``. A worker computes an iteration when the first of its gradients is to come in."""
    for event in events:
        worker = workers[event.worker]
        if event.kind == "send":
            worker.transport.answer(event.chunk, event.iteration)
            continue
        while worker.transport.computed < event.iteration:
            worker.iterate()
        worker.transport.push(event.chunk, event.iteration)
