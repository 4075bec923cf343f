"""A folder of small files that everybody may read and that nobody but the agent's user may change."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from collections.abc import Collection
from pathlib import Path

READABLE = 0o644
SEARCHABLE = 0o711
"""Whoever knows the name of a file may open it. Only the agent's user sees which files there are."""
_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


class FolderError(OSError):
    """The folder cannot be used. The message says why, and what would be right."""


class Folder:
    """The folder at ``path``, which is made when the first file is written."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def write(self, name: str, text: str) -> None:
        """Write a file, so that a reader sees it whole or not at all. Raises OSError, also as FolderError."""
        self._prepare()
        beside = self.path / f".{name}.{secrets.token_hex(4)}"
        try:
            with os.fdopen(os.open(beside, _FLAGS, READABLE), "w") as file:
                # Whatever the agent's umask is.
                os.fchmod(file.fileno(), READABLE)
                file.write(text)
            beside.rename(self.path / name)
        except BaseException:
            beside.unlink(missing_ok=True)
            raise

    def read(self, name: str) -> str | None:
        """Returns the text of a file; None where it cannot be read."""
        try:
            return (self.path / name).read_text(encoding="ascii")
        except (OSError, ValueError):
            return None

    def keep_only(self, names: Collection[str]) -> None:
        """Remove all files but these, also those that an agent which was killed has left. Raises OSError."""
        with contextlib.suppress(FileNotFoundError):
            _require_ours(self.path)
            for each in list(self.path.iterdir()):
                if each.name not in names:
                    each.unlink(missing_ok=True)

    def clear(self) -> None:
        """Remove all files of a folder that is there and the agent's own. Raises OSError."""
        with contextlib.suppress(FolderError):
            self.keep_only(())

    def _prepare(self) -> None:
        """Make the folder where it is not there. Raises OSError where another user could exchange what is in it."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileExistsError):
            self.path.mkdir(SEARCHABLE)
            self.path.chmod(SEARCHABLE)
        _require_ours(self.path)
        _require_safe_way(self.path)


def _require_ours(path: Path) -> None:
    """Raises FolderError for what is no folder of the agent's user alone."""
    status = path.lstat()
    if not stat.S_ISDIR(status.st_mode):
        raise FolderError(f"{path} must be a folder, and it is a link or a file; remove it, and the agent makes one")
    if status.st_uid != os.geteuid():
        raise FolderError(f"{path} is another user's; remove it, and the agent makes one of its own")
    if status.st_mode & _OTHERS_WRITE:
        raise FolderError(f"others may write into {path}, and could exchange the files in it; chmod go-w it")


def _require_safe_way(path: Path) -> None:
    """Raises FolderError where another user could exchange a folder on the way to ``path``."""
    parent = path.parent.resolve()
    for each in (parent, *parent.parents):
        status = each.stat()
        is_shared = status.st_mode & _OTHERS_WRITE and not status.st_mode & stat.S_ISVTX
        if status.st_uid not in (0, os.geteuid()) or is_shared:
            raise FolderError(
                f"{path} cannot be kept safely, since others may exchange {each}; each folder on the way must be "
                "root's or the agent's own, and only they may write there"
            )
