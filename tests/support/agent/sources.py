"""Reads a source of progress to its end, as the follower does."""

from __future__ import annotations

from pathlib import Path

from host_reporter.formats.events import Event, Point
from host_reporter.readers.location import Location
from host_reporter.readers.log_source import ProgressSource
from host_reporter.readers.match_limit import MatchLimit

LIMIT = MatchLimit()


def at(path: Path, **values: object) -> Location:
    return Location(path, str(path), **values)  # type: ignore[arg-type]


def events(source: ProgressSource, *, rest: bool = True) -> list[Event]:
    """All that can be read now."""
    found: list[Event] = []
    idle = 0
    while idle < 3:
        new, more = source.poll(LIMIT)
        found += new
        idle = 0 if new or more else idle + 1
    return found + (source.rest(LIMIT) if rest else [])


def points(source: ProgressSource, *, rest: bool = True) -> list[tuple[float, float | None]]:
    return [(e.iteration, e.metric) for e in events(source, rest=rest) if isinstance(e, Point)]
