"""One job's progress: a followed file and the parser of its lines."""

from __future__ import annotations

from host_reporter.parse import Event, LineParser, Lines
from host_reporter.tail import Tail

SILENT_LINES = 100
"""So many lines without one that matches are reason to say so."""


class Source:
    """Events of a progress file as they come. ``matched`` and ``unmatched`` count its lines."""

    def __init__(self, tail: Tail, parse: LineParser) -> None:
        self.tail = tail
        self.matched = 0
        self.unmatched = 0
        self._lines = Lines()
        self._parse = parse

    def poll(self) -> tuple[list[Event], bool]:
        """The events since the last call, and whether there may be more to read at once."""
        data, restarted = self.tail.poll()
        if restarted:
            self._lines.reset()
        events: list[Event] = []
        for line in self._lines.feed(data):
            event = self._parse(line)
            if event is not None:
                events.append(event)
            elif line.strip():
                self.unmatched += 1
        self.matched += len(events)
        return events, bool(data)

    def problem(self, *, final: bool = False) -> str | None:
        """What a person should know of the file, if anything; ``final``: no more lines will come."""
        if self.tail.error is not None:
            return self.tail.error
        if self.matched == 0 and self.unmatched >= (1 if final else SILENT_LINES):
            # Without the count, which changes: it is to be said once.
            return f"{self.tail.path}: none of its lines so far tells progress; see the job's pattern"
        return None

    def close(self) -> None:
        """Let go of the file."""
        self.tail.close()
