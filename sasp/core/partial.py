"""Which layers' gradients may be late: only those whose transfer does not fit beside the computing. Pure.

[known] Partial staleness, SAPipe, Y. Chen et al., NeurIPS 2022: gradients are late only where communication could not
be hidden otherwise. [ours] How the layers are chosen. A gradient of a front layer is the last to be ready and the first
to be needed, so front layers are made late first: the fewest with which an iteration takes about as long as with all
late. The time of an iteration follows from a recursion over computing and one serial network, which serves what is due
first, and answers after a latency. The latency, which stands for slower workers too, is what explains a measured time.
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappop, heappush
from typing import NamedTuple

GAIN = 0.05
"""Staleness must take this share from the time of an iteration, or nothing is late."""

SLACK = 0.02
"""An iteration may take this share longer than with all layers late."""

_ITERATIONS = 16
_SETTLED = 4
"""The recursion goes through so many iterations; the time of one is the mean of those after the first few."""

_HALVINGS = 12
"""The latency is found to a share of 1/4096 of an iteration."""


class LayerTimes(NamedTuple):
    """Seconds into an iteration, without waiting, at which a layer is needed, and at which its gradients are ready.

    ``seconds``: what their transfer takes alone on the network.
    """

    needed: float
    ready: float
    seconds: float


class Times(NamedTuple):
    """An iteration of ``computing`` seconds without waiting, its layers, front first, and the network's latency (s)."""

    computing: float
    layers: tuple[LayerTimes, ...]
    latency: float = 0.0


def choose_leads(times: Times, most: int) -> tuple[int, ...]:
    """Return how many iterations each layer may be late, front first; none is later than ``most``."""
    leads = (0,) * len(times.layers)
    now = iteration_seconds(times, leads)
    for staleness in range(1, most + 1):
        all_late = iteration_seconds(times, (staleness,) * len(leads))
        if all_late > (1 - GAIN) * now:
            break
        leads = _fewest(times, leads, staleness, (1 + SLACK) * all_late)
        now = iteration_seconds(times, leads)
    return leads


def explained(times: Times, leads: Sequence[int], seconds: float) -> Times:
    """Return the times with the latency with which an iteration takes ``seconds`` under ``leads``, as was measured."""
    low, high = 0.0, seconds
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if iteration_seconds(times._replace(latency=middle), leads) < seconds:
            low = middle
        else:
            high = middle
    return times._replace(latency=low)


def _fewest(times: Times, leads: tuple[int, ...], staleness: int, seconds: float) -> tuple[int, ...]:
    """The leads with the fewest front layers late by ``staleness`` that keep an iteration within ``seconds``."""
    low, high = 1, len(leads)
    while low < high:
        middle = (low + high) // 2
        if iteration_seconds(times, (staleness,) * middle + leads[middle:]) <= seconds:
            high = middle
        else:
            low = middle + 1
    return (staleness,) * low + leads[low:]


def iteration_seconds(times: Times, leads: Sequence[int]) -> float:
    """Return the time of an iteration once it has settled, in seconds.

    A layer begins in iteration i when its transfer of iteration i - 1 - lead is done. Backward passes wait for nothing.
    """
    layers, network, now, settled = times.layers, _Network(times.latency), 0.0, 0.0
    for iteration in range(1, _ITERATIONS + 1):
        begin = now
        for number, layer in enumerate(layers):
            before = iteration - 1 - leads[number]
            if before >= 1:
                # Waiting puts all that follows off.
                begin = max(begin, network.done(number, before) - layer.needed)
        for number, layer in enumerate(layers):
            network.send(begin + layer.ready, iteration + leads[number], iteration, number, layer.seconds)
        now = begin + times.computing
        if iteration == _SETTLED:
            settled = now
    return (now - settled) / (_ITERATIONS - _SETTLED)


class _Network:
    """One transfer after the other: what is due first, of that the oldest iteration, of that the front layer."""

    def __init__(self, latency: float) -> None:
        self._latency = latency
        self._now = 0.0
        self._coming: list[tuple[float, int, int, int, float]] = []
        self._waiting: list[tuple[int, int, int, float]] = []
        self._done: dict[tuple[int, int], float] = {}

    def send(self, at: float, due: int, iteration: int, layer: int, seconds: float) -> None:
        """A transfer is there from ``at`` on."""
        heappush(self._coming, (at, due, iteration, layer, seconds))

    def done(self, layer: int, iteration: int) -> float:
        """Return when a transfer ends that was sent; nothing comes meanwhile that was not sent yet."""
        while (layer, iteration) not in self._done:
            self._serve()
        return self._done[layer, iteration]

    def _serve(self) -> None:
        """Go on to the next end of a transfer, or to the next that comes, which may go before the one being served."""
        if not self._waiting:
            self._now = max(self._now, self._coming[0][0])
        while self._coming and self._coming[0][0] <= self._now:
            heappush(self._waiting, heappop(self._coming)[1:])
        due, iteration, layer, left = heappop(self._waiting)
        next_comes = self._coming[0][0] if self._coming else float("inf")
        if self._now + left <= next_comes:
            self._now += left
            self._done[layer, iteration] = self._now + self._latency
        else:
            heappush(self._waiting, (due, iteration, layer, left - (next_comes - self._now)))
            self._now = next_comes
