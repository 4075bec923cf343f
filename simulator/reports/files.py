"""Files that are there whole or not at all."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path


def write_all(contents: Mapping[Path, bytes]) -> None:
    """Write files, folders as need be; none is put in place before all are written. Raises OSError."""
    scratches: dict[Path, Path] = {}
    try:
        for path, content in contents.items():
            path.absolute().parent.mkdir(parents=True, exist_ok=True)
            scratches[path] = _written(path.absolute().parent, content)
        for path, scratch in scratches.items():
            _put(scratch, path)
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
