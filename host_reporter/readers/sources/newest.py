"""The newest of the files that a pattern names: ``run-*/train.log``."""

from __future__ import annotations

import glob
import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from host_reporter.readers.chosen import Chosen
from host_reporter.readers.log_source import ProgressSource

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


class NewestSource(Chosen[Movable]):
    """Waits for a file, or follows the newest one of a pattern: it turns to a newer one when it has read one."""

    def __init__(
        self, pattern: Path, make: Callable[[Path], Movable], *, shown: str | None = None, at_once: bool = False
    ) -> None:
        """``at_once``: a path that is no pattern need not be there yet, since its source waits for it."""
        self._pattern, self._make, self._shown = pattern, make, shown or str(pattern)
        super().__init__()
        self._path: Path | None = None
        self._error: str | None = None
        if at_once and _SIGNS.isdisjoint(str(pattern)):
            self._path, self._source = pattern, make(pattern)

    def problem(self, *, final: bool = False) -> str | None:
        """What a person should know, if anything."""
        if self._source is None:
            return self._error or f"{self._shown}: not there yet"
        return self._source.problem(final=final)

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
