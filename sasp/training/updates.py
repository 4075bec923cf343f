"""The interface of what puts gradients, or parameters, that have come into a layer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import torch

from sasp.training.layers import Layer
from sasp.training.transports.transport import Piece


class Updates(Protocol):
    """Only the training thread calls it. Iterations count from 1."""

    def note(self, iteration: int, leads: Sequence[tuple[Layer, int]] = ()) -> None:
        """The optimiser's options, as they are now, are those of ``iteration``; so are the layers' leads."""

    def forget(self, before: int) -> None:
        """All layers are synchronised for the iterations before this one."""

    def own(self, layer: Layer, iteration: int, flat: torch.Tensor) -> None:
        """This worker's own gradients of ``iteration`` are about to be sent."""

    def absorb(self, layer: Layer, pieces: Sequence[Piece]) -> None:
        """Put what has come into the layer's parameters, which are then those of the last iteration that has come."""

    def look_ahead(self, layer: Layer, pending: range) -> None:
        """The layer computes next, and lacks the iterations ``pending``; none are an empty range."""

    def before_load(self) -> None:
        """Somebody is about to load other parameters into the model. Raises SaspError where they would be lost."""
