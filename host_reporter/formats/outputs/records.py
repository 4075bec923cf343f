"""Rows of CSV and JSON lines in, events out, by the names of their fields. Pure."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

from host_reporter.formats import names, recognition
from host_reporter.formats.counts.counting import Counter
from host_reporter.formats.counts.handover import handed_over
from host_reporter.formats.events import Described, Ended, Event
from host_reporter.formats.local import with_names
from host_reporter.formats.matching import Matcher, Record, flat
from host_reporter.formats.outputs.line_reader import Declared
from host_reporter.formats.outputs.progress_lines import PROGRESS_KEYS, progress_event
from host_reporter.formats.outputs.tally import Tally
from host_reporter.formats.preset import Fields, Kind, Preset
from host_reporter.formats.reading import Reading
from host_reporter.formats.registry import GENERAL

_ITERATION = (
    "iteration",
    "iter",
    "global_step",
    "step",
    "steps",
    "num_updates",
    "updates",
    "update",
    "training_iteration",
)
SEPARATORS = ",;\t"
"""What may be between the cells of a table."""

PROGRESS_FILE = "progress-file"
"""The name of the format of a job's progress file."""

_EPOCH = ("epoch", "epochs")
_TIME = ("time", "timestamp", "_timestamp", "wall_time", "walltime", "date")
_DECIMAL_COMMA = re.compile(r"[-+]?\d{0,40},\d{1,40}(?:[eE][-+]?\d{1,4})?")


class Records:
    """What rows and JSON lines have in common: a preset by the names of fields, and a counter.

    ``fields``: which field is what, where a job file says it; then no preset is recognised.
    """

    def __init__(
        self,
        kind: Kind,
        matchers: Mapping[str, Matcher],
        declared: Declared | None = None,
        fields: Fields | None = None,
    ) -> None:
        self.tally = Tally()
        self._kind, self._matchers, self._declared = kind, matchers, declared or Declared()
        self._is_declared = fields is not None
        self._matcher = (
            Matcher(Preset(name="fields", title="", source="", kind=kind, fields=fields)) if fields else None
        )
        self._is_guess = False
        self._reported: float | None = None
        self._first: Reading | None = None
        self._begins_again = False
        self.counter = Counter(self._declared.wanted(self._matcher))

    @property
    def preset(self) -> str | None:
        """The name of the preset; None: none is recognised, or the job file names the fields."""
        return self._matcher.name if self._matcher is not None and not self._is_declared else None

    @property
    def is_guess(self) -> bool:
        """Whether nothing proves the preset."""
        return self._is_guess

    @property
    def shared(self) -> tuple[str, ...]:
        """The fields of a document that its records have, too."""
        return self._matcher.shared if self._matcher is not None else ()

    def recognise(self, record: Record | tuple[str, ...]) -> None:
        """Chooses the preset by the names of fields, or guesses what they mean. A sure one is kept."""
        if self._is_declared or (self._matcher is not None and not self._is_guess):
            return
        found = recognition.of_fields(self._matchers, self._kind, record)
        before = self._matcher
        self._is_guess = found is None
        self._matcher = found or _guess(self._kind, tuple(record)) or before
        if self._matcher is not None and (before is None or before.name != self._matcher.name):
            self._reported = self.counter.highest
            self.counter = Counter(self._declared.wanted(self._matcher), self._matcher.name, is_guess=self._is_guess)

    def read(self, record: Record) -> Reading | None:
        """Returns what a record says."""
        return self._matcher.read_record(record) if self._matcher is not None else None

    def take(self, reading: Reading | None, line: str) -> list[Event]:
        """Counts a reading, and returns its events."""
        if reading is None:
            self.tally.missed(line)
            return []
        self.tally.understood()
        events = self.counter.count(self._marked(reading))
        if self._reported is not None and self.counter.highest is not None:
            events, self._reported = handed_over(events, self._reported, self.counter.highest), None
        return self.tally.count(events)

    def _marked(self, reading: Reading) -> Reading:
        """Returns a reading that says that a program begins again, if it does: it appends to the file of a run before.

        The header, or the place and the names of the first record, come again then.
        """
        if not reading.counts:
            return reading
        first = self._first
        is_first_again = first is not None and _place(first) == _place(reading)
        if self._first is None:
            self._first = reading
        begins, self._begins_again = self._begins_again or is_first_again, False
        return replace(reading, begun=True) if begins else reading

    def check_dates(self, _last_lines: Sequence[str], _modified: float | None) -> None:
        """Its records have no dates in front."""

    def problem(self) -> str | None:
        """Returns what a person should know of what was read, if anything."""
        return self.counter.problem()

    def forget(self) -> None:
        """The file began anew, maybe with other fields."""
        self._first, self._begins_again = None, False
        self.counter.begin_file()


class TableReader(Records):
    """Rows of CSV. The first line that is no comment is the header; the same line again is one, too."""

    def __init__(
        self, matchers: Mapping[str, Matcher], declared: Declared | None = None, fields: Fields | None = None
    ) -> None:
        super().__init__(Kind.CSV, matchers, declared, fields)
        self._header: tuple[str, ...] | None = None
        self._separator = ","

    def look(self, line: str) -> tuple[list[str], str]:
        """Returns the cells of a row."""
        separator = self._separator if self._header is not None else max(SEPARATORS, key=line.count)
        try:
            cells = [cell.strip() for cell in next(csv.reader([line], delimiter=separator), [])]
            # Semicolons stand between cells where the comma is for decimals: 1,234 has no thousands.
            return [_with_point(cell) for cell in cells] if separator == ";" else cells, line
        except csv.Error:
            return [], line

    def accept(self, sight: tuple[list[str], str]) -> list[Event]:
        """Returns the events of a row."""
        cells, line = sight
        if not any(cells) or line.startswith("#"):
            return []
        if self._header is None or tuple(cells) == self._header:
            self._begins_again = self._header is not None
            if self._header is None:
                self._separator = max(SEPARATORS, key=line.count)
                self._header = tuple(cells)
                self.recognise(self._header)
            return []
        return self.take(self.read(dict(zip(self._header, cells, strict=False))), line)

    def settle(self) -> list[Event]:
        """No row waits for others."""
        return []

    def begin_file(self) -> None:
        """The header is read again."""
        self._header = None
        self.forget()

    def ends(self, _line: str) -> None:
        """A row ends no run."""
        return

    def problem(self) -> str | None:
        """Returns what a person should know: which declared column is not there, or what is said of the metric."""
        if self._header is None or self._matcher is None or not self._is_declared:
            return super().problem()
        lacking = [name for name in self._matcher.named if name not in self._header]
        if not lacking:
            return super().problem()
        return with_names(f"it has no column {', '.join(lacking)}", self._header)


class JsonReader(Records):
    """JSON lines: records of a preset, or the lines of a progress file."""

    def __init__(
        self,
        matchers: Mapping[str, Matcher],
        declared: Declared | None = None,
        fields: Fields | None = None,
    ) -> None:
        super().__init__(Kind.JSONL, matchers, declared, fields)
        self._is_progress = False

    def look(self, line: str) -> tuple[Record | None, Event | None, str]:
        """Returns the fields of a line, and its event if it is of a progress file."""
        record = json_record(line)
        is_progress = record is not None and record.keys() <= PROGRESS_KEYS
        return record, progress_event(line) if is_progress else None, line

    def accept(self, sight: tuple[Record | None, Event | None, str]) -> list[Event]:
        """Returns the events of a line."""
        record, event, line = sight
        if event is not None and (self._matcher is None or self._is_guess):
            self.tally.understood()
            described, self._is_progress = [] if self._is_progress else [Described(preset=PROGRESS_FILE)], True
            return self.tally.count([*described, event])
        if record is None:
            self.tally.missed(line)
            return []
        self.recognise(record)
        return self.take(self.read(record), line)

    def settle(self) -> list[Event]:
        """No line waits for others."""
        return []

    def begin_file(self) -> None:
        """The next lines are of a file that was begun anew."""
        self.forget()

    def ends(self, line: str) -> bool | None:
        """Returns whether a line ends the run; None: it says nothing."""
        event = progress_event(line)
        return isinstance(event, Ended) if event is not None else None


def _place(reading: Reading) -> tuple[object, ...]:
    return reading.iteration, reading.epoch, reading.step, frozenset(reading.metrics)


def _with_point(cell: str) -> str:
    return cell.replace(",", ".") if _DECIMAL_COMMA.fullmatch(cell) else cell


def json_record(line: str) -> dict[str, object] | None:
    """Returns the fields of a line that is a JSON object; None: it is none."""
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return flat(found) if isinstance(found, dict) else None


@lru_cache(maxsize=256)
def _guess(kind: Kind, fields: tuple[str, ...]) -> Matcher | None:
    """Returns the general preset with the fields that all programs name alike; None where none says where a run is."""

    def of(wanted: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(name for option in wanted for name in fields if _plain(name) == option)

    iteration, epoch = of(_ITERATION), of(_EPOCH)
    if not iteration and not epoch:
        return None
    guessed = Fields(iteration=iteration, epoch=epoch, time=of(_TIME))
    return Matcher(Preset(name=GENERAL, title="", source="recorded", kind=kind, fields=guessed, validates=False))


def _plain(name: str) -> str:
    """Returns a field's name as the tables above have it: ``train/Global Step`` is global_step."""
    return "_".join(names.words(name.rpartition("/")[2].rpartition(".")[2]))
