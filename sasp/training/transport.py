"""The interface of what moves gradients between workers while they compute: all-reduce, or a parameter server."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import torch

from sasp.training.layers import Layer

Piece = tuple[int, torch.Tensor]
"""By all-reduce: an iteration and a layer's averaged gradients. By a parameter server: an element's place and values.
"""


class GradientTransport(Protocol):
    """Moves gradients. Layers are numbered front first, as ``begin`` gets them; only the training thread calls it."""

    divisor: int
    """Gradients are divided by this number before they are sent."""

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

    def close(self) -> None:
        """End the transport: nothing more will be sent. It may be called again."""
