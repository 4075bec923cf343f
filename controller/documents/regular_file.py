"""Opens regular files only. Somebody may have put a pipe in the place of one, which is waited for without end, or a
device, which has no end. Only the standard library is needed.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO

MOST_BYTES = 16 * 2**20
"""Refuse a larger file with certificates or keys."""


def open_regular(path: Path) -> BinaryIO:
    """Returns the file at ``path``, open for reading. It waits for nobody. Raises OSError, also for what is no file."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    try:
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        if not stat.S_ISREG(mode):
            raise OSError(errno.EINVAL, "it is no regular file", str(path))
        return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def read_regular(path: Path, *, most_bytes: int = MOST_BYTES) -> bytes:
    """Returns the bytes of a regular file. Raises OSError, also for a file of more than ``most_bytes``."""
    with open_regular(path) as stream:
        data = stream.read(most_bytes + 1)
    if len(data) > most_bytes:
        raise OSError(errno.EFBIG, f"it is larger than {most_bytes} bytes", str(path))
    return data


def check_regular(path: Path, *, most_bytes: int = MOST_BYTES) -> None:
    """Raises OSError as ``read_regular`` does, for a library that opens the file by its name."""
    with open_regular(path) as stream:
        if os.fstat(stream.fileno()).st_size > most_bytes:
            raise OSError(errno.EFBIG, f"it is larger than {most_bytes} bytes", str(path))
