"""Lines inside the lines of a container's log: CRI's and Docker's. Pure, but for the parts of a line that wait.

CRI: ``2024-05-01T12:00:00.123456789Z stdout F text``; P in the place of F marks a part of a line
(https://github.com/kubernetes/design-proposals-archive/blob/main/node/kubelet-cri-logging.md). Docker:
``{"log":"text\\n","stream":"stdout","time":"..."}``; a part of a line has no newline
(https://docs.docker.com/engine/logging/drivers/json-file/).

A bar of progress may have no newline for hours, only carriage returns. So the states of a bar that are whole in a part
are not kept back until the line ends.
"""

from __future__ import annotations

import json
import re
from typing import NamedTuple

from host_reporter.formats.numbers import moment

MAX_JOINED = 64 * 1024
"""A line of more characters than this is cut."""

_CRI = re.compile(
    r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)) (stdout|stderr) ([PF])(?::\S*)? ?(.*)", re.S
)
_DOCKER = '{"log":'


class Contained(NamedTuple):
    """A whole line of the container, and when it was written."""

    text: str
    time: float | None


class ContainerLines:
    """Unwraps lines. Parts are joined by their stream."""

    def __init__(self) -> None:
        self._parts: dict[str, str] = {}

    def feed(self, line: str) -> Contained | None:
        """Returns the line inside; a line of another kind as it is; None: the rest of the line is to come."""
        if line.startswith(_DOCKER):
            return self._docker(line)
        match = _CRI.match(line) if line[:2] == "20" else None
        if match is None:
            return Contained(line, None)
        written, stream, tag, text = match.groups()
        return self._joined(stream, text, moment(_seconds(written)), is_whole=tag == "F")

    def reset(self) -> None:
        """Forget the parts: the file began anew."""
        self._parts.clear()

    def _docker(self, line: str) -> Contained | None:
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            return Contained(line, None)
        text = record.get("log") if isinstance(record, dict) else None
        if not isinstance(text, str):
            return Contained(line, None)
        stream, written = str(record.get("stream"))[:16], record.get("time")
        time = moment(_seconds(written)) if isinstance(written, str) else None
        return self._joined(stream, text.rstrip("\n"), time, is_whole=text.endswith("\n"))

    def _joined(self, stream: str, text: str, time: float | None, *, is_whole: bool) -> Contained | None:
        joined = (self._parts.pop(stream, "") + text)[:MAX_JOINED]
        if is_whole:
            return Contained(joined, time)
        drawn, is_bar, rest = joined.rpartition("\r")
        if len(self._parts) < 4:
            self._parts[stream] = rest if is_bar else joined
        return Contained(drawn, time) if is_bar else None


def _seconds(written: str) -> str:
    """Returns a date without the digits of a second that Python's dates cannot hold."""
    return re.sub(r"(\.\d{6})\d+", r"\1", written)
