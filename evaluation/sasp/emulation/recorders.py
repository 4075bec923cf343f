"""Recorders of a real job: what its server does in turn, and what its workers compute with.

They pass every call on to the product's own store and transport. Needs PyTorch.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import torch

from evaluation.sasp.emulation.events import Event, Used
from sasp.core.scheme import Scheme
from sasp.exchange.frames import Frame
from sasp.server.store import Store
from sasp.training.layers import Layer
from sasp.training.transports.transport import GradientTransport, Piece


class RecordingStore(Store):
    """A server's store that notes the order of what comes and goes; take it in the place of the server's own."""

    def __init__(self, workers: int, scheme: Scheme) -> None:
        super().__init__(workers, scheme)
        self.events: list[Event] = []

    def push(self, rank: int, frame: Frame, body: bytearray) -> list[tuple[int, int]]:
        """Note it, and take it in."""
        self.events.append(Event("push", rank, frame.chunk, frame.iteration, time.perf_counter()))
        return super().push(rank, frame, body)

    def contents(self, number: int, rank: int, iteration: int) -> bytes:
        """Note it, and read the chunk."""
        self.events.append(Event("send", rank, number, iteration, time.perf_counter()))
        return super().contents(number, rank, iteration)


class RecordingTransport:
    """A worker's transport that notes what has come when layers compute; it stands before the real one.

    ``events``: when gradients were handed over, for a job without a server; a layer is a chunk there.
    """

    def __init__(self, worker: int, transport: GradientTransport) -> None:
        self.used: list[Used] = []
        self.events: list[Event] = []
        self._worker = worker
        self._transport = transport
        self._sent: list[int] = []
        self.divisor = transport.divisor
        self.in_flight = transport.in_flight

    def agree_on_order(self, order: Sequence[int]) -> tuple[int, ...]:
        """Passes it on."""
        return self._transport.agree_on_order(order)

    def begin(self, layers: Sequence[Layer]) -> None:
        """Count from the first iteration on."""
        self._sent = [0] * len(layers)
        self._transport.begin(layers)

    def send(self, layer: int, flat: torch.Tensor, rate: float) -> None:
        """Note it, and send it."""
        self._sent[layer] += 1
        self.events.append(Event("push", self._worker, layer, self._sent[layer], time.perf_counter()))
        self._transport.send(layer, flat, rate)

    def receive(self, layer: int, at_least: int, until: int) -> tuple[int, list[Piece]]:
        """Note what has come: the layer computes with it in its next iteration."""
        reached, pieces = self._transport.receive(layer, at_least, until)
        if self._sent:
            self.used += [
                Used(self._worker, self._sent[layer] + 1, layer, piece.start, piece.iteration) for piece in pieces
            ]
        return reached, pieces

    def set_leads(self, leads: Sequence[int], since: int) -> None:
        """Passes it on."""
        self._transport.set_leads(leads, since)

    def largest(self, numbers: Sequence[float]) -> list[float]:
        """Passes it on."""
        return self._transport.largest(numbers)

    def first_ones(self, numbers: Sequence[int]) -> list[int]:
        """Passes it on."""
        return self._transport.first_ones(numbers)

    def close(self) -> None:
        """Closes the real one."""
        self._transport.close()
