"""The source of a job's progress, by what its file is."""

from __future__ import annotations

import fnmatch
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from host_reporter.formats import registry
from host_reporter.formats.matching import Matcher
from host_reporter.formats.outputs.documents import DocumentReader
from host_reporter.formats.outputs.interpreter import Interpreter
from host_reporter.formats.outputs.line_reader import Declared, LineReader
from host_reporter.formats.outputs.records import JsonReader, TableReader
from host_reporter.formats.outputs.undecided import Undecided
from host_reporter.formats.preset import Kind as Format
from host_reporter.formats.recognition import Recognition
from host_reporter.readers.event_files.runs import EventFolders
from host_reporter.readers.lines import MAX_LINE_BYTES
from host_reporter.readers.location import Kind, Location
from host_reporter.readers.log_source import ProgressSource, Source
from host_reporter.readers.sources.document import DocumentSource
from host_reporter.readers.sources.mlflow import MlflowSource, is_metric_file, newest_run
from host_reporter.readers.sources.newest import Movable, NewestSource
from host_reporter.readers.sources.undecided import UndecidedSource
from host_reporter.readers.tail import Tail

_FIRST_BYTES = 2 * MAX_LINE_BYTES
"""The first line is whole in so many bytes, unless it is too long to be read."""

_LINES = 4
_DOCKER = b'{"log":'
_BY_FORMAT: Mapping[Format, Kind] = {
    Format.LINES: "log",
    Format.CSV: "csv",
    Format.JSONL: "jsonl",
    Format.DOCUMENT: "trainer-state",
}
_SUFFIXES: Mapping[str, Kind] = {".csv": "csv", ".tsv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl"}
_EVENT_FILE = "tfevents"


@dataclass(frozen=True)
class Wish:
    """What a job file says of the output: its format (None: auto), and its metric."""

    matcher: Matcher | None = None
    declared: Declared | None = None
    end_pattern: str | None = None
    """A line that matches it ends the job."""


ANY = Wish()


def auto_source(location: Location, wish: Wish = ANY) -> ProgressSource:
    """Returns the source of what is at the location. It recognises the preset by itself, unless ``wish`` names one."""
    try:
        is_there = location.path.exists()
    except OSError:
        # It may not be looked at; the source that waits for it says why.
        is_there = False
    if is_there:
        return _movable(location, wish)
    return NewestSource(location.path, lambda path: _movable(_at(location, path), wish), shown=location.shown)


def _at(location: Location, path: Path) -> Location:
    """Returns the location of a file that has come: the one that was named, or one of a pattern, which is no link."""
    if path == location.path:
        return location
    return replace(location, path=path, shown=str(path), follow_links=False)


def _movable(location: Location, wish: Wish) -> Movable:
    kind = location.kind or (_BY_FORMAT[wish.matcher.preset.kind] if wish.matcher is not None else _told_kind(location))
    if kind is not None:
        return _of_kind(kind, location, wish)

    def make(path: Path, is_final: bool) -> Movable | None:
        place = _at(location, path)
        told = _told_kind(place) or ("log" if is_final else None)
        return _of_kind(told, place, wish) if told is not None else None

    return UndecidedSource(location.path, make)


def _of_kind(kind: Kind, location: Location, wish: Wish) -> Movable:
    if kind == "mlflow":
        return MlflowSource(location.path, wish.declared or Declared())
    if kind == "tensorboard":
        folder = location.path.parent if _EVENT_FILE in location.path.name else location.path
        return EventFolders(
            folder, wish.declared or Declared(), follow_links=location.follow_links, owner=location.owner
        )
    matchers = {wish.matcher.name: wish.matcher} if wish.matcher is not None else registry.available()
    if kind == "trainer-state":
        return DocumentSource(
            location.path,
            DocumentReader(matchers, wish.declared),
            shown=location.shown,
            follow_links=location.follow_links,
            owner=location.owner,
            or_public=location.or_public,
        )
    return Source(_tail(location), _reader(kind, wish, matchers, ranks_in_brackets=location.ranks_in_brackets))


def _reader(kind: Kind, wish: Wish, matchers: Mapping[str, Matcher], *, ranks_in_brackets: bool) -> LineReader:
    if kind == "csv":
        return TableReader(matchers, wish.declared)
    if kind == "jsonl":
        return JsonReader(matchers, wish.declared)
    if wish.matcher is not None:
        return Interpreter(Recognition.declared(wish.matcher), wish.declared, end_pattern=wish.end_pattern)
    text = Interpreter(
        Recognition(matchers), wish.declared, end_pattern=wish.end_pattern, ranks_in_brackets=ranks_in_brackets
    )
    return Undecided(text, TableReader(matchers, wish.declared), JsonReader(matchers, wish.declared))


def kind_of(location: Location) -> Kind:
    """Returns what kind of file it is, by its name and its first lines. One that shows nothing so far is a log."""
    return _told_kind(location) or "log"


def _told_kind(location: Location) -> Kind | None:
    """Returns what kind of file it is; None: its name does not tell it, nor do its first lines so far."""
    path = location.path
    if path.is_dir():
        return "mlflow" if newest_run(path) is not None else "tensorboard"
    if is_metric_file(path):
        return "mlflow"
    name = Path(location.shown).name
    if _EVENT_FILE in name:
        return "tensorboard"
    for matcher in registry.available().values():
        if any(fnmatch.fnmatchcase(name, pattern) for pattern in matcher.preset.files):
            return _BY_FORMAT[matcher.preset.kind]
    suffix = Path(name).suffix.lower()
    if suffix in _SUFFIXES:
        return _SUFFIXES[suffix]
    first = _first_bytes(location)
    # The source of a log says why a file cannot be read.
    return _by_content(first, is_json=suffix == ".json") if first is not None else "log"


def _by_content(first: bytes, *, is_json: bool) -> Kind | None:
    lines = [line for line in first.lstrip(b"\xef\xbb\xbf\0").splitlines()[:_LINES] if line.strip()]
    is_cut = len(first) == _FIRST_BYTES
    if not lines:
        return "log" if is_cut else None
    if lines[0].startswith(_DOCKER) or not lines[0].startswith(b"{"):
        return "log"
    whole = lines if first.endswith(b"\n") or is_cut or len(lines) == _LINES else lines[:-1]
    if not whole:
        return None
    if is_json:
        return "jsonl" if _is_record(whole[0]) else "trainer-state"
    if not all(map(_is_record, whole)):
        return "log"
    # One line of JSON may be the settings that a log begins with.
    return "jsonl" if len(lines) > 1 else None


def _is_record(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


def _first_bytes(location: Location) -> bytes | None:
    """Returns the beginning of a file; None where it cannot be opened."""
    tail = _tail(location)
    try:
        first = tail.first_bytes(_FIRST_BYTES)
        return first if tail.size is not None else None
    finally:
        tail.close()


def _tail(location: Location) -> Tail:
    return Tail(
        location.path,
        follow_links=location.follow_links,
        shown=location.shown,
        owner=location.owner,
        or_public=location.or_public,
    )
