"""The SQLite file of the journal: its format, its checksums, and the conversion of older formats.

Format 3 has a checksum in every row, which reveals a row that was damaged or edited. Format 2 has none. It is read as
it is, and the first write converts it to format 3 in the same transaction, so that it can be read even on a full disk.
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
"""Let only the controller's own user read the journal: it holds the names of jobs and the hosts that they run on."""
POINT = "point"
"""``Contents.damaged`` lists a job's points under this kind, beside the kinds of records."""
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
    """Changes to be committed together. A body of None removes the record. ``whole``: they replace everything."""

    records: dict[Key, str | None] = field(default_factory=dict)
    cleared: set[str] = field(default_factory=set)
    points: dict[str, list[Point]] = field(default_factory=dict)
    whole: bool = False

    def __bool__(self) -> bool:
        return bool(self.records or self.cleared or self.points or self.whole)


@dataclass(frozen=True)
class Contents:
    """The contents of a journal: bodies by kind and id, and points by job. So far only the checksums are checked.

    ``damaged``: the records whose checksums are wrong, and the jobs (kind POINT) that have such points.
    """

    records: Mapping[str, Mapping[str, str]]
    points: Mapping[str, tuple[Point, ...]]
    path: Path | None = None
    damaged: frozenset[Key] = frozenset()


def checksum_of_record(kind: str, record_id: str, body: str) -> int:
    """Returns the CRC-32 of a record. It reveals accidents and edits, but no forger who computes it anew."""
    return zlib.crc32("\0".join((kind, record_id, body)).encode())


def checksum_of_point(job: str, iteration: float, time: float, metric: float | None) -> int | None:
    """Returns the CRC-32 of a point's numbers as eight bytes each; None, which no row has, where one is no number."""
    try:
        # SQLite stores negative zero as zero, and NaN, which no metric is, as NULL.
        numbers = _three_numbers(iteration + 0.0, time + 0.0, math.nan if metric is None else metric + 0.0)
    except (TypeError, struct.error):
        return None
    return zlib.crc32(numbers, _checksum_of_name(job))


@lru_cache(maxsize=4096)
def _checksum_of_name(job: str) -> int:
    return zlib.crc32(job.encode())


def keep_private(path: Path) -> None:
    """Create the file at ``path`` if it does not exist, and let only its owner read and write it. Raises OSError."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, PRIVATE))
    except FileExistsError:
        # They are not opened: closing a file gives up all locks that this process has on it.
        for each in (path, path.with_name(f"{path.name}-wal"), path.with_name(f"{path.name}-journal")):
            # A file of another user is used as it is; SQLite gives the files beside it the same permissions.
            with contextlib.suppress(FileNotFoundError, PermissionError):
                if stat.S_IMODE(each.stat().st_mode) & 0o077:
                    each.chmod(PRIVATE)


def connect(path: Path, identity: int) -> sqlite3.Connection:
    """Open the journal at ``path``; a new one gets ``identity``. Raises sqlite3.Error, OSError or ValueError."""
    keep_private(path)
    # Exclusive locking keeps a second controller out, and needs no shared-memory file.
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
        # This takes the lock for good, so that a second controller fails here and not later. An existing journal is
        # not written: it can be read even on a full disk.
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
    """Returns the number that distinguishes this journal from another one at the same path."""
    return int(connection.execute("PRAGMA application_id").fetchone()[0])


def holds_something(connection: sqlite3.Connection) -> bool:
    """Returns whether there is anything in the journal."""
    query = "SELECT EXISTS (SELECT 1 FROM record) OR EXISTS (SELECT 1 FROM point)"
    return bool(connection.execute(query).fetchone()[0])


def read(connection: sqlite3.Connection, path: Path) -> Contents:
    """Returns everything that the journal holds. Raises sqlite3.Error."""
    has_checksums = _format(connection) == FORMAT
    checksum = "checksum" if has_checksums else "NULL"
    damaged: set[Key] = set()
    records: dict[str, dict[str, str]] = {}
    for kind, record_id, body, known in connection.execute(f"SELECT kind, id, body, {checksum} FROM record"):  # noqa: S608 - checksum is one of two constants
        key = str(kind), str(record_id)
        records.setdefault(key[0], {})[key[1]] = str(body)
        if has_checksums and known != checksum_of_record(*key, str(body)):
            damaged.add(key)
    points: dict[str, list[Point]] = {}
    for job, *point, known in connection.execute(f"SELECT job, iteration, time, metric, {checksum} FROM point"):  # noqa: S608 - checksum is one of two constants
        points.setdefault(job, []).append((point[0], point[1], point[2]))
        if has_checksums and (known is None or known != checksum_of_point(str(job), *points[job][-1])):
            damaged.add((POINT, str(job)))
    return Contents(records, {job: tuple(rows) for job, rows in points.items()}, path, frozenset(damaged))


def apply(connection: sqlite3.Connection, batch: Batch) -> None:
    """Commit a batch. Where it raises sqlite3.Error, nothing of the batch is in the file."""
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
    """Commit a page with unchanged content. Raises sqlite3.Error where nothing can be written."""
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
