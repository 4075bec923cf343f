"""Room for large processes in a User-Mode Linux box: how many pieces of memory a process of this machine may map.

The box has a process of this machine for each of its own and maps every page there by itself, sixteen for each that a
program first reads of a file. PyTorch's libraries are 52,000 pages when they are loaded, and a training needs more than
the 65,530 that Linux allows where nobody sets ``vm.max_map_count``: the box's kernel then kills the process.
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
    """Whether there is room; it is made where we may, until the last that asked for it has left.

    ``folder`` is where those that ask at the same time find each other. After a crash the next one puts the setting
    back. A value that somebody else has set meanwhile stays.
    """
    place = folder or Path(tempfile.gettempdir())
    name = f"trainyard-{os.geteuid()}-mappings"
    with _opened(place / f"{name}.users") as users:
        with _opened(place / f"{name}.lock") as turn:
            fcntl.flock(turn, fcntl.LOCK_EX)
            before = int(setting.read_text())
            if before < ENOUGH:
                # Told first: whoever dies between the two has changed nothing that is not on record.
                _record(turn, before)
                with contextlib.suppress(OSError):
                    setting.write_text(f"{ENOUGH}\n")
            enough = int(setting.read_text()) >= ENOUGH
            fcntl.flock(users, fcntl.LOCK_SH)
        try:
            yield enough
        finally:
            with _opened(place / f"{name}.lock") as turn:
                fcntl.flock(turn, fcntl.LOCK_EX)
                with contextlib.suppress(BlockingIOError):
                    fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    _put_back(turn, setting)


def advice(setting: Path = SETTING) -> str:
    """What to tell whoever has no room."""
    return (
        f"processes in the box may map {setting.read_text().strip()} pieces of memory, PyTorch may need more, and then "
        f"the box kills it: as root, sysctl -w vm.max_map_count={ENOUGH}"
    )


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[int]:
    """The file's descriptor; a lock on it goes with it."""
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
