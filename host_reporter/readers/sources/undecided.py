"""A file that does not show yet what it is: it is empty, or its first line is not whole."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from host_reporter.formats.events import Event
from host_reporter.readers.chosen import Chosen
from host_reporter.readers.match_limit import MatchLimit
from host_reporter.readers.sources.newest import Movable


class UndecidedSource(Chosen[Movable]):
    """Waits until a file shows what it is, and reads it then.

    ``make`` returns the source of the file at a path; None: it does not show it yet. Its second argument says that no
    more will come, so that it has to return one.
    """

    def __init__(self, path: Path, make: Callable[[Path, bool], Movable | None]) -> None:
        super().__init__()
        self._path, self._make = path, make

    def poll(self, limit: MatchLimit) -> tuple[list[Event], bool]:
        """Some of the events since the last call, and whether there may be more to read at once."""
        self._look(0.0)
        return super().poll(limit)

    def rest(self, limit: MatchLimit) -> list[Event]:
        """Returns the events of what waits for more: no more will come."""
        events: list[Event] = []
        if self._source is None and (source := self._make(self._path, True)) is not None:
            self._source = source
            events, _ = source.poll(limit)
        return events + super().rest(limit)

    def problem(self, *, final: bool = False) -> str | None:
        """What a person should know, if anything."""
        return self._source.problem(final=final) if self._source is not None else None

    def move(self, path: Path) -> None:
        """Read another file from now on. What was counted stays."""
        self._path = path
        if self._source is not None:
            self._source.move(path)

    def _look(self, _now: float) -> None:
        if self._source is None:
            self._source = self._make(self._path, False)
