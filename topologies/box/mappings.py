"""Raises ``vm.max_map_count`` for large processes in a User-Mode Linux box.

Each process of the box is a process of this machine. The box's kernel makes a separate mapping for each page there, and
sixteen mappings when a program first reads a page of a file. PyTorch's libraries are 52,000 pages when they are loaded.
A training needs more than the 65,530 mappings that Linux allows by default, and then the box's kernel kills the
process.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

SETTING = Path("/proc/sys/vm/max_map_count")
ENOUGH = 262_144


@contextlib.contextmanager
def room(setting: Path = SETTING, folder: Path | None = None) -> Iterator[bool]:
    """Raise the setting inside the context, where this process may do so. Yields whether it is high enough.

    The last user restores the setting. Users that run at the same time find each other by files in ``folder``. After a
    crash the next user restores it. A value that another program has set in between stays.
    """
    lock_folder = folder or Path(tempfile.gettempdir())
    name = f"trainyard-{os.geteuid()}-mappings"
    with _opened(lock_folder / f"{name}.users") as users:
        with _opened(lock_folder / f"{name}.lock") as turn:
            fcntl.flock(turn, fcntl.LOCK_EX)
            before = int(setting.read_text())
            if before < ENOUGH:
                # The record comes first, so that a crash between the two leaves no unrecorded change.
                _record(turn, before)
                with contextlib.suppress(OSError):
                    setting.write_text(f"{ENOUGH}\n")
            enough = int(setting.read_text()) >= ENOUGH
            fcntl.flock(users, fcntl.LOCK_SH)
        try:
            yield enough
        finally:
            with _opened(lock_folder / f"{name}.lock") as turn:
                fcntl.flock(turn, fcntl.LOCK_EX)
                with contextlib.suppress(BlockingIOError):
                    fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    _put_back(turn, setting)


def advice(setting: Path = SETTING) -> str:
    """Returns the advice for a machine whose setting is too low."""
    return (
        f"processes in the box may map {setting.read_text().strip()} pieces of memory, PyTorch may need more, and then "
        f"the box kills it: as root, sysctl -w vm.max_map_count={ENOUGH}"
    )


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[int]:
    """Yields a descriptor of the file. Its end releases a lock on the file."""
    descriptor = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _record(turn: int, before: int) -> None:
    os.ftruncate(turn, 0)
    os.pwrite(turn, str(before).encode(), 0)


def _put_back(turn: int, setting: Path) -> None:
    before = os.pread(turn, 32, 0)
    if before.isdigit() and int(setting.read_text()) == ENOUGH:
        with contextlib.suppress(OSError):
            setting.write_text(f"{int(before)}\n")
    os.ftruncate(turn, 0)
