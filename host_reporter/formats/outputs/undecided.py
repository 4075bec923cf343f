"""An output whose name does not say what it is: its first lines tell, when they come. Pure.

Programs write tables and JSON lines into files that are called logs, such as Keras's ``training.log``.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from host_reporter.formats import names
from host_reporter.formats.events import Event
from host_reporter.formats.matching import Record
from host_reporter.formats.numbers import number
from host_reporter.formats.outputs.line_reader import LineReader
from host_reporter.formats.outputs.records import SEPARATORS, json_record
from host_reporter.formats.outputs.tally import Tally

_COUNTERS = frozenset(
    {"epoch", "epochs", "iteration", "iterations", "iter", "step", "steps", "timesteps", "update", "updates"}
)
"""Last words of the names of what says where a run is."""

_DOCKER = '{"log":'


class _First(NamedTuple):
    """The first line, which waits for the second one."""

    line: str


class _Decided(NamedTuple):
    """The reader, and what it sees in the lines so far."""

    reader: LineReader
    sights: tuple[Any, ...]


class Undecided:
    """Reads by the first two lines: a table if they are a header and a row, JSON lines if both are objects, else text.

    One of their names must be a counter's, since a text may begin with settings. What it has chosen it keeps.
    """

    def __init__(self, text: LineReader, table: LineReader, records: LineReader) -> None:
        self._text, self._table, self._records = text, table, records
        self._chosen: LineReader | None = None
        self._first: str | None = None

    @property
    def tally(self) -> Tally:
        """How much was understood."""
        return self._reader.tally

    @property
    def preset(self) -> str | None:
        """The name of the preset; None: none is recognised so far."""
        return self._reader.preset

    @property
    def is_guess(self) -> bool:
        """Whether nothing proves the preset."""
        return self._reader.is_guess

    @property
    def _reader(self) -> LineReader:
        return self._chosen or self._text

    def look(self, line: str) -> Any:
        """Returns what a line says, for ``accept``."""
        if self._chosen is not None:
            return self._chosen.look(line)
        if self._first is not None:
            chosen = self._choose(self._first, line)
            return _Decided(chosen, (chosen.look(self._first), chosen.look(line)))
        if _is_header(line) or _object(line) is not None:
            return _First(line)
        return _Decided(self._text, (self._text.look(line),))

    def accept(self, sight: Any) -> list[Event]:
        """Returns the events of a line."""
        if isinstance(sight, _First):
            self._first = sight.line
            return []
        if not isinstance(sight, _Decided):
            return self._reader.accept(sight)
        self._chosen, self._first = sight.reader, None
        return [event for each in sight.sights for event in sight.reader.accept(each)]

    def check_dates(self, last_lines: Sequence[str], modified: float | None) -> None:
        """Learns from the last lines of the file whether dates without a zone fit the time when it was last written."""
        self._reader.check_dates(last_lines, modified)

    def settle(self) -> list[Event]:
        """The output is silent, or at its end: returns the events that wait for more.

        A record that waits alone is one of JSON lines; the header of a table waits for its rows.
        """
        events: list[Event] = []
        if self._first is not None and _has_counter(_object(self._first) or ()):
            first, self._first, self._chosen = self._first, None, self._records
            events = self._records.accept(self._records.look(first))
        return events + self._reader.settle()

    def begin_file(self) -> None:
        """The next lines are of a file that was begun anew."""
        self._first = None
        self._reader.begin_file()

    def problem(self) -> str | None:
        """Returns what a person should know of what was read, if anything."""
        return self._reader.problem()

    def ends(self, line: str) -> bool | None:
        """Returns whether a line ends the run; None: it says nothing."""
        return self._reader.ends(line)

    def _choose(self, first: str, second: str) -> LineReader:
        objects = [_object(first), _object(second)]
        if all(found is not None for found in objects):
            return self._records if any(_has_counter(found or ()) for found in objects) else self._text
        if _is_header(first) and _is_row(second, cells_of(first)):
            return self._table
        return self._text


def cells_of(line: str) -> list[str]:
    """Returns the cells of a line, if it is one of a table."""
    try:
        return [cell.strip() for cell in next(csv.reader([line], delimiter=max(SEPARATORS, key=line.count)), [])]
    except csv.Error:
        return []


def _is_header(line: str) -> bool:
    """Returns whether a line may be the header of a table that says where a run is."""
    cells = cells_of(line)
    if len(cells) < 2 or len(set(cells)) < len(cells) or any(number(cell) is not None for cell in cells):
        return False
    return _has_counter(cells)


def _is_row(line: str, header: Sequence[str]) -> bool:
    cells = cells_of(line)
    return len(cells) == len(header) and any(cells) and all(not cell or number(cell) is not None for cell in cells)


def _object(line: str) -> Record | None:
    """Returns the fields of a line that is a JSON object; None: it is none."""
    return json_record(line) if line.startswith("{") and not line.startswith(_DOCKER) else None


def _has_counter(fields: Iterable[str]) -> bool:
    return any(_COUNTERS.intersection(names.words(field)[-1:]) for field in fields)
