"""Progress out of bytes: what other rooms take of it."""

from __future__ import annotations

from host_reporter.formats.events import (
    MAX_ITERATION,
    MAX_METRIC,
    MAX_TIME,
    Described,
    Diverged,
    Ended,
    Event,
    Point,
    Staged,
    Targeted,
)
from host_reporter.formats.local import without_names
from host_reporter.formats.matching import MAX_MATCHED, PatternError
from host_reporter.formats.outputs.progress_lines import RECORD_KEYS
from host_reporter.formats.outputs.progress_lines import progress_event as json_parser
from host_reporter.formats.preset import GROUPS
from host_reporter.readers.lines import MAX_LINE_BYTES, Lines

__all__ = [
    "GROUPS",
    "MAX_ITERATION",
    "MAX_LINE_BYTES",
    "MAX_MATCHED",
    "MAX_METRIC",
    "MAX_TIME",
    "RECORD_KEYS",
    "Described",
    "Diverged",
    "Ended",
    "Event",
    "Lines",
    "PatternError",
    "Point",
    "Staged",
    "Targeted",
    "json_parser",
    "without_names",
]
