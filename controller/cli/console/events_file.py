"""A recorded file of events in parts, each with the state before it, so that a page reads little to show any moment."""

from __future__ import annotations

import io
import os
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any, NamedTuple

from controller.cli.console.lines import Fields, Line, encoded, read_lines
from controller.cli.console.moment import Moment

PART_BYTES = 1 << 20
"""A part has at least this many bytes, and at least as many as the state before it: all states together take no more
than the file."""
FIELDS: Fields = {"id": int, "event": str, "time": (int, float), "data": dict}
_A_DAY_LONG_AGO = 1e9
"""No run is as long, in seconds, and each time of today is later."""


class _Part(NamedTuple):
    """``after`` is the latest time of all events before the part. The rest is where it and the state lie, in bytes.

    ``is_right`` says whether all its lines are right, so that it is served as it lies on the disk.
    """

    after: float
    start: int
    end: int
    state_start: int
    state_end: int
    is_right: bool


class EventsFile:
    """The parts of a recorded file. It stays open; in memory is where its parts are. Raises OSError.

    Times of the day become seconds since the first event, as in what ``trainyard events`` prints. A recorded run of the
    lab counts from its start already. ``wrong`` has the numbers of the lines that are left out: the first, and how many
    there are.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.count = 0
        self.policy: object = None
        self.seconds = 0.0
        self.first_wrong = self.wrong = 0
        self.parts: list[_Part] = []
        self._zero: float | None = None
        self._file = path.open("rb")
        self._states: IO[bytes] = TemporaryFile()  # noqa: SIM115 - it lives as long as this object
        self._read()

    @property
    def moments(self) -> list[float]:
        """The latest time before each part, in seconds."""
        return [part.after for part in self.parts]

    def part(self, number: int) -> bytes:
        """Returns the events of a part, a line each. Raises IndexError."""
        part = self.parts[number]
        content = os.pread(self._file.fileno(), part.end - part.start, part.start)
        if part.is_right and not self._zero:
            return content
        lines = (line.document for line in read_lines(io.BytesIO(content), FIELDS))
        return b"".join(encoded(self._shifted(event)) + b"\n" for event in lines if event is not None)

    def state(self, number: int) -> bytes:
        """Returns the state before a part, a JSON document. Raises IndexError."""
        part = self.parts[number]
        return os.pread(self._states.fileno(), part.state_end - part.state_start, part.state_start)

    def close(self) -> None:
        """Close the files."""
        self._file.close()
        self._states.close()

    def _read(self) -> None:
        moment, after = Moment(), 0.0
        start = end = state_bytes = 0
        before, wrong, stored = after, 0, self._store(moment)
        for line in read_lines(self._file, FIELDS):
            if line.start - start >= max(PART_BYTES, state_bytes):
                self.parts.append(_Part(before, start, line.start, *stored, self.wrong == wrong))
                before, start, wrong, stored = after, line.start, self.wrong, self._store(moment)
                state_bytes = stored[1] - stored[0]
            end = line.end
            if line.document is None:
                self._leave_out(line)
                continue
            event = self._take(line.document)
            after = max(after, event["time"])
            moment.apply(event)
        self.parts.append(_Part(before, start, end, *stored, self.wrong == wrong))
        self.seconds = after

    def _take(self, document: dict[str, Any]) -> dict[str, Any]:
        if self._zero is None:
            self._zero = document["time"] if document["time"] >= _A_DAY_LONG_AGO else 0.0
        self.count += 1
        if document["event"] == "plan":
            self.policy = document["data"].get("policy")
        return self._shifted(document)

    def _shifted(self, event: dict[str, Any]) -> dict[str, Any]:
        return {**event, "time": round(event["time"] - self._zero, 3)} if self._zero else event

    def _leave_out(self, line: Line) -> None:
        self.first_wrong = self.first_wrong or line.number
        self.wrong += 1

    def _store(self, moment: Moment) -> tuple[int, int]:
        """Returns where the state lies that was written."""
        start = self._states.tell()
        self._states.write(encoded(moment.document()))
        self._states.flush()
        return start, self._states.tell()
