"""One job's progress: a followed file and the parser of its lines."""

from __future__ import annotations

import time
from collections import deque
from typing import Protocol

from host_reporter.readers.match_limit import MatchLimit, Overrun
from host_reporter.readers.parse import Ended, Event, LineParser, Lines
from host_reporter.readers.tail import Tail

SILENT_LINES = 100
"""Log a problem after so many lines none of which matches."""

TURN_SECONDS = 0.05
"""Parse the lines of one file for so much processor time; then other files have their turn."""

COSTLY_LINE_SECONDS = 0.001
"""A file is costly if its lines need more processor time than this, on the average of a turn."""

COSTLY_REST_SECONDS = 1.0
"""Leave a costly file alone for so long after a turn: it costs 5 % of a processor at most."""

OVERRUN_REST_SECONDS = 60.0
"""Leave a file alone for so long after a line whose match had to be ended; that line is lost."""


class ProgressSource(Protocol):
    """Where a job's progress comes from: a followed file, or a folder of them; see Source for what each part means."""

    matched: int
    unmatched: int
    is_costly: bool

    def poll(self, limit: MatchLimit) -> tuple[list[Event], bool]:
        """Some of the events since the last call, and whether there may be more to read at once."""

    def aim(self) -> None:
        """Note how much there is to read now; ``is_there`` when that was read."""

    @property
    def is_there(self) -> bool:
        """Whether all that there was at ``aim`` was read, or will not be for a while."""

    @property
    def modified(self) -> float | None:
        """When what is read was last written, in seconds since the epoch; None where that is not known."""

    def seems_over(self, limit: MatchLimit) -> bool:
        """Returns whether the last event seems to be an end."""

    def problem(self, *, final: bool = False) -> str | None:
        """What a person should know of it, if anything; ``final``: no more will come."""

    def close(self) -> None:
        """Let go of the file."""


class Source:
    """Events of a progress file as they come. ``matched`` and ``unmatched`` count its lines.

    ``is_costly``: matching them took too long, so it is read seldom.
    """

    def __init__(
        self,
        tail: Tail,
        parse: LineParser,
        *,
        costly_rest_seconds: float = COSTLY_REST_SECONDS,
        overrun_rest_seconds: float = OVERRUN_REST_SECONDS,
    ) -> None:
        self._costly_rest_seconds = costly_rest_seconds
        self._overrun_rest_seconds = overrun_rest_seconds
        self.tail = tail
        self.matched = 0
        self.unmatched = 0
        self._lines = Lines()
        self._waiting: deque[str] = deque()
        self._parse = parse
        self._rest_until = 0.0
        self.is_costly = False

    def poll(self, limit: MatchLimit) -> tuple[list[Event], bool]:
        """Some of the events since the last call, and whether there may be more to read at once."""
        if self._is_resting:
            return [], False
        data = b""
        if not self._waiting:
            data, restarted = self.tail.poll()
            if restarted:
                self._lines.reset()
            self._waiting.extend(self._lines.feed(data))
        events = self._parse_some(limit) if self._waiting else []
        return events, not self._is_resting and bool(data or self._waiting)

    def aim(self) -> None:
        """Note how much there is to read now; ``is_there`` when that was read."""
        self.tail.aim()

    @property
    def is_there(self) -> bool:
        """Whether all that there was at ``aim`` was read, or will not be for a while."""
        return self._is_resting or (self.tail.is_there and not self._waiting)

    @property
    def modified(self) -> float | None:
        """When the file was last written, in seconds since the epoch; None where that is not known."""
        return self.tail.modified

    def seems_over(self, limit: MatchLimit) -> bool:
        """Returns whether the last event among the file's last lines is an end."""
        lines = list(Lines().feed(self.tail.last_bytes()))
        try:
            with limit:
                for line in reversed(lines):
                    event = limit.run(self._parse, line)
                    if event is not None:
                        return isinstance(event, Ended)
        except Overrun:
            return False
        return False

    def problem(self, *, final: bool = False) -> str | None:
        """What a person should know of the file, if anything; ``final``: no more lines will come."""
        if self.tail.error is not None:
            return self.tail.error
        if self.is_costly:
            return f"{self.tail.path}: the job's pattern takes too long on its lines, so it is read seldom; simplify it"
        if self.matched == 0 and self.unmatched >= (1 if final else SILENT_LINES):
            # Without the count, which changes: it is to be said once.
            return f"{self.tail.path}: no line so far matches the job's pattern"
        return None

    def close(self) -> None:
        """Let go of the file."""
        self.tail.close()

    @property
    def _is_resting(self) -> bool:
        return self.is_costly and time.monotonic() < self._rest_until

    def _parse_some(self, limit: MatchLimit) -> list[Event]:
        events: list[Event] = []
        # Of processor time: on a busy machine a turn must get somewhere too, and a cheap pattern must not seem costly.
        parsed, began = 0, time.thread_time()
        try:
            with limit:
                while self._waiting and time.thread_time() - began < TURN_SECONDS:
                    line = self._waiting.popleft()
                    parsed += 1
                    event = limit.run(self._parse, line)
                    if event is not None:
                        events.append(event)
                    elif line.strip():
                        self.unmatched += 1
        except Overrun:
            self._rest(self._overrun_rest_seconds)
        used = time.thread_time() - began
        if used > TURN_SECONDS / 2 and used > parsed * COSTLY_LINE_SECONDS and not self._is_resting:
            self._rest(self._costly_rest_seconds)
        self.matched += len(events)
        return events

    def _rest(self, seconds: float) -> None:
        self.is_costly, self._rest_until = True, time.monotonic() + seconds
