"""When a file was written, by the clock that counts from the machine's start.

A process tells its beginning by that clock, a file its change by the wall's clock, which may be set in between: by
minutes when the machine's first correction comes, by an hour by hand. So a file's age is taken when it is seen first,
and kept: what is done to the wall's clock later changes nothing.
"""

from __future__ import annotations

import os
import time
from collections import OrderedDict
from pathlib import Path

from host_reporter.discovery.processes import Process

SLACK_SECONDS = 2.0
"""A file may be so much older than the process that it names: file systems have coarse clocks."""

MAX_FILES = 4096
"""Remembered; the one that was asked for longest ago is forgotten first."""

Stamp = tuple[int, int, int, int]
"""What is another when a file is: device, inode, size, and time of change in nanoseconds."""

_TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")


def stamp_of(status: os.stat_result) -> Stamp:
    """A file's stamp."""
    return (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)


class WrittenAt:
    """The files that were seen. For one thread."""

    def __init__(self) -> None:
        self._seen: OrderedDict[Path, tuple[Stamp, float]] = OrderedDict()

    def note(self, path: Path, stamp: Stamp) -> float:
        """When the file was written, in seconds since the machine's start. One of the future was written just now."""
        known = self._seen.get(path)
        if known is None or known[0] != stamp:
            age = max(time.time() - stamp[3] / 1e9, 0.0)
            known = (stamp, time.clock_gettime(time.CLOCK_BOOTTIME) - age)
        self._seen[path] = known
        self._seen.move_to_end(path)
        while len(self._seen) > MAX_FILES:
            self._seen.popitem(last=False)
        return known[1]


def is_younger(process: Process, written: float) -> bool:
    """Whether a process began after the file that names it was written (``WrittenAt.note``): another was meant."""
    return process.started / _TICKS_A_SECOND > written + SLACK_SECONDS
