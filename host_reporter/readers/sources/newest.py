"""The newest of the files that a pattern names: ``run-*/train.log``."""

from __future__ import annotations

import glob
import itertools
import time
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from host_reporter.formats.events import Event
from host_reporter.readers.log_source import ProgressSource
from host_reporter.readers.match_limit import MatchLimit

MAX_FILES = 10_000
"""Look at no more files of a pattern than this."""

LOOK_SECONDS = 1.0
"""Look for a newer file at most this often."""

_SIGNS = frozenset("*?[")


def newest(pattern: Path) -> Path | None:
    """Returns the file or folder of the pattern that was changed last; None where there is none.

    A path that is no pattern, or the very name of a file, means itself. Raises OSError where it may not be looked at.
    """
    if _SIGNS.isdisjoint(str(pattern)) or pattern.exists():
        return pattern if pattern.exists() else None
    found: list[tuple[float, str]] = []
    for name in itertools.islice(glob.iglob(str(pattern), recursive=True), MAX_FILES):  # noqa: PTH207 - absolute
        try:
            found.append((Path(name).stat().st_mtime, name))
        except OSError:
            continue
    return Path(max(found)[1]) if found else None


class Movable(ProgressSource, Protocol):
    """A source that can go on with another file."""

    def move(self, path: Path) -> None:
        """Read another file from now on; what was counted stays."""


class NewestSource:
    """Waits for a file, or follows the newest one of a pattern: it turns to a newer one when it has read one."""

    def __init__(
        self, pattern: Path, make: Callable[[Path], Movable], *, shown: str | None = None, at_once: bool = False
    ) -> None:
        """``at_once``: a path that is no pattern need not be there yet, since its source waits for it."""
        self._pattern, self._make, self._shown = pattern, make, shown or str(pattern)
        self._source: Movable | None = None
        self._path: Path | None = None
        self._error: str | None = None
        self._looked_at = float("-inf")
        if at_once and _SIGNS.isdisjoint(str(pattern)):
            self._path, self._source = pattern, make(pattern)

    @property
    def matched(self) -> int:
        """How many lines were understood."""
        return self._source.matched if self._source is not None else 0

    @property
    def unmatched(self) -> int:
        """How many lines were not."""
        return self._source.unmatched if self._source is not None else 0

    @property
    def samples(self) -> tuple[str, ...]:
        """The first few lines that were not understood."""
        return self._source.samples if self._source is not None else ()

    @property
    def is_costly(self) -> bool:
        """Whether its lines take too long."""
        return self._source is not None and self._source.is_costly

    @property
    def has_begun(self) -> bool:
        """Whether something of it was read."""
        return self._source is not None and self._source.has_begun

    def poll(self, limit: MatchLimit) -> tuple[list[Event], bool]:
        """Some of the events since the last call, and whether there may be more to read at once."""
        events: list[Event] = []
        more = False
        if self._source is not None:
            events, more = self._source.poll(limit)
        if not more and not events:
            self._look(time.monotonic())
        return events, more

    def rest(self, limit: MatchLimit) -> list[Event]:
        """Returns the events of what waits for more."""
        return self._source.rest(limit) if self._source is not None else []

    def aim(self) -> None:
        """Note how much there is to read now."""
        self._looked_at = float("-inf")
        self._look(time.monotonic())
        if self._source is not None:
            self._source.aim()

    @property
    def is_there(self) -> bool:
        """Whether all that there was at ``aim`` was read."""
        return self._source is None or self._source.is_there

    @property
    def modified(self) -> float | None:
        """When what is read was last written."""
        return self._source.modified if self._source is not None else None

    def seems_over(self, limit: MatchLimit) -> bool:
        """Returns whether the last event seems to be an end."""
        return self._source is not None and self._source.seems_over(limit)

    def problem(self, *, final: bool = False) -> str | None:
        """What a person should know, if anything."""
        if self._source is None:
            return self._error or f"{self._shown}: not there yet"
        return self._source.problem(final=final)

    def close(self) -> None:
        """Let go of the file."""
        if self._source is not None:
            self._source.close()

    def _look(self, now: float) -> None:
        """Turn to the newest file. A path without a pattern is looked for until it is there."""
        if self._source is not None and self._path == self._pattern:
            return
        if now - self._looked_at < LOOK_SECONDS:
            return
        self._looked_at = now
        try:
            path = newest(self._pattern)
        except OSError as error:
            self._error = f"{self._shown}: {error.strerror}"
            return
        self._error = None
        if path is None or path == self._path:
            return
        self._path = path
        if self._source is None:
            self._source = self._make(path)
        else:
            self._source.move(path)
