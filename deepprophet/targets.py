"""Files that the command is to write, looked at before its work: nobody waits for minutes to be refused then."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from deepprophet.errors import InputError


def check(path: Path, option: str) -> None:
    """Raises InputError where no file can be written at ``path``, which ``option`` named. No folder is made for it."""
    folder = path.parent
    if path.is_dir():
        raise InputError(f"{option} {path}: it is a folder; name a file")
    if not folder.is_dir():
        raise InputError(f"{option} {path}: there is no folder {folder}; make it first, or name another")
    if path.exists() and not os.access(path, os.W_OK):
        raise InputError(f"{option} {path}: it is there and may not be written to")
    try:
        # Tried, not asked: root may do all, and a full or read-only file system still refuses.
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise InputError(f"{option} {path}: no file can be made in {folder}: {error.strerror}") from error
