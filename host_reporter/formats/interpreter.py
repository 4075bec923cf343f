"""Lines in, events out: cleaning, recognition and counting in one. Pure."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from host_reporter.formats.choice import Wanted
from host_reporter.formats.cleaning import Cleaned, Cleaner
from host_reporter.formats.counting import Counter
from host_reporter.formats.events import Direction, Event
from host_reporter.formats.matching import Matcher
from host_reporter.formats.reading import Reading
from host_reporter.formats.recognition import Look, Recognition

MAX_SAMPLES = 5
"""Keep so many of the lines that were not understood."""

MAX_SAMPLE = 300
"""Keep so many characters of each."""


class Sight(NamedTuple):
    """A line, and what the presets say of it; None: it is of a rank that is not followed."""

    cleaned: Cleaned
    look: Look | None


class Interpreter:
    """The lines of one job's output. ``matched`` and ``unmatched`` count them, ``samples`` are some that do not match.

    ``clean`` and ``look`` come before ``accept``: ``look`` alone runs the presets' patterns, and may be ended.
    """

    def __init__(
        self,
        recognition: Recognition,
        *,
        metric: str | None = None,
        direction: Direction | None = None,
        raw: bool = False,
    ) -> None:
        self.matched = 0
        self.unmatched = 0
        self.samples: list[str] = []
        self.recognition = recognition
        self._metric, self._direction = metric, direction
        self._cleaner = Cleaner()
        self._counter = Counter(self._wanted(recognition.chosen), self._name(recognition.chosen))
        self._preset = recognition.chosen
        self._rank: int | None = None
        self._raw = raw

    @property
    def counter(self) -> Counter:
        """The state of the run."""
        return self._counter

    def clean(self, line: str) -> Cleaned | None:
        """Returns the line without what launchers put before it; None: the rest of it is to come."""
        return self._cleaner.feed(line)

    def look(self, cleaned: Cleaned) -> Sight:
        """Returns what the presets say of a line. It changes nothing."""
        if self._rank is not None and cleaned.rank is not None and cleaned.rank > self._rank:
            return Sight(cleaned, None)
        look = self.recognition.look(cleaned.raw) if self._raw else Look({})
        if not look.readings and not (self._raw and cleaned.raw == cleaned.text):
            look = self.recognition.look(cleaned.text)
        return Sight(cleaned, look)

    def accept(self, sight: Sight) -> list[Event]:
        """Returns the events of a line."""
        cleaned, look = sight
        if look is None:
            return []
        if cleaned.time is not None:
            look = look._replace(readings={name: _dated(r, cleaned.time) for name, r in look.readings.items()})
        if look.readings or look.sure:
            self.matched += 1
            if cleaned.rank is not None and any(reading.counts for reading in look.readings.values()):
                self._rank = cleaned.rank
        elif cleaned.text.strip():
            self._note(cleaned.raw)
        return self._count(self.recognition.accept(look))

    def settle(self) -> list[Event]:
        """The output is silent, or at its end: returns the events of a guess by the lines so far."""
        return self._count(self.recognition.settle())

    def begin_file(self) -> None:
        """The next lines are of a file that was begun anew."""
        self._cleaner.reset()
        self._counter.begin_file()

    def _count(self, readings: list[Reading]) -> list[Event]:
        chosen = self.recognition.chosen
        if chosen is not None and (chosen is not self._preset or self._is_guess != self.recognition.is_guess):
            self._preset, self._is_guess = chosen, self.recognition.is_guess
            self._counter.become(self._wanted(chosen), chosen.name, is_guess=self._is_guess)
        return [event for reading in readings for event in self._counter.count(reading)]

    _is_guess = False

    def _wanted(self, matcher: Matcher | None) -> Wanted:
        directions = matcher.preset.directions if matcher is not None else {}
        return Wanted(self._metric, self._direction, directions)

    @staticmethod
    def _name(matcher: Matcher | None) -> str | None:
        return matcher.name if matcher is not None else None

    def _note(self, line: str) -> None:
        self.unmatched += 1
        if len(self.samples) < MAX_SAMPLES:
            self.samples.append(line[:MAX_SAMPLE])


def _dated(reading: Reading, time: float) -> Reading:
    return reading if reading.time is not None else replace(reading, time=time)
