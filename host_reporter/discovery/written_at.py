"""When a file was written, by the clock that counts from the machine's start.

The kernel gives a process's start by that clock, and a file's change by the wall clock. The wall clock may be set in
between, by minutes at the machine's first correction, or by an hour by hand. So a file's age is computed when the agent
sees the file first, and kept: a later change of the wall clock has no effect.
"""

from __future__ import annotations

import os
import time
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path

from host_reporter.procfs import Process

SLACK_SECONDS = 2.0
"""A file may be older by this than the process that it names, because file systems have coarse clocks."""

MAX_FILES = 4096
"""Remember at most so many files; the least recently used one is forgotten first."""

Stamp = tuple[int, int, int, int]
"""Identifies a version of a file: device, inode, size, and time of change in nanoseconds."""

_TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")


def stamp_of(status: os.stat_result) -> Stamp:
    """A file's stamp."""
    return (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)


def _since_boot() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class WrittenAt:
    """Remembers when files were written. For one thread.

    ``wall`` gives seconds since the epoch, ``boot`` seconds since the machine's start.
    """

    def __init__(
        self,
        *,
        wall: Callable[[], float] = time.time,
        boot: Callable[[], float] = _since_boot,
        max_files: int = MAX_FILES,
    ) -> None:
        self._wall, self._boot = wall, boot
        self._max_files = max_files
        self._seen: OrderedDict[Path, tuple[Stamp, float]] = OrderedDict()

    def note(self, path: Path, stamp: Stamp) -> float:
        """When the file was written, in seconds since the machine's start. One of the future was written just now."""
        known = self._seen.get(path)
        if known is None or known[0] != stamp:
            age = max(self._wall() - stamp[3] / 1e9, 0.0)
            known = (stamp, self._boot() - age)
        self._seen[path] = known
        self._seen.move_to_end(path)
        while len(self._seen) > self._max_files:
            self._seen.popitem(last=False)
        return known[1]


def is_younger(process: Process, written: float) -> bool:
    """Returns whether a process began after the file that names it was written (see ``WrittenAt.note``).

    Then the file means another process.
    """
    return process.started / _TICKS_A_SECOND > written + SLACK_SECONDS
