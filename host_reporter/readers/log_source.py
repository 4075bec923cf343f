"""One job's progress: a followed file and the parser of its lines."""

from __future__ import annotations

import time
from collections import deque
from pathlib import Path
from typing import Protocol

from host_reporter.formats.events import Event
from host_reporter.formats.local import with_help
from host_reporter.formats.outputs.line_reader import LineReader
from host_reporter.formats.outputs.own_pattern import PATTERN
from host_reporter.readers import unread
from host_reporter.readers.lines import Lines
from host_reporter.readers.match_limit import MatchLimit, Overrun
from host_reporter.readers.tail import Tail
from host_reporter.readers.unreadable import what_it_is

LAST_LINES = 20
"""Look at the dates of so many of the last lines."""

HINT = "; 'trainyard parse"
"""What a problem says of lines goes on so, with what a person can do."""

TOO_LONG = "(a line that is too long to be read)"
"""What stands for such a line among those that were not understood."""

SILENT_LINES = 100
"""Log a problem after so many lines none of which says where the run is."""

SILENT_SECONDS = 30.0
"""Log that problem after so long in any case."""

UNFINISHED_SECONDS = 3.0
"""Read a last line without an end, and guess, when nothing was written for so long."""

TURN_SECONDS = 0.05
"""Parse the lines of one file for so much processor time; then other files have their turn."""

COSTLY_LINE_SECONDS = 0.001
"""A file is costly if its lines need more processor time than this, on the average of a turn."""

COSTLY_LOOK_SECONDS = 0.04
"""The same as long as nothing proves the format, because every preset looks at each line then. None of them is slow."""

COSTLY_REST_SECONDS = 1.0
"""Leave a costly file alone for so long after a turn: it costs 5 % of a processor at most."""

OVERRUN_REST_SECONDS = 60.0
"""Leave a file alone for so long after a line whose match had to be ended; that line is lost."""


class ProgressSource(Protocol):
    """Where a job's progress comes from: a followed file, or a folder of them; see Source for what each part means."""

    @property
    def matched(self) -> int:
        """How many lines were understood."""

    @property
    def unmatched(self) -> int:
        """How many lines were not."""

    @property
    def samples(self) -> tuple[str, ...]:
        """The first few lines that were not understood. They stay on this host: they may hold a secret."""

    @property
    def is_costly(self) -> bool:
        """Whether its lines take too long, so that it is read seldom."""

    @property
    def has_begun(self) -> bool:
        """Whether something of it was read. What is wrong with that is no passing state, and is said at once."""

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

    def rest(self, limit: MatchLimit) -> list[Event]:
        """Returns the events of what waits for more, such as a last line without an end: no more will come."""

    def problem(self, *, final: bool = False) -> str | None:
        """What a person should know of it, if anything; ``final``: no more will come."""

    def close(self) -> None:
        """Let go of the file."""


class Source:
    """Events of a file of lines as they come. ``matched`` and ``unmatched`` count its lines.

    ``is_costly``: matching them took too long, so it is read seldom.
    """

    def __init__(
        self,
        tail: Tail,
        reader: LineReader,
        *,
        costly_rest_seconds: float = COSTLY_REST_SECONDS,
        overrun_rest_seconds: float = OVERRUN_REST_SECONDS,
        silent_seconds: float = SILENT_SECONDS,
        unfinished_seconds: float = UNFINISHED_SECONDS,
    ) -> None:
        self._costly_rest_seconds = costly_rest_seconds
        self._overrun_rest_seconds = overrun_rest_seconds
        self._silent_seconds, self._unfinished_seconds = silent_seconds, unfinished_seconds
        self.tail = tail
        self.reader = reader
        self._lines = Lines()
        self._waiting: deque[str] = deque()
        self._rest_until = 0.0
        self.is_costly = False
        self._has_data = False
        self._unreadable: str | None = None
        self._changed_at = time.monotonic()
        self._is_settled = True
        self._first_missed_at: float | None = None
        self._noted = 0

    @property
    def matched(self) -> int:
        """How many lines were understood."""
        return self.reader.tally.matched

    @property
    def unmatched(self) -> int:
        """How many lines were not."""
        return self.reader.tally.unmatched

    @property
    def samples(self) -> tuple[str, ...]:
        """The first few lines that were not understood."""
        return tuple(self.reader.tally.samples)

    @property
    def has_begun(self) -> bool:
        """Whether something of it was read."""
        return self._has_data and self.tail.error is None

    def poll(self, limit: MatchLimit) -> tuple[list[Event], bool]:
        """Some of the events since the last call, and whether there may be more to read at once."""
        if self._is_resting:
            return [], False
        data = b""
        if not self._waiting:
            data = self._read()
        events = self._parse_some(limit) if self._waiting else []
        if not data and not self._waiting and not self._is_settled and self._is_silent:
            events += self.rest(limit)
        return events, not self._is_resting and bool(data or self._waiting)

    def rest(self, limit: MatchLimit) -> list[Event]:
        """Returns the events of what waits for more: a last line without an end, and a guess by the lines so far."""
        self._is_settled = True
        if (line := self._lines.unfinished()) is not None and self._unreadable is None:
            self._waiting.append(line)
        return self._parse_some(limit) + self.reader.settle()

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
                    ends = limit.run(self.reader.ends, line)
                    if ends is not None:
                        return ends
        except Overrun:
            return False
        return False

    def problem(self, *, final: bool = False) -> str | None:
        """What a person should know of the file, if anything; ``final``: no more lines will come."""
        shown = self.tail.shown
        if self.tail.error is not None:
            return self.tail.error
        if self._unreadable is not None:
            return f"{shown}: {self._unreadable}"
        if self.is_costly:
            return f"{shown}: {_what_is_costly(self.reader.preset)}"
        if self.reader.tally.points == 0 and self._is_missed(1 if final else SILENT_LINES):
            # Without the count, which changes: it is to be said once.
            return f"{shown}: {self._what_is_missed()}"
        problem = self.reader.problem()
        return f"{shown}: {problem}" if problem is not None else None

    def close(self) -> None:
        """Let go of the file."""
        self.tail.close()

    def move(self, path: Path) -> None:
        """Read another file from now on. What was counted stays."""
        self.tail.close()
        before = self.tail
        self.tail = Tail(path, follow_links=before.follow_links, owner=before.owner, or_public=before.or_public)

    @property
    def _is_resting(self) -> bool:
        return self.is_costly and time.monotonic() < self._rest_until

    @property
    def _is_silent(self) -> bool:
        return time.monotonic() - self._changed_at >= self._unfinished_seconds

    def _read(self) -> bytes:
        """Read on, and cut what is new into lines."""
        data, restarted = self.tail.poll()
        if restarted:
            self._lines.reset()
            self._unreadable = None
            if self._has_data:
                self.reader.begin_file()
            self._has_data = True
        if data:
            if restarted:
                self._unreadable = what_it_is(data)
            self._changed_at, self._is_settled = time.monotonic(), False
            if self._unreadable is None:
                dropped = self._lines.dropped
                self._waiting.extend(self._lines.feed(data))
                for _ in range(self._lines.dropped - dropped):
                    self.reader.tally.missed(TOO_LONG)
                self.reader.check_dates(list(Lines().feed(self.tail.last_bytes()))[-LAST_LINES:], self.tail.modified)
        return data

    def _is_missed(self, lines: int) -> bool:
        """Returns whether lines came, of which so many, or any for so long, do not say where the run is."""
        tally = self.reader.tally
        read = tally.matched + tally.unmatched
        if read == 0:
            return False
        if self._first_missed_at is None:
            self._first_missed_at = time.monotonic()
        return read >= lines or time.monotonic() - self._first_missed_at >= self._silent_seconds

    def _what_is_missed(self) -> str:
        tally = self.reader.tally
        if tally.matched:
            reason = self.reader.problem() or "its lines have metrics, but none says where the run is"
        elif self.reader.preset is not None:
            reason = f"no line so far matches {_what(self.reader.preset)}"
        else:
            reason = "no line so far matches a known format"
        return with_help(reason, f"{HINT} {self.tail.shown}' shows its lines, and what would match")

    def _parse_some(self, limit: MatchLimit) -> list[Event]:
        events: list[Event] = []
        # Of processor time: on a busy machine a turn must get somewhere too, and a cheap pattern must not seem costly.
        parsed, began = 0, time.thread_time()
        most = COSTLY_LOOK_SECONDS if self.reader.is_guess else COSTLY_LINE_SECONDS
        try:
            with limit:
                while self._waiting and time.thread_time() - began < TURN_SECONDS:
                    line = self._waiting.popleft()
                    parsed += 1
                    events += self.reader.accept(limit.run(self.reader.look, line))
        except Overrun:
            self._rest(self._overrun_rest_seconds)
        used = time.thread_time() - began
        if used > TURN_SECONDS / 2 and used > parsed * most and not self._is_resting:
            self._rest(self._costly_rest_seconds)
        self._note_samples()
        return events

    def _note_samples(self) -> None:
        samples = self.reader.tally.samples
        for line in samples[self._noted :]:
            unread.note(self.tail.shown, line)
        self._noted = len(samples)

    def _rest(self, seconds: float) -> None:
        self.is_costly, self._rest_until = True, time.monotonic() + seconds


def _what_is_costly(preset: str | None) -> str:
    if preset == PATTERN:
        return "the job's pattern takes too long on its lines, so it is read seldom; simplify it"
    named = f"the format {preset}" if preset is not None else "looking for its format"
    return f"{named} takes too long on its lines, so it is read seldom; write shorter lines, or fewer"


def _what(preset: str) -> str:
    return preset if preset == PATTERN else f"the format {preset}"
