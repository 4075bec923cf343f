"""Lines of text in, events out: cleaning, recognition and counting in one. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from host_reporter.formats.counts.counting import Counter
from host_reporter.formats.counts.handover import handed_over
from host_reporter.formats.events import Event
from host_reporter.formats.matching import CompiledPattern, Matcher
from host_reporter.formats.outputs.line_reader import Declared
from host_reporter.formats.outputs.tally import Tally
from host_reporter.formats.prefixes import dates
from host_reporter.formats.prefixes.cleaning import Cleaned, Cleaner
from host_reporter.formats.prefixes.commas import Commas
from host_reporter.formats.preset import Pattern
from host_reporter.formats.reading import Reading
from host_reporter.formats.recognition import Look, Recognition

_END = "end_pattern"


class Sight(NamedTuple):
    """A line, and what the presets say of it; None: it is of a rank that is not followed.

    ``unsure``: values of metrics that may be meant otherwise.
    """

    cleaned: Cleaned
    look: Look | None
    unsure: frozenset[float] = frozenset()


class Interpreter:
    """The lines of one job's output.

    Of lines that name ranks those of the lowest one that is understood count: rank 0, or the rank that prints the loss.
    ``raw``: the pattern was written for the whole line, so the line is tried before what launchers put there is taken.
    """

    def __init__(
        self,
        recognition: Recognition,
        declared: Declared | None = None,
        *,
        raw: bool = False,
        end_pattern: str | None = None,
        ranks_in_brackets: bool = False,
    ) -> None:
        """``ranks_in_brackets``: a launcher puts a rank before each line, as in ``[0] step 5``. Raises PatternError."""
        self.tally = Tally()
        self.recognition = recognition
        self._declared = declared or Declared()
        self._raw = raw
        self._end = CompiledPattern(Pattern(regex=end_pattern, ended=True), "end_pattern") if end_pattern else None
        self._cleaner, self._ranks_in_brackets = Cleaner(ranks_in_brackets=ranks_in_brackets), ranks_in_brackets
        self._commas = Commas()
        self._preset = recognition.chosen
        self._reported: float | None = None
        self._rank: int | None = None
        self._shift: float | None = None
        chosen = recognition.chosen
        self.counter = Counter(self._declared.wanted(chosen), chosen.name if chosen is not None else None)

    @property
    def preset(self) -> str | None:
        """The name of the preset."""
        return self._preset.name if self._preset is not None else None

    @property
    def is_guess(self) -> bool:
        """Whether nothing proves the preset."""
        return self.recognition.is_guess

    def look(self, line: str) -> Sight | None:
        """Returns what the presets say of a line; None: the rest of it is to come."""
        return self._look(self._cleaner.feed(line), self._commas)

    def _look(self, cleaned: Cleaned | None, commas: Commas) -> Sight | None:
        if cleaned is None:
            return None
        if self._end is not None and (end := self._end.read(cleaned.raw) or self._end.read(cleaned.text)) is not None:
            return Sight(cleaned, Look({_END: end}))
        if self._rank is not None and cleaned.rank is not None and cleaned.rank > self._rank:
            return Sight(cleaned, None)
        if self._raw:
            raw, unsure = commas.feed(cleaned.raw)
            look = self.recognition.look(raw)
            if look.readings or cleaned.raw == cleaned.text:
                return Sight(cleaned, look, unsure)
        text, unsure = commas.feed(cleaned.text)
        return Sight(cleaned, self.recognition.look(text), unsure)

    def accept(self, sight: Sight | None) -> list[Event]:
        """Returns the events of a line."""
        if sight is None or sight.look is None:
            return []
        cleaned, look = sight.cleaned, _without(sight.look, sight.unsure)
        if look.readings or look.sure:
            self.tally.understood()
            if cleaned.rank is not None and any(reading.counts for reading in look.readings.values()):
                self._rank = cleaned.rank
        else:
            self.tally.missed(cleaned.raw)
        if (time := self._time(cleaned)) is not None:
            look = look._replace(readings={name: _dated(reading, time) for name, reading in look.readings.items()})
        if _END in look.readings:
            return self.settle() + self._count([look.readings[_END]])
        return self._count(self.recognition.accept(look))

    def check_dates(self, last_lines: Sequence[str], modified: float | None) -> None:
        """Learns from the last lines of the file whether dates without a zone fit the time when it was last written."""
        if self._shift is not None or modified is None:
            return
        cleaner = Cleaner(ranks_in_brackets=self._ranks_in_brackets)
        found = [cleaned for line in last_lines if (cleaned := cleaner.feed(line)) is not None]
        naive = [cleaned.time for cleaned in found if cleaned.time is not None and not cleaned.is_zoned]
        self._shift = dates.shift(naive[-1], modified) if naive else None

    def settle(self) -> list[Event]:
        """The output is silent, or at its end: returns the events of a guess, and of lines that waited for more."""
        events = self._count(self.recognition.settle())
        return events + self.tally.count(self.counter.settle())

    def begin_file(self) -> None:
        """The next lines are of a file that was begun anew."""
        self._cleaner.reset()
        self._commas.reset()
        self._shift = None
        self.counter.begin_file()

    def problem(self) -> str | None:
        """Returns what a person should know of what was read, if anything."""
        return self.counter.problem() or self._commas.problem()

    def ends(self, line: str) -> bool | None:
        """Returns whether a line ends the run; None: it says nothing. It changes nothing."""
        sight = self._look(Cleaner(ranks_in_brackets=self._ranks_in_brackets).feed(line), Commas())
        readings = list(sight.look.readings.values()) if sight is not None and sight.look is not None else []
        return any(reading.ended for reading in readings) if readings else None

    def _time(self, cleaned: Cleaned) -> float | None:
        """Returns when a line was written, if the date in front of it can be trusted."""
        if cleaned.time is None or cleaned.is_zoned:
            return cleaned.time
        return cleaned.time + self._shift if self._shift is not None else None

    def _count(self, readings: list[Reading]) -> list[Event]:
        chosen = self.recognition.chosen
        if chosen is not None and chosen is not self._preset:
            self._begin(chosen)
        elif chosen is not None and not self.recognition.is_guess:
            self.counter.prove()
        events = [event for reading in readings for event in self.counter.count(reading)]
        if self._reported is not None and self.counter.highest is not None:
            events, self._reported = handed_over(events, self._reported, self.counter.highest), None
        return self.tally.count(events)

    def _begin(self, chosen: Matcher) -> None:
        """Count by another preset from here on."""
        self._preset, self._reported = chosen, self.counter.highest
        self.counter = Counter(self._declared.wanted(chosen), chosen.name, is_guess=self.recognition.is_guess)


def _without(look: Look, unsure: frozenset[float]) -> Look:
    """Returns what is seen in a line without metrics of these values."""
    if not unsure:
        return look
    return look._replace(readings={name: _sure(reading, unsure) for name, reading in look.readings.items()})


def _sure(reading: Reading, unsure: frozenset[float]) -> Reading:
    return replace(reading, metrics={name: value for name, value in reading.metrics.items() if value not in unsure})


def _dated(reading: Reading, time: float) -> Reading:
    return reading if reading.time is not None else replace(reading, time=time)
