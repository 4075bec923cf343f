"""Chooses, while a job trains, which layers' gradients may be late, from the times that it measures.

At first nothing is late. A few iterations are measured, from which the workers guess which layers must be late. Then
they try: a few iterations each with all layers late, with the guess, and with more front layers if that is too slow.
Once in a while they choose again, because networks and neighbours change.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Protocol

from sasp.core.in_flight import InFlight
from sasp.core.lead_search import LeadSearch
from sasp.core.partial import GAIN, LayerTimes, Times, choose_leads, explained
from sasp.core.stopwatch import Stopwatch

WARM_UP = 4
"""So many iterations are not measured: memory and connections are new, or what was late comes in."""

MEASURED = 16
"""So many iterations are measured with nothing late."""

TRIED = 8
"""So many iterations are measured of each try."""

AGAIN = 1024
"""After so many iterations layers are chosen again."""

log = logging.getLogger("sasp")


class Meeting(Protocol):
    """What a choice needs of a transport."""

    in_flight: InFlight

    def largest(self, numbers: Sequence[float]) -> list[float]:
        """Return the largest of all workers that must choose alike, number by number. Raises SaspError."""

    def first_ones(self, numbers: Sequence[int]) -> list[int]:
        """Return those of the first of all workers that must choose alike. Raises SaspError."""


class PartialStaleness:
    """The choices of one worker. No layer is later than ``most``. ``sizes``: the layers' elements, front first."""

    def __init__(self, most: int, sizes: Sequence[int], meeting: Meeting) -> None:
        self._most = most
        self._sizes = tuple(sizes)
        self._meeting = meeting
        self.stopwatch = Stopwatch(len(sizes))
        self._search: LeadSearch | None = None
        self._waited = 0.0
        self._begin_at, self._end_at = WARM_UP, WARM_UP + MEASURED

    def after(self, iteration: int, now: float) -> tuple[int, ...] | None:
        """Return by how many iterations layers may be late from here on; None: as before. Raises SaspError."""
        self.stopwatch.end(now)
        place = iteration % AGAIN
        if place == 0 and iteration:
            self._search = None
            self._begin_at, self._end_at = WARM_UP, WARM_UP + MEASURED
            return (0,) * len(self._sizes)
        if place == self._begin_at:
            self.stopwatch.begin(now)
            self._meeting.in_flight.look(now)
        if place == self._end_at and self.stopwatch.iterations == self._end_at - self._begin_at:
            leads = self._guess(now) if self._search is None else self._try(self._search)
            self.stopwatch.stop()
            if self._search is None or self._search.is_over:
                log.info("%s", said(leads, self._waited))
            else:
                self._begin_at, self._end_at = place + WARM_UP, place + WARM_UP + TRIED
            return leads
        return None

    def _guess(self, now: float) -> tuple[int, ...]:
        """Return what to try first, with the search for what follows; or that nothing is late, without a search."""
        carried = self._meeting.in_flight.look(now)
        measured = self.stopwatch.measured()
        # The slowest worker's times, but the shortest in flight: that of others holds their waiting for the slowest.
        numbers = (*measured.needed, *measured.ready, measured.computing, measured.iteration, -carried.seconds)
        times, iteration = self._times(self._meeting.largest(numbers), carried.size)
        self._waited = max(0.0, 1 - measured.computing / measured.iteration) if measured.iteration else 0.0
        nothing_late = (0,) * len(self._sizes)
        guess = nothing_late
        if times.computing < (1 - GAIN) * iteration:
            guess = choose_leads(explained(times, nothing_late, iteration), self._most)
        guess = tuple(self._meeting.first_ones(guess))
        if guess == nothing_late:
            return guess
        self._search = LeadSearch(guess, iteration)
        return self._search.leads

    def _try(self, search: LeadSearch) -> tuple[int, ...]:
        """Tell the search how long an iteration takes now; return what to try next, or the choice."""
        [seconds] = self._meeting.largest([self.stopwatch.pace(self._most + 1)])
        search.note(seconds)
        return search.leads

    def _times(self, agreed: Sequence[float], carried: int) -> tuple[Times, float]:
        count = len(self._sizes)
        needed, ready = agreed[:count], agreed[count : 2 * count]
        computing, iteration, in_flight = agreed[2 * count], agreed[2 * count + 1], -agreed[2 * count + 2]
        second_a_byte = max(0.0, in_flight) / max(1, carried)
        layers = tuple(
            LayerTimes(n, r, size * second_a_byte) for n, r, size in zip(needed, ready, self._sizes, strict=True)
        )
        return Times(computing, layers), iteration


def said(leads: Sequence[int], waited: float) -> str:
    """Return the choice as a line for people; ``waited``: the share of an iteration, with nothing late."""
    late = sum(lead > 0 for lead in leads)
    which = "no layer's gradients are late" if not late else f"gradients of {late} of {len(leads)} layers may be late"
    return f"{which}; without that {waited:.0%} of an iteration was waiting"
