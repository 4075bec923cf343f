"""Notices that files have changed, without reading them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from pydantic import BaseModel

Stamps = dict[Path, tuple[int, int, int] | None]
"""For each file its inode, size and time of change; None where there is no file."""


def stamps_of(files: Iterable[Path]) -> Stamps:
    """Returns the stamps of files."""
    return {file: _stamp(file) for file in files}


def _stamp(file: Path) -> tuple[int, int, int] | None:
    try:
        status = file.stat()
    except OSError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns


def files_in(section: BaseModel, *, but: Iterable[str] = ()) -> Iterator[Path]:
    """Yields the files that settings name, those in nested sections included, without the fields ``but``."""
    for name in type(section).model_fields:
        value = getattr(section, name)
        if name in but:
            continue
        if isinstance(value, Path):
            yield value
        elif isinstance(value, BaseModel):
            yield from files_in(value)
