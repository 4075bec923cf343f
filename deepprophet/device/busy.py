"""Whether something else ran while operators were measured: processor time against wall time, and the others' load.

Linux tells it in /proc; where it does not, nothing is known, and nothing is said.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path

STAT = Path("/proc/stat")
MIN_PROCESSOR_SHARE = 0.9
"""A process that had a processor for less than this share of the time was disturbed by others."""

NOTICEABLE_CORES = 0.15
"""Other programs that use this many cores show in measurements; the system's own work uses fewer."""

_WORKING = (1, 2, 3, 6, 7, 8)
"""In a line of ``/proc/stat``: user, nice, system, irq, softirq, steal. The others wait."""


@dataclass(frozen=True, slots=True)
class Reading:
    """At a moment (``wall``): seconds of processor that all programs and this one had so far, on our cores."""

    wall: float
    all: float
    own: float


def reading(stat: Path = STAT) -> Reading | None:
    """The reading now; None where the system does not tell."""
    try:
        text = stat.read_text(encoding="ascii")
    except OSError:
        return None
    names = {f"cpu{number}" for number in os.sched_getaffinity(0)}
    lines = (line.split() for line in text.splitlines())
    ticks = sum(int(words[place]) for words in lines if words and words[0] in names for place in _WORKING)
    return Reading(time.perf_counter(), ticks / os.sysconf("SC_CLK_TCK"), sum(os.times()[:4]))


def others(before: Reading | None, after: Reading | None) -> float:
    """How many cores others used on average between two readings; 0 where that is not known."""
    if before is None or after is None or after.wall <= before.wall:
        return 0.0
    used = (after.all - before.all) - (after.own - before.own)
    return max(used / (after.wall - before.wall), 0.0)


def other_cores(seconds: float) -> float:
    """Return how many cores other programs use, while this process sleeps for so many seconds."""
    before = reading()
    time.sleep(seconds)
    return others(before, reading())


def describe(cores: float, of: int) -> str | None:
    """Return a clause about the cores that other programs used, of ``of`` cores; None where they are few."""
    return None if cores < NOTICEABLE_CORES else f"other programs used {cores:.1f} of {of} core{'' if of == 1 else 's'}"
