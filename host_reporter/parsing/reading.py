"""Reads a file as the agent would."""

from __future__ import annotations

import os
from pathlib import Path

from host_reporter.formats import registry
from host_reporter.formats.events import Direction
from host_reporter.formats.outputs.line_reader import Declared
from host_reporter.formats.outputs.own_pattern import check, pattern_reader
from host_reporter.readers.auto import Wish, auto_source
from host_reporter.readers.location import Location
from host_reporter.readers.log_source import Source
from host_reporter.readers.sources.newest import newest
from host_reporter.readers.tail import Tail
from host_reporter.readers.whole import Whole, read_whole


def obstacle(path: Path) -> str | None:
    """Returns why a path cannot be read; None where it can."""
    try:
        found = newest(path)
        if found is None:
            return "there is no such file"
        if not found.is_file() and not found.is_dir():
            return "it is no ordinary file, and no folder"
        if not os.access(found, os.R_OK):
            return "it may not be read by you"
    except (OSError, ValueError) as error:
        return str(error)
    return None


def read(path: Path, name: str, pattern: str | None, metric: str | None, direction: Direction | None) -> Whole:
    """Returns what is read. Raises FormatError and PatternError for what cannot be used."""
    declared = Declared(metric, direction)
    if pattern is not None:
        check(pattern, None)
        return read_whole(Source(Tail(newest(path) or path), pattern_reader(pattern, declared)))
    matcher = registry.of_name(name) if name != registry.AUTO else None
    return read_whole(auto_source(Location(path.absolute(), str(path)), Wish(matcher, declared)))
