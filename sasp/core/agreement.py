"""The same order on every rank of an all-reduce, although their backward passes reach a layer at different times. Pure.

A collective needs all ranks, and in the same order. So ranks agree in rounds: each reports how many iterations of every
layer it has ready, the minimum over ranks is what all have, and each rank, from the same numbers, picks the same next
chunks: what is due first, of that the oldest iteration, in it the front layer. After these there is a round again, so a
front layer that has become ready meanwhile goes before what is left of a back layer. Where nothing is left of the last
round, a rank begins one only when it has enough news, or has computed an iteration to its end: small layers wait for
each other, so rounds do not cost more than what they are about.
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappop, heappush

from sasp.core.chunks import Layout
from sasp.core.leads import Leads


class Agreement:
    """One rank's part of the agreement: the same numbers give the same chunks on all ranks."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._ready = [0] * len(layout.sizes)
        self._agreed = [0] * len(layout.sizes)
        self._unsent: list[tuple[int, int, int]] = []
        self._due: dict[tuple[int, int], int] = {}
        self._leads = Leads(len(layout.sizes), 0)

    def set_leads(self, leads: Sequence[int], since: int) -> None:
        """Let layers be late by ``leads`` from iteration ``since`` on, of which this rank has nothing ready yet.

        All ranks must set the same. Raises SaspError.
        """
        self._leads.change(leads, since)

    @property
    def ready(self) -> tuple[int, ...]:
        """The number of iterations that this rank has ready, by layer: what it sends in a round."""
        return tuple(self._ready)

    def ready_now(self, layer: int) -> int:
        """Note that this rank has one more iteration of ``layer`` ready; return its number."""
        iteration = self._ready[layer] = self._ready[layer] + 1
        # Leads may change before all ranks have it ready, at another moment on each; those of now are the same on all.
        self._due[layer, iteration] = self._leads.due(layer, iteration)
        return iteration

    @property
    def has_unsent(self) -> bool:
        """Whether a chunk is agreed on and not sent yet; the answer is the same on all ranks."""
        return bool(self._unsent)

    def has_news_of(self, elements: int) -> bool:
        """Whether so much is ready here, and not agreed on, that a round is worth it.

        All layers of an iteration are: none of them is followed by more before the next iteration.
        """
        if len(set(self._ready)) == 1:
            return self._ready != self._agreed
        counted = zip(self._layout.sizes, self._ready, self._agreed, strict=True)
        return sum(size * (ready - agreed) for size, ready, agreed in counted) >= elements

    def learn(self, minimum: Sequence[int]) -> None:
        """Take over the result of a round: the minimum over ranks of the ready iterations, by layer."""
        for layer, count in enumerate(minimum):
            for iteration in range(self._agreed[layer] + 1, count + 1):
                due = self._due.pop((layer, iteration))
                for chunk in self._layout.of(layer):
                    heappush(self._unsent, (due, iteration, chunk))
            self._agreed[layer] = max(self._agreed[layer], count)

    def dequeue(self, elements: int) -> list[tuple[int, int]]:
        """Remove and return the iterations and chunks to send now, in this order, until they have ``elements`` or more.

        Empty where nothing is agreed on.
        """
        taken: list[tuple[int, int]] = []
        while self._unsent and elements > 0:
            _due, iteration, number = heappop(self._unsent)
            chunk = self._layout.chunks[number]
            elements -= chunk.stop - chunk.start
            taken.append((iteration, number))
        return taken
