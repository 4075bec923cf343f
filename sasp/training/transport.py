"""What moves gradients between workers while they compute: the interface of its two kinds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import torch

from sasp.training.layers import Layer

Piece = tuple[int, torch.Tensor]
"""All-reduce: an iteration, and a layer's averaged gradients. Parameter server: an element, and contents from there."""


class GradientTransport(Protocol):
    """Layers are numbered front first, as ``begin`` is given them. All calls are of the training thread."""

    divisor: int
    """By what gradients are divided before they are sent."""

    def agree_on_order(self, order: Sequence[int]) -> tuple[int, ...]:
        """The order of layers that all workers use from here on, which is one worker's. Raises SaspError."""

    def begin(self, layers: Sequence[Layer]) -> None:
        """Before the first gradient. Raises SaspError."""

    def send(self, layer: int, flat: torch.Tensor, rate: float) -> None:
        """The gradients of the layer's next iteration; returns at once. ``rate``: the learning rate now."""

    def receive(self, layer: int, at_least: int, until: int) -> tuple[int, list[Piece]]:
        """Wait until the layer is synchronised for iteration ``at_least``; then for which it is (``until`` at most),
        and what has come since the last call. Raises SaspError."""

    def close(self) -> None:
        """Nothing more will be sent. Harmless when repeated."""
