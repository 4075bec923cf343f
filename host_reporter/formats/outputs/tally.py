"""How much of an output was understood. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field

from host_reporter.formats.events import Event, Point

MAX_SAMPLES = 5
"""Keep so many of the lines that were not understood."""

MAX_SAMPLE = 300
"""Keep so many characters of each."""


@dataclass
class Tally:
    """Counts lines, and the points of progress in them. ``samples``: the first few lines that were not understood."""

    matched: int = 0
    unmatched: int = 0
    points: int = 0
    samples: list[str] = field(default_factory=list)

    def understood(self) -> None:
        """A line was understood."""
        self.matched += 1

    def missed(self, line: str) -> None:
        """A line was not understood. An empty one does not count."""
        if line.strip():
            self.unmatched += 1
            if len(self.samples) < MAX_SAMPLES:
                self.samples.append(line[:MAX_SAMPLE])

    def count(self, events: list[Event]) -> list[Event]:
        """Counts the points among events, and returns the events."""
        self.points += sum(isinstance(event, Point) for event in events)
        return events
