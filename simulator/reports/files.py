"""Files that are there whole or not at all."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path


def write_whole(path: Path, content: bytes) -> None:
    """Write a file beside its place, then put it there. Raises OSError."""
    scratch = _written(path.absolute().parent, content)
    _put(scratch, path)


def write_all(folder: Path, contents: Mapping[str, bytes]) -> None:
    """Write all files of a folder, which is made if need be; none is put in place before all are written."""
    folder.mkdir(parents=True, exist_ok=True)
    scratches: dict[str, Path] = {}
    try:
        for name, content in contents.items():
            scratches[name] = _written(folder, content)
        for name, scratch in scratches.items():
            _put(scratch, folder / name)
    finally:
        for scratch in scratches.values():
            scratch.unlink(missing_ok=True)


def _written(folder: Path, content: bytes) -> Path:
    number, name = tempfile.mkstemp(prefix=".trainyard-", dir=folder)
    try:
        with os.fdopen(number, "wb") as file:
            file.write(content)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(name).unlink()
        raise
    return Path(name)


def _put(scratch: Path, path: Path) -> None:
    mask = os.umask(0)
    os.umask(mask)
    scratch.chmod(0o666 & ~mask)
    scratch.replace(path)
