"""Chooses, while a job trains, which layers' gradients may be late, from the times that it measures.

At first nothing is late. A few iterations are measured, then the workers choose, and train on with that. Once in a
while they measure and choose again, because networks and neighbours change.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Protocol

from sasp.core.in_flight import InFlight
from sasp.core.partial import LayerTimes, Times, choose_leads, explained
from sasp.core.stopwatch import Measured, Stopwatch

WARM_UP = 4
"""So many iterations are not measured: memory and connections are new, or what was late comes in."""

MEASURED = 16
"""So many iterations are measured."""

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

    def after(self, iteration: int, now: float) -> tuple[int, ...] | None:
        """Return by how many iterations layers may be late from here on; None: as before. Raises SaspError."""
        self.stopwatch.end(now)
        place = iteration % AGAIN
        if place == 0 and iteration:
            return (0,) * len(self._sizes)
        if place == WARM_UP:
            self.stopwatch.begin(now)
            self._meeting.in_flight.look(now)
        if place == WARM_UP + MEASURED and self.stopwatch.iterations == MEASURED:
            return self._choose(now)
        return None

    def _choose(self, now: float) -> tuple[int, ...]:
        carried = self._meeting.in_flight.look(now)
        measured = self.stopwatch.measured()
        self.stopwatch.stop()
        # The slowest worker's times, but the shortest in flight: that of others holds their waiting for the slowest.
        numbers = (*measured.needed, *measured.ready, measured.computing, measured.iteration, -carried.seconds)
        agreed = self._meeting.largest(numbers)
        times, iteration = self._times(agreed, carried.size)
        nothing_late = (0,) * len(self._sizes)
        leads = choose_leads(explained(times, nothing_late, iteration), self._most)
        leads = tuple(self._meeting.first_ones(leads))
        log.info("%s", said(leads, measured))
        return leads

    def _times(self, agreed: Sequence[float], carried: int) -> tuple[Times, float]:
        count = len(self._sizes)
        needed, ready = agreed[:count], agreed[count : 2 * count]
        computing, iteration, in_flight = agreed[2 * count], agreed[2 * count + 1], -agreed[2 * count + 2]
        second_a_byte = max(0.0, in_flight) / max(1, carried)
        layers = tuple(
            LayerTimes(n, r, size * second_a_byte) for n, r, size in zip(needed, ready, self._sizes, strict=True)
        )
        return Times(computing, layers), iteration


def said(leads: Sequence[int], measured: Measured) -> str:
    """Return the choice as a line for people."""
    late = sum(lead > 0 for lead in leads)
    waited = max(0.0, 1 - measured.computing / measured.iteration) if measured.iteration else 0.0
    which = "no layer's gradients are late" if not late else f"gradients of {late} of {len(leads)} layers may be late"
    return f"{which}; without that {waited:.0%} of an iteration was waiting"
