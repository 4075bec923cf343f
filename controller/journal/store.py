"""The journal: a SQLite file that holds what the registry and the loop must know again after a restart.

It is a copy that is written later; the state in memory is what counts. ``put``, ``remove`` and ``replace_points`` only
note what has changed. ``dequeue_in_steps`` returns the notes as one batch, and ``write`` commits it. ``write`` and
``probe`` may run in another thread, one at a time; everything else belongs to the controller's own thread.

A committed batch survives the end of the process, ``kill -9`` included. A power cut may cost the last seconds (WAL with
``synchronous=NORMAL``: the file stays whole, the newest commits may be missing). When a write fails, the journal is
*degraded*: it notes nothing any more, so that memory stays bounded. Once ``probe`` finds that the file can be written,
everything is rewritten from the state in memory. A file is rewritten only if it is the one that was read, or empty. A
file that appears later (on a disk that is mounted late) holds a state that this controller does not know.
"""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Callable, Iterable
from pathlib import Path

from controller.journal.file import (
    Batch,
    Contents,
    Key,
    Point,
    apply,
    connect,
    holds_something,
    identity_of,
    read,
    write_something,
)
from controller.pieces import Steps

__all__ = ["Batch", "Contents", "Key", "Point", "Store", "StoreError", "put"]


class StoreError(RuntimeError):
    """A journal file exists but cannot be used. The message says what would help."""


class Store:
    """The journal at ``path``; None keeps nothing, and is never degraded.

    Raises StoreError where the file exists but is no journal, is in use by another controller, or cannot be read.
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.failure: str | None = None
        self._noted = Batch()
        self._writing = False
        self._sources: list[Callable[[Batch], Steps[None]]] = []
        self._on_note: Callable[[], None] = lambda: None
        self._connection: sqlite3.Connection | None = None
        self._loaded = Contents({}, {}, path)
        # It distinguishes this journal from another one at the same path. A new file gets it.
        self._identity = random.SystemRandom().randrange(1, 2**31)
        if path is not None:
            self._open_first(path)

    @property
    def persistent(self) -> bool:
        """Returns whether there is a journal at all."""
        return self.path is not None

    @property
    def pending(self) -> bool:
        """Returns whether something waits to be committed."""
        return bool(self._noted)

    def contents(self) -> Contents:
        """Returns what the journal held when it was opened."""
        return self._loaded

    def add_source(self, source: Callable[[Batch], Steps[None]]) -> None:
        """Have ``source`` add its part of the whole state when everything must be rewritten.

        It yields where others may go on. What they change is noted, and written after the whole.
        """
        self._sources.append(source)

    def on_note(self, callback: Callable[[], None]) -> None:
        """Call ``callback`` whenever something waits to be committed."""
        self._on_note = callback

    def put(self, kind: str, record_id: str, body: str) -> None:
        """Note a record, as JSON; one of the same kind and id is replaced."""
        if self._noting:
            put(self._noted, kind, record_id, body)
            self._on_note()

    def remove(self, kind: str, record_id: str) -> None:
        """Note that a record is removed."""
        if self._noting:
            self._noted.records[(kind, record_id)] = None
            self._on_note()

    def add_points(self, job: str, points: Iterable[Point]) -> None:
        """Note further points of a job."""
        if self._noting:
            self._noted.points.setdefault(job, []).extend(points)
            self._on_note()

    def replace_points(self, job: str, points: Iterable[Point]) -> None:
        """Note that these points replace all others of a job."""
        if self._noting:
            self._noted.cleared.add(job)
            self._noted.points[job] = list(points)
            self._on_note()

    @property
    def _noting(self) -> bool:
        return self.path is not None and (self.failure is None or self._writing)

    def dequeue_in_steps(self) -> Steps[Batch]:
        """Returns what was noted since the last call; everything, where it is degraded. ``settle`` must follow.

        Yields where others may go on, and only if everything is returned.
        """
        self._writing = True
        if self.failure is not None:
            everything = Batch(whole=True)
            for source in self._sources:
                yield from source(everything)
            return everything
        batch, self._noted = self._noted, Batch()
        return batch

    def write(self, batch: Batch) -> str | None:
        """Commit a batch; returns what went wrong, or None. It uses the file alone: another thread may call it."""
        return self._on_file(lambda connection: apply(connection, batch))

    def probe(self) -> str | None:
        """Write one page; returns what went wrong, or None. Another thread may call it, like ``write``."""
        return self._on_file(write_something)

    def _on_file(self, act: Callable[[sqlite3.Connection], None]) -> str | None:
        if self.path is None:
            return None
        try:
            if self._connection is None:
                self._connection = connect(self.path, self._identity)
                if identity_of(self._connection) != self._identity and holds_something(self._connection):
                    self._drop_connection()
                    return (
                        f"{self.path}: another journal has appeared there, which is left as it is; restart the "
                        "controller to go on from that one, or move it away to keep what is in memory"
                    )
            act(self._connection)
        except (sqlite3.Error, OSError, ValueError) as error:
            self._drop_connection()
            return _in_words(self.path, error)
        return None

    def settle(self, failure: str | None) -> bool:
        """Note the outcome of ``write``; returns whether it differs from the one before."""
        self._writing = False
        changed = failure != self.failure
        self.failure = failure
        if failure is not None:
            self._noted = Batch()
        return changed

    def close(self) -> None:
        """Close the file."""
        self._drop_connection()

    def _open_first(self, path: Path) -> None:
        existed = _holds_bytes(path)
        try:
            self._connection = connect(path, self._identity)
            self._identity = identity_of(self._connection)
            self._loaded = read(self._connection, path)
        except (sqlite3.Error, OSError, ValueError) as error:
            self._drop_connection()
            if existed:
                raise StoreError(
                    f"journal {_in_words(path, error)}; it is another program's, damaged, or in use by another "
                    "controller: name another file, or move this one away"
                ) from error
            self.failure = _in_words(path, error)

    def _drop_connection(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            try:
                connection.close()
            except sqlite3.Error as error:
                self.failure = self.failure or f"{self.path}: {error}"


def put(batch: Batch, kind: str, record_id: str, body: str) -> None:
    """Add a record to a batch, as JSON."""
    batch.records[(kind, record_id)] = body


def _holds_bytes(path: Path) -> bool:
    try:
        return path.stat().st_size > 0
    except OSError:  # it does not exist, or its name is impossible: opening it says which
        return False


def _in_words(path: Path, error: Exception) -> str:
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    if isinstance(error, FileNotFoundError):
        reason = f"its folder {path.parent} is not there; make it, for the controller's user alone (mode 0700)"
    return f"{path}: {reason}"
