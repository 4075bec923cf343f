"""What reads the lines of a file: text by presets, rows of CSV, JSON lines, or the lines of a progress file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from host_reporter.formats.counts.choice import Wanted
from host_reporter.formats.events import Direction, Event
from host_reporter.formats.matching import Matcher
from host_reporter.formats.outputs.tally import Tally


@dataclass(frozen=True)
class Declared:
    """What a job file declares of the metric that is to be read, and the length of the run."""

    metric: str | None = None
    direction: Direction | None = None
    iterations: float | None = None

    def wanted(self, matcher: Matcher | None = None) -> Wanted:
        """Returns it with what a preset knows of its metrics."""
        if matcher is None:
            return Wanted(self.metric, self.direction, iterations=self.iterations)
        preset = matcher.preset
        return Wanted(self.metric, self.direction, preset.directions, self.iterations, validates=preset.validates)


class LineReader(Protocol):
    """Lines in, events out. ``look`` runs the patterns, and may be ended in the middle; ``accept`` does the rest."""

    @property
    def tally(self) -> Tally:
        """How much was understood."""

    @property
    def preset(self) -> str | None:
        """The name of the preset; None: none is recognised so far."""

    @property
    def is_guess(self) -> bool:
        """Whether nothing proves the preset."""

    def look(self, line: str) -> Any:
        """Returns what a line says, for ``accept``."""

    def accept(self, sight: Any) -> list[Event]:
        """Returns the events of a line."""

    def check_dates(self, last_lines: Sequence[str], modified: float | None) -> None:
        """Learns from the last lines of the file whether dates without a zone fit the time when it was last written."""

    def settle(self) -> list[Event]:
        """The output is silent, or at its end: returns the events that wait for more."""

    def begin_file(self) -> None:
        """The next lines are of a file that was begun anew."""

    def problem(self) -> str | None:
        """Returns what a person should know of what was read, if anything."""

    def ends(self, line: str) -> bool | None:
        """Returns whether a line ends the run; None: it says nothing."""
