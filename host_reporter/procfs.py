"""What /proc says of one process. A process is its id and the time it started, since ids come again."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import NamedTuple

PROC = "/proc"

_PARENT, _STARTED, _ENVIRONMENT = 1, 19, 47
"""Fields of /proc/PID/stat behind the name, counted from the state."""

_TICKS = os.sysconf("SC_CLK_TCK")


class Process(NamedTuple):
    """A process: ``started`` in clock ticks since the machine's start."""

    pid: int
    started: int


class State(NamedTuple):
    """A process, its parent's id, and where its program's environment begins: elsewhere after each ``exec``.

    The place is 0 where the agent may not look at the process.
    """

    process: Process
    parent: int
    image: int


def identify(pid: int) -> Process | None:
    """The process that has this id now; None: there is none, or it is a zombie, which holds nothing."""
    state = state_of(pid)
    return state.process if state is not None else None


def state_of(pid: int) -> State | None:
    """Returns the state of the process that has this id now; None: there is none, or it is a zombie.

    Source: proc_pid_stat(5).
    """
    try:
        with open(f"{PROC}/{pid}/stat", "rb") as file:  # noqa: PTH123 - pathlib costs as much again
            text = file.read()
    except OSError:
        return None
    # The name is in brackets, and may itself have any.
    fields = text[text.rfind(b")") + 2 :].split()
    if len(fields) <= _ENVIRONMENT or fields[0] in (b"Z", b"X"):
        return None
    return State(Process(pid, int(fields[_STARTED])), int(fields[_PARENT]), int(fields[_ENVIRONMENT]))


def users_of(pid: int) -> set[int] | None:
    """The users whose rights a process has: real, effective and saved; None: there is no such process."""
    try:
        text = Path(f"{PROC}/{pid}/status").read_bytes()
    except OSError:
        return None
    line = next((line for line in text.splitlines() if line.startswith(b"Uid:")), b"")
    return set(map(int, line.split()[1:4])) or None


def is_alive(process: Process) -> bool:
    """Returns whether it still is the same process."""
    return identify(process.pid) == process


def began_at(process: Process, wall: float) -> float:
    """Returns when a process began, in seconds since the epoch. ``wall`` is the time now."""
    age = time.clock_gettime(time.CLOCK_BOOTTIME) - process.started / _TICKS
    return max(wall - max(age, 0.0), 0.0)
