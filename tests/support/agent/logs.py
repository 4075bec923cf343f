"""What the agent would read from a log: for the presets' samples."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from host_reporter.formats import registry
from host_reporter.formats.events import Described, Ended, Event, Point
from host_reporter.formats.outputs.interpreter import Interpreter
from host_reporter.formats.recognition import Recognition
from host_reporter.readers.auto import auto_source
from host_reporter.readers.location import Location
from host_reporter.readers.whole import Whole, read_whole

SAMPLES = Path(__file__).parents[2] / "data" / "logs"
"""One sample for each preset, NAME.log or the like, and what is to be read from it, NAME.json."""


@dataclass(frozen=True)
class Parsed:
    """What was read."""

    preset: str | None
    is_guess: bool
    events: tuple[Event, ...]

    @property
    def points(self) -> list[tuple[float, float | None]]:
        """Iterations and metrics."""
        return [(event.iteration, event.metric) for event in self.events if isinstance(event, Point)]

    @property
    def described(self) -> Described:
        """The last description."""
        return next((event for event in reversed(self.events) if isinstance(event, Described)), Described())

    @property
    def ends(self) -> int:
        """How often a run ends."""
        return sum(isinstance(event, Ended) for event in self.events)


def interpreted(lines: Iterable[str], interpreter: Interpreter | None = None) -> Parsed:
    """Returns what is read from lines by all installed presets, or by an interpreter of the test's own."""
    reader = interpreter or Interpreter(Recognition(registry.available()))
    events: list[Event] = []
    for line in lines:
        events += reader.accept(reader.look(line))
    events += reader.settle()
    chosen = reader.recognition.chosen
    return Parsed(chosen.name if chosen is not None else None, reader.recognition.is_guess, tuple(events))


def parsed(path: Path) -> Whole:
    """Returns what the agent reads from a file."""
    return read_whole(auto_source(Location(path, str(path))))
