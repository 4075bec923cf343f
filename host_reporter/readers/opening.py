"""Opens files that other users may exchange at any moment, so that only what was checked is ever opened for reading."""

from __future__ import annotations

import os
import stat
from pathlib import Path

_LOOK = os.O_PATH | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
_EVERYBODY = stat.S_IRGRP | stat.S_IROTH


def open_regular(path: Path, *, follow_links: bool = True, owner: int | None = None, or_public: bool = False) -> int:
    """Returns a descriptor of a regular file, to read. Raises OSError, and ValueError for a path that no file can have.

    ``owner``: the number of the user to whom the file must belong; ``or_public``: or everybody may read it. What a user
    has a descriptor of, and everybody may read, that user may read, too.

    A process can put another file behind its descriptor between a check and the opening, and by O_PATH one that it may
    not read. To open a device may do something, such as start a watchdog. So the path is resolved once, to a descriptor
    by which nothing can be read; that is checked, and the very file behind it is opened (open(2), O_PATH).
    """
    held = os.open(path, _LOOK | (0 if follow_links else os.O_NOFOLLOW))
    try:
        check_regular(os.fstat(held), owner=owner, or_public=or_public)
        return os.open(f"/proc/self/fd/{held}", _READ)
    finally:
        os.close(held)


def check_regular(status: os.stat_result, *, owner: int | None = None, or_public: bool = False) -> None:
    """Check a file; see ``open_regular``. Raises OSError."""
    if stat.S_ISLNK(status.st_mode):
        raise OSError("it is a link, which is not followed here")
    if not stat.S_ISREG(status.st_mode):
        raise OSError("it is no ordinary file")
    if owner is None or status.st_uid == owner:
        return
    if not or_public:
        raise OSError("it belongs to another user than the job's")
    if status.st_mode & _EVERYBODY != _EVERYBODY:
        raise OSError("it belongs to another user than the job's, and not everybody may read it")
