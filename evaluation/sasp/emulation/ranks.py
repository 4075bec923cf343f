"""The ranks of an all-reduce in one process: averaged gradients come as late as they are told to."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from evaluation.sasp.emulation.events import Lateness
from sasp.core.errors import SaspError
from sasp.core.in_flight import InFlight
from sasp.training.layers import Layer
from sasp.training.transports.transport import Piece


class Averages:
    """What all ranks have sent, by layer and iteration."""

    def __init__(self, ranks: int) -> None:
        self.ranks = ranks
        self._sums: dict[tuple[int, int], tuple[int, torch.Tensor]] = {}
        self._taken: dict[tuple[int, int], int] = {}

    def add(self, layer: int, iteration: int, flat: torch.Tensor) -> None:
        """A rank's gradients, divided by the ranks already."""
        count, total = self._sums.get((layer, iteration), (0, torch.zeros_like(flat)))
        self._sums[layer, iteration] = count + 1, total.add_(flat)

    def take(self, layer: int, iteration: int) -> torch.Tensor:
        """A copy, which a rank takes once. Raises SaspError where one has not sent its part."""
        count, total = self._sums.get((layer, iteration), (0, torch.empty(0)))
        if count < self.ranks:
            raise SaspError(f"layer {layer} of iteration {iteration} was sent by {count} of {self.ranks} ranks")
        taken = self._taken[layer, iteration] = self._taken.get((layer, iteration), 0) + 1
        if taken == self.ranks:
            del self._sums[layer, iteration], self._taken[layer, iteration]
        return total.clone()


class RankTransport:
    """The transport of one rank: see ``sasp.training.transports.transport.GradientTransport``."""

    def __init__(self, rank: int, averages: Averages, lateness: Lateness) -> None:
        self.divisor = averages.ranks
        self.in_flight = InFlight()
        self._rank = rank
        self._averages = averages
        self._lateness = lateness
        self._sent: list[int] = []
        self._taken: list[int] = []

    def agree_on_order(self, order: Sequence[int]) -> tuple[int, ...]:
        """All ranks have the same model."""
        return tuple(order)

    def begin(self, layers: Sequence[Layer]) -> None:
        """Count from the first iteration on."""
        self._sent = [0] * len(layers)
        self._taken = [0] * len(layers)

    def send(self, layer: int, flat: torch.Tensor, rate: float) -> None:
        """Add this rank's part."""
        del rate
        self._sent[layer] += 1
        self._averages.add(layer, self._sent[layer], flat)

    def receive(self, layer: int, at_least: int, until: int) -> tuple[int, list[Piece]]:
        """Averaged gradients, as many as are not missing."""
        if not self._sent:
            return 0, []
        iteration = self._sent[layer] + 1
        there = self._lateness.newest(self._rank, iteration, layer, 0)
        reached = max(at_least, min(there, until))
        pieces = [Piece(i, 0, self._averages.take(layer, i)) for i in range(self._taken[layer] + 1, reached + 1)]
        self._taken[layer] = max(reached, self._taken[layer])
        return self._taken[layer], pieces

    def set_leads(self, leads: Sequence[int], since: int) -> None:
        """Nothing waits here."""

    def largest(self, numbers: Sequence[float]) -> list[float]:
        """Nothing is measured here."""
        return list(numbers)

    def first_ones(self, numbers: Sequence[int]) -> list[int]:
        """Nothing is measured here."""
        return list(numbers)

    def close(self) -> None:
        """Nothing is open."""
