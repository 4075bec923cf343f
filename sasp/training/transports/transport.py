"""The interface of what moves gradients between workers while they compute: all-reduce, or a parameter server."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import torch

from sasp.core.in_flight import InFlight
from sasp.training.layers import Layer


class Piece(NamedTuple):
    """What has come for a layer. By all-reduce: the averaged gradients of ``iteration``, whole.

    By a parameter server: parameters from element ``start`` on, as they are after ``iteration`` of this worker.
    """

    iteration: int
    start: int
    values: torch.Tensor


class GradientTransport(Protocol):
    """Moves gradients. Layers are numbered front first, as ``begin`` gets them; only the training thread calls it."""

    divisor: int
    """Gradients are divided by this number before they are sent."""

    in_flight: InFlight
    """What is on its way; transports keep it by ``time.perf_counter``."""

    def agree_on_order(self, order: Sequence[int]) -> tuple[int, ...]:
        """The order of layers that all workers use from here on, which is one worker's. Raises SaspError."""

    def begin(self, layers: Sequence[Layer]) -> None:
        """Start the transport, before the first gradient. Raises SaspError."""

    def send(self, layer: int, flat: torch.Tensor, rate: float) -> None:
        """Queue the gradients of the layer's next iteration, and return at once. ``rate``: the learning rate now."""

    def receive(self, layer: int, at_least: int, until: int) -> tuple[int, list[Piece]]:
        """Wait until the layer is synchronised for iteration ``at_least``.

        Return the iteration that it is synchronised for, ``until`` at most, and what has come since the last call.
        Raises SaspError.
        """

    def set_leads(self, leads: Sequence[int], since: int) -> None:
        """Let layers be late by ``leads`` from iteration ``since`` on, of which nothing was sent. Raises SaspError.

        What is due first is sent first.
        """

    def largest(self, numbers: Sequence[float]) -> list[float]:
        """Return the largest of all workers that must choose alike, number by number. Raises SaspError."""

    def first_ones(self, numbers: Sequence[int]) -> list[int]:
        """Return those of the first of all workers that must choose alike. Raises SaspError."""

    def close(self) -> None:
        """End the transport: nothing more will be sent. It may be called again."""
