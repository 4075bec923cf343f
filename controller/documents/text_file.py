"""Reads the text of a file that people give, or of the standard input, whole and bounded.

What the text may be is ``plain_text``'s; here are the file system and its refusals.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import BinaryIO

from controller.documents.plain_text import PlainTextError, decode
from controller.documents.regular_file import open_regular

STDIN = Path("-")
MOST_BYTES = 2**30
_PIECE = 2**20


class FileError(ValueError):
    """A file that cannot be read as text. The message is a line: ``file: problem`` or ``file:line: problem``."""


def name(path: Path) -> str:
    """Returns what errors call a file."""
    return "<stdin>" if path == STDIN else str(path)


def read(path: Path, *, holds: str | None = None, most_bytes: int = MOST_BYTES, only_regular: bool = False) -> str:
    """Returns the text of a file; ``-`` is the standard input.

    ``holds`` says what the file must hold: then an empty file is refused. With None an empty file is a text too.
    ``only_regular`` is as in ``read_bytes``. Raises FileError.
    """
    raw = read_bytes(path, most_bytes=most_bytes, only_regular=only_regular)
    text = as_text(path, raw, most_bytes=most_bytes)
    if holds is not None and not text.strip():
        raise FileError(f"{name(path)}:1: is empty; it must hold {holds}")
    return text


def read_bytes(path: Path, *, most_bytes: int = MOST_BYTES, only_regular: bool = False) -> bytes:
    """Returns the bytes of a file, one more than ``most_bytes`` at most. Raises FileError.

    With ``only_regular`` it refuses pipes, devices and the standard input, for which a program without a user could
    wait for ever.
    """
    shown = name(path)
    try:
        if only_regular:
            with open_regular(path) as stream:
                return _bytes(stream, most_bytes)
        if path == STDIN:
            if sys.stdin is None:
                raise FileError(f"{shown}: cannot be read: it is closed")
            return _bytes(sys.stdin.buffer, most_bytes)
        with path.open("rb") as stream:
            return _bytes(stream, most_bytes)
    except OSError as error:
        raise FileError(f"{shown}: cannot be read: {error.strerror or error}") from None
    except FileError:
        raise
    except ValueError as error:  # a path that no file can have
        raise FileError(f"{shown}: cannot be read: {error}") from None


def as_text(path: Path, raw: bytes, *, most_bytes: int = MOST_BYTES) -> str:
    """Returns the text that the bytes of a file hold. Raises FileError, with the file's ``path``."""
    try:
        return decode(raw, most_bytes=most_bytes)
    except PlainTextError as error:
        shown = name(path)
        raise FileError(f"{shown}: {error}" if error.line is None else f"{shown}:{error.line}: {error}") from None


def _bytes(stream: BinaryIO, most: int) -> bytes:
    """Returns all bytes, read in pieces: reading a gigabyte in one call would take that much memory at once."""
    parts = []
    left = most + 1
    while left > 0 and (part := stream.read(min(left, _PIECE))):
        parts.append(part)
        left -= len(part)
    return b"".join(parts)
