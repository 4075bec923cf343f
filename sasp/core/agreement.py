"""The same order on every rank of an all-reduce, although their backward passes reach a layer at different times. Pure.

A collective needs all ranks, and in the same order. So ranks agree in rounds: each reports how many iterations of every
layer it has ready, the minimum over ranks is what all have, and each rank, from the same numbers, picks the same next
chunk: the oldest iteration first, in it the front layer. Between two chunks there is a round, so a front layer that
has become ready meanwhile goes before what is left of a back layer. A round without anything agreed begins only when
somebody has news, so ranks that compute are not disturbed.
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappop, heappush

from sasp.core.chunks import Layout


class Agreement:
    """One rank's part of the agreement: the same numbers give the same chunks on all ranks."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._ready = [0] * len(layout.sizes)
        self._agreed = [0] * len(layout.sizes)
        self._unsent: list[tuple[int, int]] = []

    @property
    def ready(self) -> tuple[int, ...]:
        """The number of iterations that this rank has ready, by layer: what it sends in a round."""
        return tuple(self._ready)

    def ready_now(self, layer: int) -> int:
        """Note that this rank has one more iteration of ``layer`` ready; return its number."""
        self._ready[layer] += 1
        return self._ready[layer]

    @property
    def has_unsent(self) -> bool:
        """Whether a chunk is agreed on and not sent yet; the answer is the same on all ranks."""
        return bool(self._unsent)

    @property
    def has_news(self) -> bool:
        """Whether this rank has something ready that the last round did not agree on."""
        return self._ready != self._agreed

    def learn(self, minimum: Sequence[int]) -> None:
        """Take over the result of a round: the minimum over ranks of the ready iterations, by layer."""
        for layer, count in enumerate(minimum):
            for iteration in range(self._agreed[layer] + 1, count + 1):
                for chunk in self._layout.of(layer):
                    heappush(self._unsent, (iteration, chunk))
            self._agreed[layer] = max(self._agreed[layer], count)

    def dequeue(self) -> tuple[int, int] | None:
        """Remove and return the iteration and the chunk to send now; None where nothing is agreed on."""
        return heappop(self._unsent) if self._unsent else None
