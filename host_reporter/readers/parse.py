"""Progress out of bytes: lines of a training log, or JSON lines. Pure: bytes in, points out; no file, no clock."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime

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
from host_reporter.formats.matching import MAX_MATCHED, PatternError

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
    "LineParser",
    "Lines",
    "PatternError",
    "Point",
    "Staged",
    "Targeted",
    "json_parser",
    "log_parser",
]

MAX_LINE_BYTES = 64 * 1024
GROUPS: Mapping[str, str] = {
    "iteration": "How many iterations are done. Required.",
    "metric": "The value of the metric.",
    "loss": "The loss. It is the metric of a pattern without the group metric.",
    "time": "When: seconds since the Unix epoch, or a date as in ISO 8601, which is local time unless it names a zone. "
    "Without it the time at which the agent reads the line counts.",
}
"""Names the groups that a pattern may have, with their meaning."""

RECORD_KEYS: Mapping[str, str] = {
    "iteration": "How many iterations are done. Such a line is a point of progress.",
    "metric": "The value of the metric, beside iteration. "
    "A value that is no finite number says that the job has diverged.",
    "loss": "The loss, beside iteration. It is the metric of a line without the key metric.",
    "time": "When, beside iteration: seconds since the Unix epoch, or a date as in ISO 8601. "
    "Without it the time at which the agent reads the line counts.",
    "stage": "The stage of the study that the job is in from now on, in a line without iteration; null: in none.",
    "until": "The iteration at which the stage ends, beside stage.",
    "target": "The value of the metric that the user calls done, in a line without iteration; null: none. "
    "The target in the spec of the job file counts before it.",
    "diverged": "true: the metric or the loss of the run is no finite number. It may stand beside iteration.",
    "ended": "true: the job has ended.",
}
"""Names the keys that a JSON line may have, with their meaning."""

_STAGE = re.compile(r"[A-Za-z0-9._-]{1,62}")


LineParser = Callable[[str], Event | None]


def log_parser(pattern: str, end_pattern: str | None = None) -> LineParser:
    """A parser of log lines by a regular expression with named groups.

    ``iteration`` is required; ``metric``, ``time`` (seconds since the epoch, or a date as in ISO 8601, local unless it
    says its zone) and ``loss`` are read where they are. The loss is the metric of a pattern without ``metric``.
    A line that ``end_pattern`` matches ends the job. Of a line both see MAX_MATCHED characters. Raises PatternError.
    """
    progress = _compiled("pattern", pattern)
    if "iteration" not in progress.groupindex:
        raise PatternError("pattern: it needs a named group for the iteration, as in (?P<iteration>\\d+)")
    if unknown := sorted(set(progress.groupindex) - set(GROUPS)):
        raise PatternError(f"pattern: unknown groups {', '.join(unknown)}; there are {', '.join(GROUPS)}")
    end = _compiled("end_pattern", end_pattern) if end_pattern is not None else None
    metric = "metric" if "metric" in progress.groupindex else "loss"

    def parse(line: str) -> Event | None:
        if end is not None and end.search(line, 0, MAX_MATCHED):
            return Ended()
        match = progress.search(line, 0, MAX_MATCHED)
        if match is None:
            return None
        groups = match.groupdict()
        return _point(groups["iteration"], groups.get(metric), groups.get("time"))

    return parse


def json_parser(line: str) -> Event | None:
    """A parser of progress files; each line is an object with some of RECORD_KEYS.

    ``{"iteration": .., "metric": .., "time": .., "diverged": ..}``, ``{"stage": .., "until": ..}``, ``{"target": ..}``,
    ``{"diverged": true}`` or ``{"ended": true}``.
    """
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(record, dict):
        return None
    if record.get("ended") is True:
        return Ended()
    return _measurement(record) if "iteration" in record else _declaration(record)


class Lines:
    """Cuts a stream of bytes into lines, however it was split; keeps what is not a whole line yet.

    Lines end with a newline or (progress bars) a carriage return. One longer than 64 KiB is dropped whole.
    """

    def __init__(self) -> None:
        self._rest = b""
        self._skipping = False

    def feed(self, data: bytes) -> Iterator[str]:
        """The whole lines that ``data`` completes, without their ends; undecodable bytes are replaced."""
        parts = (self._rest + data).replace(b"\r", b"\n").split(b"\n")
        rest = parts.pop()
        lines = []
        for part in parts:
            if not self._skipping and part and len(part) <= MAX_LINE_BYTES:
                lines.append(part)
            self._skipping = False
        if self._skipping or len(rest) > MAX_LINE_BYTES:
            rest, self._skipping = b"", True
        self._rest = rest
        return (line.decode(errors="replace") for line in lines)

    def reset(self) -> None:
        """Forget the unfinished line: the file began anew."""
        self._rest, self._skipping = b"", False


def _compiled(field: str, pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        raise PatternError(f"{field}: {error} in {pattern[:200]!r}") from error


def _point(iteration: object, metric: object, time: object) -> Point | None:
    done = _number(iteration)
    if done is None or not 0 <= done <= MAX_ITERATION:
        return None
    measured = _number(metric)
    if measured is not None and abs(measured) > MAX_METRIC:
        measured = None
    return Point(done, measured, _time(time))


def _staged(stage: object, until: object) -> Staged | None:
    end = _number(until)
    if stage is None:
        return Staged(None)
    if not isinstance(stage, str) or not _STAGE.fullmatch(stage):
        return None
    return Staged(stage, end if end is not None and 0 < end <= MAX_ITERATION else None)


def _measurement(record: Mapping[str, object]) -> Point | None:
    metric = record.get("metric", record.get("loss"))
    point = _point(record["iteration"], metric, record.get("time"))
    has_diverged = record.get("diverged") is True or _is_not_finite(metric)
    return replace(point, diverged=True) if point is not None and has_diverged else point


def _declaration(record: Mapping[str, object]) -> Staged | Targeted | Diverged | None:
    if "stage" in record:
        return _staged(record["stage"], record.get("until"))
    if "target" in record:
        return _targeted(record["target"])
    return Diverged() if record.get("diverged") is True else None


def _targeted(target: object) -> Targeted | None:
    if target is None:
        return Targeted(None)
    value = _number(target)
    return Targeted(value) if value is not None and abs(value) <= MAX_METRIC else None


def _is_not_finite(value: object) -> bool:
    """Returns whether a value is a number, or the text of one, that is not finite."""
    if isinstance(value, bool) or not isinstance(value, (str, float)):
        return False
    try:
        return not math.isfinite(float(value))
    except ValueError:
        return False


def _number(value: object) -> float | None:
    """A finite number, or None; a bool is not one."""
    if value is None or isinstance(value, bool) or not isinstance(value, (str, int, float)):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _time(value: object) -> float | None:
    """Seconds since the epoch out of a number or a date; None where it is neither."""
    seconds = _number(value)
    if seconds is None and isinstance(value, str):
        try:
            seconds = datetime.fromisoformat(value.strip()).timestamp()
        except (ValueError, OverflowError, OSError):
            return None
    return seconds if seconds is not None and 0 <= seconds <= MAX_TIME else None
