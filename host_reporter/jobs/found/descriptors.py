"""What a process has open, as /proc/PID/fd shows it. Nothing is opened here, and nothing raises."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from host_reporter.procfs import PROC, identify
from host_reporter.readers.location import Kind, Location

MAX_DESCRIPTORS = 1024
"""Look at no more open files of a process than this."""

MAX_ARGUMENTS = 4096
"""Read so many bytes of a process's arguments."""


def descriptor(pid: int, number: int, target: str, kind: Kind | None, user: int | None) -> Location:
    """Returns the file behind a descriptor of a process of this ``user``, which must be able to read it itself."""
    return Location(Path(f"{PROC}/{pid}/fd/{number}"), target, kind, owner=user, or_public=True)


def standard_output(pid: int, user: int | None) -> Location | None:
    """Returns the regular file behind descriptor 1, or behind 2 where only that has anything; None: there is none.

    ``user``: the user of the process; None: it has the rights of several, so that what it may read is not known.
    """
    files = [(number, *known) for number in (1, 2) if (known := written(pid, number)) is not None]
    if not files or user is None:
        return None
    number, target, _ = next((file for file in files if file[2]), files[0])
    return descriptor(pid, number, target, None, user)


def written(pid: int, number: int) -> tuple[str, int] | None:
    """Returns the name and the size of a regular file that a process writes to; None: the descriptor is none."""
    path = f"{PROC}/{pid}/fd/{number}"
    try:
        # The link has the rights with which the file was opened.
        if not os.lstat(path).st_mode & stat.S_IWUSR:
            return None
        status = os.stat(path)  # noqa: PTH116 - pathlib costs as much again
        return (os.readlink(path), status.st_size) if stat.S_ISREG(status.st_mode) else None  # noqa: PTH115 - as above
    except OSError:
        return None


def target_of(pid: int, number: int) -> str | None:
    """Returns what is behind a descriptor, such as ``pipe:[123]``; None: it is closed, or may not be looked at."""
    try:
        return os.readlink(f"{PROC}/{pid}/fd/{number}")  # noqa: PTH115 - as above
    except OSError:
        return None


def reads(pid: int, target: str) -> bool:
    """Returns whether a process has something open to read it, such as ``pipe:[123]``."""
    folder = f"{PROC}/{pid}/fd"
    try:
        return any(
            found == target and os.lstat(f"{folder}/{number}").st_mode & stat.S_IRUSR
            for number, found in open_things(pid)
        )
    except OSError:
        return False


def open_paths(pid: int) -> Iterator[tuple[int, str]]:
    """Yields what a process has open that has a path: the descriptor, and the path."""
    # Sockets and pipes have none.
    return ((number, target) for number, target in open_things(pid) if target.startswith("/"))


def open_things(pid: int) -> Iterator[tuple[int, str]]:
    """Yields what a process has open: the descriptor, and its path, or such as ``pipe:[123]``."""
    folder = f"{PROC}/{pid}/fd"
    try:
        names = os.listdir(folder)  # noqa: PTH208 - as above
    except OSError:
        return
    for name in sorted(names, key=int)[:MAX_DESCRIPTORS]:
        if (target := target_of(pid, int(name))) is not None:
            yield int(name), target


def user_of(pid: int) -> int | None:
    """Returns the user of a process; None: there is no such process."""
    try:
        return os.stat(f"{PROC}/{pid}").st_uid if identify(pid) is not None else None  # noqa: PTH116 - as above
    except OSError:
        return None


def program_of(pid: int) -> str:
    """Returns the name of a process's program; empty: there is no such process."""
    try:
        return Path(f"{PROC}/{pid}/comm").read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def arguments_of(pid: int) -> tuple[str, ...]:
    """Returns the first arguments of a process; empty: there is no such process."""
    try:
        with open(f"{PROC}/{pid}/cmdline", "rb") as file:  # noqa: PTH123 - as above
            return tuple(os.fsdecode(file.read(MAX_ARGUMENTS)).split("\0")[:-1])
    except OSError:
        return ()


def as_seen_by(pid: int, path: str) -> Path:
    """Returns a path as a process sees it, which may be in a container."""
    root = f"{PROC}/{pid}/root"
    try:
        is_ours = os.path.samestat(os.stat(root), os.stat("/"))  # noqa: PTH116 - as above
    except OSError:
        is_ours = True
    return Path(path if is_ours else f"{root}{path}")
