"""Which preset a log is of. Every preset sees the first lines, the surest one wins. Pure."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from host_reporter.formats.matching import Matcher, Record
from host_reporter.formats.preset import Kind
from host_reporter.formats.reading import Reading
from host_reporter.formats.registry import GENERAL

HELD_LINES = 200
"""Keep what the presets read in so many of the first lines, for the one that is recognised."""

GUESS_LINES = 3
"""Guess once so many lines say where the run is, and none of them proves a preset."""


SETTLED_LINES = 2
"""So many are enough when no more come, or one that has a metric, too."""

PATIENCE = 2_000
"""Look at each line until so many in a row say nothing, and then at some."""

SAMPLED = 8
"""Look at one line of so many then."""


class Look(NamedTuple):
    """What the presets say of one line; ``sure`` are those that it proves."""

    readings: Mapping[str, Reading]
    sure: tuple[str, ...] = ()


@dataclass
class Recognition:
    """Looks at lines, and chooses. ``chosen`` is the preset so far; ``is_guess``: no line proves it.

    ``look`` changes nothing, and may be ended in the middle. ``accept`` decides. While the preset is a guess, or others
    may replace it, what those read in the latest lines is kept for them.
    """

    matchers: Mapping[str, Matcher]
    chosen: Matcher | None = None
    is_guess: bool = True
    _held: deque[Mapping[str, Reading]] = field(default_factory=lambda: deque(maxlen=HELD_LINES))
    _counts: dict[str, int] = field(default_factory=dict)
    _watched: tuple[Matcher, ...] = ()
    """The presets that may still be recognised."""
    _missed: int = 0

    def __post_init__(self) -> None:
        self._watch()

    @classmethod
    def declared(cls, matcher: Matcher) -> Recognition:
        """A format that the job file names: nothing is to be recognised."""
        return cls({matcher.name: matcher}, matcher, is_guess=False)

    def look(self, text: str) -> Look:
        """Returns what the line says by the chosen preset, or by each of them."""
        chosen = self.chosen
        if chosen is None and self._missed > PATIENCE and self._missed % SAMPLED != 0:
            return Look({})
        readings, sure = {}, []
        for matcher in self._watched:
            reading = matcher.read(text)
            if reading is not None:
                readings[matcher.name] = reading
            if (matcher is not chosen or self.is_guess) and matcher.is_sure(text, reading):
                sure.append(matcher.name)
        return Look(readings, tuple(sure))

    def accept(self, look: Look) -> list[Reading]:
        """Returns what is to be counted: the line's reading, or those of the lines before, too, by a new choice."""
        self._missed = 0 if look.readings else self._missed + 1
        if self.is_guess or len(self._watched) > 1:
            self._hold(look)
        if self.chosen is None:
            if look.sure:
                return self._choose(self._surest(look.sure), is_guess=False)
            return self.settle() if max(self._counts.values(), default=0) >= GUESS_LINES else []
        better = self._better(look.sure)
        if better is not None and better is not self.chosen:
            return self._choose(better.name, is_guess=False)
        if better is not None:
            self.is_guess = False
            self._watch()
        reading = look.readings.get(self.chosen.name)
        return [reading] if reading is not None else []

    def settle(self) -> list[Reading]:
        """Guess by the lines so far, since no more may come for a while. Returns what is to be counted."""
        if self.chosen is not None or not self._counts:
            return []
        if max(self._counts.values()) < SETTLED_LINES and not any(map(_is_telling, self._held)):
            return []
        # A preset with a function of its own may read any line, as the general one does.
        others = {name: count for name, count in self._counts.items() if self.matchers[name].preset.read is None}
        best = max(others, key=lambda name: others[name], default=GENERAL)
        return self._choose(best if others.get(best, 0) > self._counts.get(GENERAL, 0) else GENERAL, is_guess=True)

    def _hold(self, look: Look) -> None:
        if not look.readings:
            return
        self._held.append(look.readings)
        for name, reading in look.readings.items():
            if reading.counts:
                self._counts[name] = self._counts.get(name, 0) + 1

    def _choose(self, name: str, *, is_guess: bool) -> list[Reading]:
        self.chosen, self.is_guess = self.matchers[name], is_guess
        self._watch()
        held = [readings[name] for readings in self._held if name in readings]
        if not is_guess:
            self._held.clear()
        return held

    def _surest(self, sure: Sequence[str]) -> str:
        """Returns which of several proven presets it is: the one that is built on the others, or that read most."""
        beaten = {name for winner in sure for name in self.matchers[winner].preset.beats}
        left = [name for name in sure if name not in beaten] or list(sure)
        return max(left, key=lambda name: self._counts.get(name, 0))

    def _better(self, sure: Sequence[str]) -> Matcher | None:
        assert self.chosen is not None
        found = [name for name in sure if self.is_guess or self.chosen.name in self.matchers[name].preset.beats]
        return self.matchers[self._surest(found)] if found else None

    def _watch(self) -> None:
        """Look for all presets of lines as long as none is proven, then for those that would replace the chosen one."""
        lines = [matcher for matcher in self.matchers.values() if matcher.preset.kind is Kind.LINES]
        if self.chosen is not None and not self.is_guess:
            lines = [matcher for matcher in lines if self.chosen.name in matcher.preset.beats]
        if self.chosen is not None and self.chosen not in lines:
            lines.insert(0, self.chosen)
        self._watched = tuple(lines)


def _is_telling(readings: Mapping[str, Reading]) -> bool:
    """Returns whether a line says where the run is, and how good it is."""
    return any(reading.counts and reading.metrics for reading in readings.values())


def of_fields(matchers: Mapping[str, Matcher], kind: Kind, fields: Record | tuple[str, ...]) -> Matcher | None:
    """Returns the preset of records with these fields; None where none is sure. Of several the one that needs most."""
    sure = [matcher for matcher in matchers.values() if matcher.preset.kind is kind and matcher.is_sure_of(fields)]
    return max(sure, key=lambda matcher: matcher.needs, default=None)
