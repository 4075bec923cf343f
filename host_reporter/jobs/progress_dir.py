"""The folder where the two-line helper writes and any user's training may, as in /tmp.

What holds there: with the sticky bit nobody renames or deletes another user's file; neither the helper nor the agent
follows a link in it. What does not: whoever makes the file of a job first tells its progress. Users who do not trust
one another give each job a file of its own, ``progress: {jsonl: ...}``, in a folder that is theirs.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

OPEN_TO_ALL = stat.S_ISVTX | 0o777


def prepare(path: Path, *, is_ours: bool) -> str | None:
    """Make the folder if it is not there (root only), and open it to all; what is wrong with it, if anything.

    ``is_ours``: it is the default one, which a training of root's may have made for itself alone. Another one that is
    there already is as its operator wants it.
    """
    is_root = os.geteuid() == 0
    try:
        if not path.exists():
            if not is_root:
                return None
            path.mkdir(parents=True)
        elif not is_ours:
            return None
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            status = os.fstat(descriptor)
            if stat.S_IMODE(status.st_mode) == OPEN_TO_ALL and status.st_uid == 0:
                return None
            if is_root and status.st_uid == 0:
                os.fchmod(descriptor, OPEN_TO_ALL)
                return None
        finally:
            os.close(descriptor)
    except OSError as error:
        return f"the folder {path} for progress files cannot be used: {error.strerror}"
    return f"the folder {path} for progress files must be root's, with mode 1777: others' progress may not be seen"
