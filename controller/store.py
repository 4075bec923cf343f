"""The journal: a SQLite file that holds what the registry and the loop must know again after a restart.

It is a copy, written behind: memory is what counts. ``put``, ``remove`` and ``replace_points`` only note what has
changed; ``take`` hands the notes out as one batch and ``write`` commits it. ``write`` may run in another thread, one
at a time; everything else belongs to the controller's own.

What is promised: a committed batch survives the end of the process, ``kill -9`` included. A power cut may cost
the last seconds (WAL with ``synchronous=NORMAL``: the file stays whole, the newest commits may be missing). When a
write fails, the journal is *degraded*: nothing is noted any more, so memory stays bounded, and the next attempt
rewrites everything from the state in memory. A file is rewritten only if it is the one that was read, or empty: one
that appears later (a disk that is mounted late) holds what this controller does not know.
"""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

SCHEMA_VERSION = 2
BUSY_SECONDS = 1.0
_SCHEMA = """
CREATE TABLE IF NOT EXISTS record (kind TEXT NOT NULL, id TEXT NOT NULL, body TEXT NOT NULL, PRIMARY KEY (kind, id))
    WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS point (job TEXT NOT NULL, iteration REAL NOT NULL, time REAL NOT NULL, metric REAL);
CREATE INDEX IF NOT EXISTS point_by_job ON point (job);
"""
Key = tuple[str, str]
Point = tuple[float, float, float | None]
"""Iteration, time, metric."""


class StoreError(RuntimeError):
    """A journal that is there but cannot be used; the message says what would be right."""


@dataclass
class Batch:
    """Changes to be committed together. A body of None removes. ``whole``: they are everything there is."""

    records: dict[Key, str | None] = field(default_factory=dict)
    cleared: set[str] = field(default_factory=set)
    points: dict[str, list[Point]] = field(default_factory=dict)
    whole: bool = False

    def __bool__(self) -> bool:
        return bool(self.records or self.cleared or self.points or self.whole)


@dataclass(frozen=True)
class Contents:
    """All that a journal held: bodies by kind and id, and points by job; nothing of it is checked yet."""

    records: Mapping[str, Mapping[str, str]]
    points: Mapping[str, tuple[Point, ...]]
    path: Path | None = None


class Store:
    """The journal at ``path``; None keeps nothing, and is never degraded.

    Raises StoreError where a file is there that is no journal, is another controller's, or cannot be read.
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.failure: str | None = None
        self._noted = Batch()
        self._writing = False
        self._sources: list[Callable[[Batch], None]] = []
        self._on_note: Callable[[], None] = lambda: None
        self._connection: sqlite3.Connection | None = None
        self._loaded = Contents({}, {}, path)
        # Tells this journal from another one at the same place; a file that is made from here on gets it.
        self._identity = random.SystemRandom().randrange(1, 2**31)
        if path is not None:
            self._open_first(path)

    @property
    def persistent(self) -> bool:
        """Whether there is a journal at all."""
        return self.path is not None

    @property
    def pending(self) -> bool:
        """Whether something waits to be committed."""
        return bool(self._noted)

    def contents(self) -> Contents:
        """What the journal held when it was opened."""
        return self._loaded

    def add_source(self, source: Callable[[Batch], None]) -> None:
        """Have ``source`` add its part of the whole state when everything must be rewritten."""
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
        """Note that a record goes."""
        if self._noting:
            self._noted.records[(kind, record_id)] = None
            self._on_note()

    def add_points(self, job: str, points: Iterable[Point]) -> None:
        """Note points of a job beside those that are there."""
        if self._noting:
            self._noted.points.setdefault(job, []).extend(points)
            self._on_note()

    def replace_points(self, job: str, points: Iterable[Point]) -> None:
        """Note that these are all points of a job."""
        if self._noting:
            self._noted.cleared.add(job)
            self._noted.points[job] = list(points)
            self._on_note()

    @property
    def _noting(self) -> bool:
        return self.path is not None and (self.failure is None or self._writing)

    def take(self) -> Batch:
        """What was noted since; everything, where the journal is degraded. ``settle`` must follow."""
        self._writing = True
        if self.failure is not None:
            whole = Batch(whole=True)
            for source in self._sources:
                source(whole)
            return whole
        batch, self._noted = self._noted, Batch()
        return batch

    def write(self, batch: Batch) -> str | None:
        """Commit a batch; what went wrong, or None. Touches nothing but the file: safe in another thread."""
        if self.path is None:
            return None
        try:
            if self._connection is None:
                self._connection = _connect(self.path, self._identity)
                if _identity(self._connection) != self._identity and _holds_something(self._connection):
                    self._drop_connection()
                    return (
                        f"{self.path}: another journal has appeared there, which is left as it is; restart the "
                        "controller to go on from that one, or move it away to keep what is in memory"
                    )
            with self._connection:
                self._connection.execute("BEGIN IMMEDIATE")
                _apply(self._connection, batch)
        except (sqlite3.Error, OSError, ValueError) as error:
            self._drop_connection()
            return f"{self.path}: {error}"
        return None

    def settle(self, failure: str | None) -> bool:
        """Take the outcome of ``write`` into account; whether it is another one than before."""
        self._writing = False
        changed = failure != self.failure
        self.failure = failure
        if failure is not None:
            self._noted = Batch()
        return changed

    def close(self) -> None:
        """Give the file back."""
        self._drop_connection()

    def _open_first(self, path: Path) -> None:
        existed = _holds_bytes(path)
        try:
            self._connection = _connect(path, self._identity)
            self._identity = _identity(self._connection)
            self._loaded = _read(self._connection, path)
        except (sqlite3.Error, OSError, ValueError) as error:
            self._drop_connection()
            if existed:
                raise StoreError(
                    f"journal {path}: {error}; it is another program's, damaged, or in use by another controller: "
                    "name another file, or move this one away"
                ) from error
            self.failure = f"{path}: {error}"

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
    except OSError:  # it is not there, or its name cannot be one: opening it says which
        return False


def _connect(path: Path, identity: int) -> sqlite3.Connection:
    # Exclusive locking keeps a second controller out, and needs no shared-memory file beside the journal.
    connection = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
    try:
        connection.execute("PRAGMA locking_mode=EXCLUSIVE")
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        if version not in (0, SCHEMA_VERSION):
            raise ValueError(f"its format is {version}, this controller's is {SCHEMA_VERSION}")
        if version == 0 and connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            raise ValueError("it is a database, but no journal")
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=NORMAL")
        # Takes the lock for good, so that a second controller fails here and not in the middle. Nothing is written
        # to a journal that is there: with a full disk it can still be read.
        connection.execute("BEGIN IMMEDIATE")
        if version == 0:
            for statement in _SCHEMA.split(";"):
                connection.execute(statement)
            connection.execute(f"PRAGMA application_id={identity}")
            connection.execute(f"PRAGMA user_version={SCHEMA_VERSION}")
        connection.execute("COMMIT")
    except BaseException:
        connection.close()
        raise
    return connection


def _identity(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA application_id").fetchone()[0])


def _holds_something(connection: sqlite3.Connection) -> bool:
    query = "SELECT EXISTS (SELECT 1 FROM record) OR EXISTS (SELECT 1 FROM point)"
    return bool(connection.execute(query).fetchone()[0])


def _read(connection: sqlite3.Connection, path: Path) -> Contents:
    records: dict[str, dict[str, str]] = {}
    for kind, record_id, body in connection.execute("SELECT kind, id, body FROM record"):
        records.setdefault(str(kind), {})[str(record_id)] = str(body)
    points: dict[str, list[Point]] = {}
    for job, iteration, time, metric in connection.execute("SELECT job, iteration, time, metric FROM point"):
        points.setdefault(job, []).append((iteration, time, metric))
    return Contents(records, {job: tuple(its) for job, its in points.items()}, path)


def _apply(connection: sqlite3.Connection, batch: Batch) -> None:
    if batch.whole:
        connection.execute("DELETE FROM record")
        connection.execute("DELETE FROM point")
    gone = [key for key, body in batch.records.items() if body is None]
    kept = [(*key, body) for key, body in batch.records.items() if body is not None]
    connection.executemany("DELETE FROM record WHERE kind = ? AND id = ?", gone)
    connection.executemany("INSERT OR REPLACE INTO record VALUES (?, ?, ?)", kept)
    connection.executemany("DELETE FROM point WHERE job = ?", [(job,) for job in batch.cleared])
    connection.executemany(
        "INSERT INTO point VALUES (?, ?, ?, ?)",
        ((job, *point) for job, points in batch.points.items() for point in points),
    )
