"""Reads lines and records by one preset. Pure."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property

from host_reporter.formats.events import MAX_ITERATION
from host_reporter.formats.numbers import finite, moment, number
from host_reporter.formats.preset import COUNTERS, GROUPS, Fields, Kind, Names, Pattern, Preset
from host_reporter.formats.reading import NUMBERS, Reading, counted
from host_reporter.formats.text_pairs import name_before, pairs, quoted_pairs, validated

MAX_MATCHED = 2048
"""Characters of a line that a pattern sees: its cost may grow with the square of them, or worse."""

MAX_FIELDS = 512
MAX_DEPTH = 4

Record = Mapping[str, object]
"""A row, or an object, by the names of its fields; inner objects are flat: ``a.b``."""

UNNAMED = "metric"
"""The name of a metric that has none."""


class PatternError(ValueError):
    """A regular expression that cannot serve; the message says why and what would."""


class CompiledPattern:
    """One pattern. Raises PatternError."""

    def __init__(self, pattern: Pattern, field: str = "pattern") -> None:
        self._pattern = pattern
        self._regex = compiled(field, pattern.regex)
        if unknown := sorted(set(self._regex.groupindex) - set(GROUPS)):
            raise PatternError(f"{field}: unknown groups {', '.join(unknown)}; there are {', '.join(GROUPS)}")
        self._counters = tuple(name for name in NUMBERS if name in self._regex.groupindex)
        self._where = self.groups & COUNTERS

    @property
    def groups(self) -> frozenset[str]:
        """The names of its groups."""
        return frozenset(self._regex.groupindex)

    def read(self, text: str) -> Reading | None:
        """Returns what the line says; None where the pattern does not match, or matches no number."""
        match = self._regex.search(text, 0, MAX_MATCHED)
        if match is None:
            return None
        groups = {name: value for name, value in match.groupdict().items() if value is not None}
        counters = {name: self._count(name, groups[name]) for name in self._counters if name in groups}
        metrics = self._metrics(text, match, groups)
        if groups and not metrics and all(value is None for value in counters.values()):
            return None
        if self._where and all(counters.get(name) is None for name in self._where):
            return None
        loss = number(groups["loss"]) if "loss" in groups else None
        return counted(
            counters,
            metrics=metrics,
            time=moment(groups["time"]) if "time" in groups else None,
            diverged=self._pattern.diverged or (loss is not None and not math.isfinite(loss)),
            ended=self._pattern.ended,
            begun=self._pattern.begun,
            lasting=self._pattern.lasting,
        )

    def _count(self, name: str, text: str) -> float | None:
        found = _count(text)
        return found + self._pattern.add.get(name, 0.0) if found is not None else None

    def _metrics(self, text: str, match: re.Match[str], groups: Mapping[str, str]) -> dict[str, float]:
        found: dict[str, float] = {}
        chosen = next((name for name in ("metric", "loss") if name in groups), None)
        if chosen is not None and (value := number(groups[chosen])) is not None:
            written = "loss" if chosen == "loss" else name_before(text, match.start(chosen)) or UNNAMED
            found[self._pattern.metric or written] = value
        if self._pattern.pairs:
            found |= pairs(text[:MAX_MATCHED])
        if self._pattern.validation:
            return validated(found)
        return found


class Matcher:
    """Reads lines and records by a preset. Raises PatternError where one of its patterns cannot serve."""

    def __init__(self, preset: Preset) -> None:
        self.preset = preset
        self._fields = _several(preset.fields)
        self._patterns = tuple(CompiledPattern(pattern, f"preset {preset.name}") for pattern in preset.patterns)
        self._marks = compiled(f"preset {preset.name}", preset.marks) if preset.marks is not None else None

    @property
    def name(self) -> str:
        """The preset's name."""
        return self.preset.name

    def read(self, text: str) -> Reading | None:
        """Returns what a line says."""
        if self.preset.read is not None:
            return self.preset.read(text[:MAX_MATCHED])
        if self._fields and self.preset.kind is Kind.LINES and "{" in text:
            found = self.read_record(quoted_pairs(text[: 4 * MAX_MATCHED]))
            if found is not None:
                # What stands before the dict without an end of line, such as a bar, counts, too.
                return _joined(found, self._read_text(text.partition("{")[0])) if found.may_be_late else found
        return self._read_text(text)

    def _read_text(self, text: str) -> Reading | None:
        return next((found for pattern in self._patterns if (found := pattern.read(text)) is not None), None)

    def read_record(self, record: Record) -> Reading | None:
        """Returns what a record says; None where it lacks a field that the preset needs, or says nothing."""
        for fields in self._fields:
            if all(name in record for name in fields.needs):
                found = _reading(fields, record)
                return found if found.counts or found.metrics else None
        return None

    def is_sure(self, text: str, reading: Reading | None) -> bool:
        """Returns whether the line is of this preset and of no other; ``reading`` is what ``read`` returned."""
        if self._marks is not None:
            return self._marks.search(text, 0, MAX_MATCHED) is not None
        return reading is not None and self.preset.read is None

    def is_sure_of(self, fields: Mapping[str, object] | tuple[str, ...]) -> bool:
        """Returns whether a record with these fields is of this preset and of no other."""
        if self.preset.columns is not None and not self.preset.columns(tuple(fields)):
            return False
        return any(part.needs and all(name in fields for name in part.needs) for part in self._fields)

    @property
    def needs(self) -> int:
        """How many fields a record must have at most."""
        return max((len(fields.needs) for fields in self._fields), default=0)

    @property
    def shared(self) -> tuple[str, ...]:
        """The fields of a document that its records have, too."""
        return tuple(name for fields in self._fields for name in fields.shared)

    @property
    def named(self) -> tuple[str, ...]:
        """The fields that it names."""
        return tuple(name for fields in self._fields for name in (*_used(fields), *(fields.metrics or ())))

    @cached_property
    def groups(self) -> frozenset[str]:
        """The groups of all its patterns."""
        return frozenset().union(*(pattern.groups for pattern in self._patterns))


def flat(record: Mapping[str, object], prefix: str = "", depth: int = 0) -> dict[str, object]:
    """Returns an object's fields, those of inner objects by dotted names; lists are left out."""
    found: dict[str, object] = {}
    for name, value in record.items():
        if isinstance(value, Mapping):
            if depth < MAX_DEPTH:
                found |= flat(value, f"{prefix}{name}.", depth + 1)
        elif not isinstance(value, list):
            found[f"{prefix}{name}"] = value
        if len(found) >= MAX_FIELDS:
            break
    return found


def compiled(field: str, pattern: str) -> re.Pattern[str]:
    """Returns the compiled expression. Raises PatternError."""
    try:
        return re.compile(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        raise PatternError(f"{field}: {error} in {pattern[:200]!r}") from error


def _reading(fields: Fields, record: Record) -> Reading:
    found = {name: _count(_first(record, getattr(fields, name))) for name in NUMBERS}
    counters = {name: value + fields.add.get(name, 0.0) for name, value in found.items() if value is not None}
    metrics = _values(fields, record)
    return counted(
        counters,
        metrics=validated(metrics) if fields.validation else metrics,
        time=moment(_first(record, fields.time)),
        may_be_late=fields.may_be_late,
    )


def _joined(found: Reading, before: Reading | None) -> Reading:
    """Returns a reading with the steps of what stands before it in its line."""
    if before is None or before.step is None:
        return found
    return replace(found, step=before.step, of=before.of, total=before.total)


def _values(fields: Fields, record: Record) -> dict[str, float]:
    used = _used(fields)
    wanted = fields.metrics if fields.metrics is not None else tuple(name for name in record if name not in used)
    found = ((name, number(record.get(name))) for name in wanted)
    return {name: value for name, value in found if value is not None}


def _several(fields: Fields | tuple[Fields, ...] | None) -> tuple[Fields, ...]:
    return () if fields is None else (fields,) if isinstance(fields, Fields) else fields


def _used(fields: Fields) -> tuple[str, ...]:
    """Returns the fields that are no metrics."""
    return tuple(name for part in (*NUMBERS, "time") for name in _all(part, fields))


def _all(part: str, fields: Fields) -> tuple[str, ...]:
    chosen: Names = getattr(fields, part)
    return (chosen,) if isinstance(chosen, str) else chosen


def _first(record: Record, chosen: Names) -> object:
    options = (chosen,) if isinstance(chosen, str) else chosen
    return next((record[name] for name in options if record.get(name) not in (None, "")), None)


def _count(value: object) -> float | None:
    """Returns a number that a counter can have."""
    found = finite(value)
    return found if found is not None and 0 <= found <= MAX_ITERATION else None
