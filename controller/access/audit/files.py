"""The files of an audit: the one that is written, and older ones beside it, each named by its first record.

Lines are only ever appended. A line that could not be written as a whole stays as it is, and the next one begins on a
line of its own. Every method waits for the disk.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from controller.access.audit.chain import Chain, Line
from controller.access.audit.record import BEGIN, FILE, Link, read

MODE = 0o600
_DIGITS = 12
_TRIES = 3
_STEP = 65536
_LONGEST_BEGIN = 4096


class AuditError(RuntimeError):
    """Files of an audit that cannot be gone on with. The message says which and why."""


def files_of(path: Path) -> list[Path]:
    """Returns the files of the audit at ``path`` that are there, the oldest first. Raises OSError."""
    older = [each for each in path.parent.glob(f"{path.name}.*") if _first_of(path, each) is not None]
    return sorted(older) + ([path] if path.exists() else [])


def lines_of(path: Path) -> Iterator[bytes]:
    """Yields the lines of a file, each with its line feed if it has one. Raises OSError."""
    with path.open("rb") as file:
        yield from file


def first_number(file: Path) -> int:
    """Returns the number of the first record in a file; 0 where it holds none. Raises OSError."""
    begin = _first_record(file)
    return begin.number if begin is not None else 0


def read_since(path: Path, number: int, limit: int) -> list[Link]:
    """Returns the records after ``number`` in the files at ``path``, at most ``limit``. Raises OSError."""
    for _ in range(_TRIES - 1):
        # A file may get another name while it is looked for.
        with contextlib.suppress(FileNotFoundError):
            return _read_since(path, number, limit)
    return _read_since(path, number, limit)


def _read_since(path: Path, number: int, limit: int) -> list[Link]:
    files = files_of(path)
    # Of the older files whose first record is not after the wanted one, only the last can hold it.
    before = [file for file in files if (_first_of(path, file) or number + 2) <= number + 1]
    found: list[Link] = []
    for file in files[max(0, len(before) - 1) :]:
        for line in lines_of(file):
            # Most lines need no check of their hash.
            if _number_of(line) > number and (record := read(line.removesuffix(b"\n"))) is not None:
                found.append(record)
                if len(found) >= limit:
                    return found
    return found


def read_chain(path: Path, max_bytes: int, keep: int | None) -> Chain:
    """Returns the end of the chain in the files at ``path``; a new chain where there are none.

    So it is where a crash has cut off the first line of all: no record was ever complete. Raises AuditError where there
    are other files that hold no record, or files that cannot be read.
    """
    chain = Chain(max_bytes, keep)
    try:
        files = files_of(path)
        for file in files:
            begin = _first_record(file)
            if begin is not None:
                chain.starts.append(begin.number)
                if begin.content.get("action") == FILE:
                    chain.oldest = int(begin.content["after"]["oldest"])
        for file in reversed(files):
            last = _last_record(file)
            if last is not None:
                chain.number, chain.hash = last.number, last.hash
                break
        else:
            if not all(_is_begin(file) for file in files):
                raise AuditError(f"{path} holds no record of an audit; name another file, or move this one away")
        # Without the present file the next record begins it.
        chain.file_bytes = path.stat().st_size if path.exists() else max_bytes
    except OSError as error:
        raise AuditError(f"the audit file {error.filename or path} cannot be read: {error.strerror}") from error
    return chain


class AuditFiles:
    """Writes lines into the files at ``path``; one call at a time."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: int | None = None
        self._is_cut_off = False

    def write(self, lines: Sequence[Line]) -> tuple[int, str | None]:
        """Append lines, and wait until the disk has them. Returns how many are in the file, and what went wrong.

        Where somebody has removed or replaced the file at ``path``, the lines go to the one that is there now.
        """
        done = 0
        try:
            for part in _by_file(lines):
                if part[0].oldest is not None:
                    self._begin(part[0].link.number, part[0].oldest)
                done += self._append(part)
            if self._file is not None:
                os.fdatasync(self._file)
        except _WriteError as error:
            return done + error.done, self._in_words(error.reason)
        except OSError as error:
            return done, self._in_words(error)
        return done, None

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _append(self, lines: Sequence[Line]) -> int:
        """Returns the number of ``lines``. Raises _WriteError."""
        if self._file is not None and not self._is_at_path(self._file):
            self.close()
        if self._file is None:
            self._open()
        assert self._file is not None
        data = b"".join(line.data for line in lines)
        prefix = b"\n" if self._is_cut_off else b""
        written = 0
        try:
            rest = prefix + data
            while rest:
                count = os.write(self._file, rest)
                written += count
                rest = rest[count:]
        except OSError as error:
            self._is_cut_off = self._is_cut_off and not written
            whole, end = 0, len(prefix)
            for line in lines:
                end += len(line.data)
                if end > written:
                    self._is_cut_off |= written > end - len(line.data)
                    break
                whole += 1
            raise _WriteError(whole, error) from error
        self._is_cut_off = False
        return len(lines)

    def _is_at_path(self, file: int) -> bool:
        try:
            return os.path.samestat(os.fstat(file), self._path.stat())
        except FileNotFoundError:
            return False

    def _open(self) -> None:
        self._file = os.open(self._path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, MODE)
        size = os.fstat(self._file).st_size
        self._is_cut_off = size > 0 and os.pread(self._file, 1, size - 1) != b"\n"

    def _begin(self, first: int, oldest: int) -> None:
        """Put the present file aside, remove files without record ``oldest`` or a later one, and begin a new file.

        It may be called again for the same ``first`` after it has failed.
        """
        self.close()
        if self._path.exists() and self._path.stat().st_size:
            begin = _first_record(self._path)
            if begin is None or begin.number != first:
                number = begin.number if begin is not None else 0
                self._path.rename(self._path.with_name(f"{self._path.name}.{number:0{_DIGITS}d}"))
        for file in files_of(self._path):
            first_of_file = _first_of(self._path, file)
            if first_of_file is not None and first_of_file < oldest and oldest > 1:
                file.unlink()
        self._open()

    def _in_words(self, error: OSError) -> str:
        if isinstance(error, FileNotFoundError):
            return f"{self._path}: its folder is not there; make it, for the controller's user alone (mode 0700)"
        return f"{self._path}: {error.strerror or error}"


class _WriteError(Exception):
    """A write that failed after ``done`` whole lines."""

    def __init__(self, done: int, reason: OSError) -> None:
        super().__init__(str(reason))
        self.done = done
        self.reason = reason


def _by_file(lines: Sequence[Line]) -> Iterator[list[Line]]:
    """Yields the lines in groups, each for one file."""
    group: list[Line] = []
    for line in lines:
        if line.oldest is not None and group:
            yield group
            group = []
        group.append(line)
    if group:
        yield group


def _first_of(path: Path, file: Path) -> int | None:
    """Returns the number of the first record of an older file of ``path``, by its name; None for another file."""
    digits = file.name.removeprefix(f"{path.name}.")
    return int(digits) if file != path and len(digits) == _DIGITS and digits.isascii() and digits.isdigit() else None


def _is_begin(file: Path) -> bool:
    """Returns whether a file is empty, or holds the cut-off line of a record that begins a file, and nothing else."""
    with file.open("rb") as opened:
        line = opened.read(_LONGEST_BEGIN + 1)
    is_cut_off = len(line) <= _LONGEST_BEGIN and b"\n" not in line
    return is_cut_off and (line.startswith(BEGIN) or BEGIN.startswith(line))


def _number_of(line: bytes) -> int:
    """Returns the number of a record; 0 for a line that holds none."""
    try:
        members = json.loads(line)
    except ValueError:
        return 0
    number = members.get("number") if isinstance(members, dict) else None
    return number if isinstance(number, int) else 0


def _first_record(file: Path) -> Link | None:
    return next((found for line in lines_of(file) if (found := read(line.removesuffix(b"\n"))) is not None), None)


def _last_record(file: Path) -> Link | None:
    """Returns the last record of a file, which is read from its end."""
    with file.open("rb") as opened:
        position = opened.seek(0, os.SEEK_END)
        tail = b""
        while position:
            step = min(_STEP, position)
            position -= step
            opened.seek(position)
            tail = opened.read(step) + tail
            lines = tail.split(b"\n")
            # The first one may have begun before.
            for line in reversed(lines if not position else lines[1:]):
                if (found := read(line)) is not None:
                    return found
    return None
