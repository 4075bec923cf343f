"""What the agent would read from a file or folder as it is now, for ``trainyard parse`` and ``host-reporter check``."""

from __future__ import annotations

import time
from dataclasses import dataclass

from host_reporter.formats.events import Described, Ended, Event, Point
from host_reporter.readers.log_source import ProgressSource
from host_reporter.readers.match_limit import MatchLimit

MAX_POINTS = 1_000_000
"""Read at most so many points."""

IDLE_POLLS = 3
"""All was read when so many polls in a row give nothing: a source turns to its next file by one of them."""


@dataclass(frozen=True)
class Whole:
    """What was read. ``runs`` are the points of each run; ``problem`` is what the agent would say of it."""

    described: Described
    runs: tuple[tuple[Point, ...], ...]
    ended: bool
    matched: int
    unmatched: int
    samples: tuple[str, ...]
    problem: str | None

    @property
    def points(self) -> int:
        """How many points all runs have."""
        return sum(map(len, self.runs))


def read_whole(source: ProgressSource, *, seconds: float = float("inf")) -> Whole:
    """Reads a source to its end, or for about ``seconds``, and closes it."""
    limit = MatchLimit()
    until = time.monotonic() + seconds
    events: list[Event] = []
    try:
        source.aim()
        idle = 0
        while _goes_on(source, len(events), idle) and time.monotonic() < until:
            found, more = source.poll(limit)
            events += found
            idle = 0 if more or found else idle + 1
        events += source.rest(limit)
        return _whole(source, events)
    finally:
        source.close()


def _goes_on(source: ProgressSource, events: int, idle: int) -> bool:
    return idle < IDLE_POLLS and events < MAX_POINTS and not source.is_costly


def _whole(source: ProgressSource, events: list[Event]) -> Whole:
    runs: list[list[Point]] = [[]]
    described = Described()
    is_over = False
    for event in events:
        if isinstance(event, Ended):
            is_over = True
        elif isinstance(event, Described):
            described = event
        elif isinstance(event, Point):
            if is_over and runs[-1]:
                runs.append([])
            is_over = False
            runs[-1].append(event)
    return Whole(
        described,
        # A metric may come later than those of later iterations.
        tuple(tuple(sorted(run, key=lambda point: point.iteration)) for run in runs if run),
        is_over,
        source.matched,
        source.unmatched,
        source.samples,
        source.problem(final=True),
    )
