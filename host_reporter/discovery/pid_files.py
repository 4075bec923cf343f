"""The file that holds the id of a job's process: opened with care, for whoever may write it names a process to us.

The agent is root, as a rule, and marks what the named process sends. So a file is believed only if root, the agent's
own user or the user of the very process wrote it, and nobody else can: who may write for others could name theirs.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Set
from pathlib import Path
from typing import NamedTuple

from host_reporter import procfs
from host_reporter.discovery.written_at import Stamp, stamp_of

_MAX_BYTES = 64
_MAX_PID = 2**31
_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
"""No link is followed, and no pipe waited for."""


class PidFileError(ValueError):
    """A file that is not believed, or cannot be read; the message is a sentence for the job's people."""


class Named(NamedTuple):
    """The id that a file holds, the user whose file it is, and what tells whether it was written anew."""

    pid: int
    owner: int
    stamp: Stamp


def read(path: Path) -> Named:
    """What a pid file holds. Raises PidFileError."""
    try:
        descriptor = os.open(path, _FLAGS)
    except FileNotFoundError:
        raise PidFileError(f"pidfile {path} is not there") from None
    except (OSError, ValueError) as error:
        if path.is_symlink():
            raise PidFileError(f"pidfile {path} is a link; name the file itself") from None
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise PidFileError(f"pidfile {path} cannot be read: {reason}") from None
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise PidFileError(f"pidfile {path} is no ordinary file")
        if status.st_mode & stat.S_IWOTH:
            raise PidFileError(f"pidfile {path} can be written by every user, so it is not believed; chmod o-w it")
        words = os.read(descriptor, _MAX_BYTES).split()
    except OSError as error:
        raise PidFileError(f"pidfile {path} cannot be read: {error.strerror}") from None
    finally:
        os.close(descriptor)
    if not words or not words[0].isdigit() or not 1 < int(words[0]) < _MAX_PID:
        raise PidFileError(f"pidfile {path} holds no id of a job's process")
    return Named(int(words[0]), status.st_uid, stamp_of(status))


def distrust(
    path: Path,
    named: Named,
    *,
    agent: Callable[[], int] = os.geteuid,
    users_of: Callable[[int], Set[int] | None] = procfs.users_of,
) -> str | None:
    """Returns why the file's owner is not believed about the process, in words; None: the owner is.

    ``agent`` gives the user of the agent, ``users_of`` those of a process.
    """
    if named.owner in (0, agent()) or users_of(named.pid) in (None, {named.owner}):
        # A process that is gone is nobody's.
        return None
    return (
        f"pidfile {path} belongs to user {named.owner}, and process {named.pid} is another user's: it is not believed; "
        "the file must be root's, the agent's own or of the user that the process runs as"
    )
