"""The SQLite file of the journal: its format, its checksums, and what older formats become.

Format 3 has a checksum with every row, so that a row is found that was damaged or edited: one that reads well but says
what the controller has not written. Format 2 has none; it is read as it is, and the first write makes it format 3, in
the same transaction, so that a full disk keeps nobody from reading it.
"""

from __future__ import annotations

import contextlib
import math
import os
import sqlite3
import stat
import struct
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

FORMAT = 3
WITHOUT_CHECKSUMS = 2
BUSY_SECONDS = 1.0
PRIVATE = 0o600
"""Only the controller's own user reads the journal: it holds what jobs are called, and on which hosts they run."""
POINT = "point"
"""The kind under which a job's points are in ``Contents.damaged``, beside the kinds of records."""
_SCHEMA = """
CREATE TABLE IF NOT EXISTS record (kind TEXT NOT NULL, id TEXT NOT NULL, body TEXT NOT NULL, checksum INTEGER,
    PRIMARY KEY (kind, id)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS point (job TEXT NOT NULL, iteration REAL NOT NULL, time REAL NOT NULL, metric REAL,
    checksum INTEGER);
CREATE INDEX IF NOT EXISTS point_by_job ON point (job);
"""
_ADD_CHECKSUMS = """
ALTER TABLE record ADD COLUMN checksum INTEGER;
ALTER TABLE point ADD COLUMN checksum INTEGER;
UPDATE record SET checksum = checksum_of_record(kind, id, body);
UPDATE point SET checksum = checksum_of_point(job, iteration, time, metric);
"""
_three_numbers = struct.Struct("<ddd").pack
Key = tuple[str, str]
"""Kind and id of a record."""
Point = tuple[float, float, float | None]
"""Iteration, time, metric."""


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
    """All that a journal held: bodies by kind and id, and points by job. Only the checksums of it are checked yet.

    ``damaged``: the records whose checksums are wrong, and the jobs (kind POINT) that have such points.
    """

    records: Mapping[str, Mapping[str, str]]
    points: Mapping[str, tuple[Point, ...]]
    path: Path | None = None
    damaged: frozenset[Key] = frozenset()


def checksum_of_record(kind: str, record_id: str, body: str) -> int:
    """CRC-32 over all that a record is: it finds accidents and edits, not who computes it anew."""
    return zlib.crc32("\0".join((kind, record_id, body)).encode())


def checksum_of_point(job: str, iteration: float, time: float, metric: float | None) -> int | None:
    """CRC-32 over a point's numbers as eight bytes each; None, which no row should have, where one is no number."""
    try:
        # SQLite keeps no negative zero, and for NaN, which no metric is, nothing.
        numbers = _three_numbers(iteration + 0.0, time + 0.0, math.nan if metric is None else metric + 0.0)
    except (TypeError, struct.error):
        return None
    return zlib.crc32(numbers, _checksum_of_name(job))


@lru_cache(maxsize=4096)
def _checksum_of_name(job: str) -> int:
    return zlib.crc32(job.encode())


def keep_private(path: Path) -> None:
    """See to it that the file at ``path``, which is made if it is not there, is its owner's alone. Raises OSError."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, PRIVATE))
    except FileExistsError:
        # Not by opening them: closing an open file gives up all locks that this process has on it.
        for each in (path, path.with_name(f"{path.name}-wal"), path.with_name(f"{path.name}-journal")):
            # Somebody else's file is used as it is; SQLite gives what it makes beside it the same rights.
            with contextlib.suppress(FileNotFoundError, PermissionError):
                if stat.S_IMODE(each.stat().st_mode) & 0o077:
                    each.chmod(PRIVATE)


def connect(path: Path, identity: int) -> sqlite3.Connection:
    """The journal at ``path``; a new one gets ``identity``. Raises sqlite3.Error, OSError or ValueError."""
    keep_private(path)
    # Exclusive locking keeps a second controller out, and needs no shared-memory file beside the journal.
    connection = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
    try:
        connection.execute("PRAGMA locking_mode=EXCLUSIVE")
        version = _format(connection)
        if version not in (0, WITHOUT_CHECKSUMS, FORMAT):
            raise ValueError(f"its format is {version}, this controller's is {FORMAT}")
        if version == 0 and connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            raise ValueError("it is a database, but no journal")
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=NORMAL")
        # Takes the lock for good, so that a second controller fails here and not in the middle. Nothing is written
        # to a journal that is there: with a full disk it can still be read.
        connection.execute("BEGIN IMMEDIATE")
        if version == 0:
            _run(connection, _SCHEMA)
            connection.execute(f"PRAGMA application_id={identity}")
            connection.execute(f"PRAGMA user_version={FORMAT}")
        connection.execute("COMMIT")
    except BaseException:
        connection.close()
        raise
    return connection


def identity_of(connection: sqlite3.Connection) -> int:
    """What tells this journal from another one at the same place."""
    return int(connection.execute("PRAGMA application_id").fetchone()[0])


def holds_something(connection: sqlite3.Connection) -> bool:
    """Whether there is anything in the journal."""
    query = "SELECT EXISTS (SELECT 1 FROM record) OR EXISTS (SELECT 1 FROM point)"
    return bool(connection.execute(query).fetchone()[0])


def read(connection: sqlite3.Connection, path: Path) -> Contents:
    """All that the journal holds. Raises sqlite3.Error."""
    has_checksums = _format(connection) == FORMAT
    checksum = "checksum" if has_checksums else "NULL"
    damaged: set[Key] = set()
    records: dict[str, dict[str, str]] = {}
    for kind, record_id, body, known in connection.execute(f"SELECT kind, id, body, {checksum} FROM record"):  # noqa: S608 - one of two words
        key = str(kind), str(record_id)
        records.setdefault(key[0], {})[key[1]] = str(body)
        if has_checksums and known != checksum_of_record(*key, str(body)):
            damaged.add(key)
    points: dict[str, list[Point]] = {}
    for job, *point, known in connection.execute(f"SELECT job, iteration, time, metric, {checksum} FROM point"):  # noqa: S608 - as above
        points.setdefault(job, []).append((point[0], point[1], point[2]))
        if has_checksums and (known is None or known != checksum_of_point(str(job), *points[job][-1])):
            damaged.add((POINT, str(job)))
    return Contents(records, {job: tuple(its) for job, its in points.items()}, path, frozenset(damaged))


def apply(connection: sqlite3.Connection, batch: Batch) -> None:
    """Commit a batch. Raises sqlite3.Error, and then nothing of it is in the file."""
    with connection:
        connection.execute("BEGIN IMMEDIATE")
        if _format(connection) == WITHOUT_CHECKSUMS:
            _add_checksums(connection)
        if batch.whole:
            connection.execute("DELETE FROM record")
            connection.execute("DELETE FROM point")
        gone = [key for key, body in batch.records.items() if body is None]
        kept = [(*key, body, checksum_of_record(*key, body)) for key, body in batch.records.items() if body is not None]
        connection.executemany("DELETE FROM record WHERE kind = ? AND id = ?", gone)
        connection.executemany("INSERT OR REPLACE INTO record (kind, id, body, checksum) VALUES (?, ?, ?, ?)", kept)
        connection.executemany("DELETE FROM point WHERE job = ?", [(job,) for job in batch.cleared])
        connection.executemany(
            "INSERT INTO point (job, iteration, time, metric, checksum) VALUES (?, ?, ?, ?, ?)",
            ((job, *point, checksum_of_point(job, *point)) for job, points in batch.points.items() for point in points),
        )


def write_something(connection: sqlite3.Connection) -> None:
    """Commit a page that says what it said before. Raises sqlite3.Error where nothing can be written."""
    with connection:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute(f"PRAGMA user_version={_format(connection)}")


def _add_checksums(connection: sqlite3.Connection) -> None:
    connection.create_function("checksum_of_record", 3, checksum_of_record, deterministic=True)
    connection.create_function("checksum_of_point", 4, checksum_of_point, deterministic=True)
    _run(connection, _ADD_CHECKSUMS)
    connection.execute(f"PRAGMA user_version={FORMAT}")


def _run(connection: sqlite3.Connection, statements: str) -> None:
    # Not executescript, which would commit first.
    for statement in statements.split(";"):
        connection.execute(statement)


def _format(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])
