"""What /proc says of a job's processes: which there are, which sockets they hold, in which network namespace.

Only of processes that are a job's already: nothing here looks through all of /proc. A process is its id and the time it
started, since ids come again.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, NamedTuple

PROC = "/proc"
MAX_PROCESSES = 4096
"""Look at no more processes of a job than this."""

_SOCKET = re.compile(r"socket:\[(\d+)\]")
_STARTED = 19
"""Field of /proc/PID/stat behind the name, counted from the state."""


class Process(NamedTuple):
    """A process: ``started`` in clock ticks since the machine's start."""

    pid: int
    started: int


class Held(NamedTuple):
    """Where a program holds a socket."""

    process: Process
    descriptor: int


def identify(pid: int) -> Process | None:
    """The process that has this id now; None: there is none, or it is a zombie, which holds nothing."""
    try:
        text = Path(f"{PROC}/{pid}/stat").read_bytes()
    except OSError:
        return None
    # The name is in brackets, and may itself have any.
    fields = text[text.rfind(b")") + 2 :].split()
    if len(fields) <= _STARTED or fields[0] in (b"Z", b"X"):
        return None
    return Process(pid, int(fields[_STARTED]))


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


def children(pid: int) -> Iterator[int]:
    """The ids of the processes that its threads have started and that it still is the parent of."""
    try:
        threads = os.listdir(f"{PROC}/{pid}/task")  # noqa: PTH208 - pathlib costs as much again
    except OSError:
        return
    for thread in threads:
        try:
            text = Path(f"{PROC}/{pid}/task/{thread}/children").read_bytes()
        except OSError:
            continue
        yield from map(int, text.split())


class Tree:
    """A process and all that descend from it, also those whose parent has ended since they were first seen."""

    def __init__(self, root: Process) -> None:
        self.root = root
        self._known: set[Process] = {root}

    def look(self) -> frozenset[Process]:
        """Those that are alive now."""
        alive: set[Process] = set()
        waiting = [process for process in self._known if is_alive(process)]
        while waiting and len(alive) < MAX_PROCESSES:
            process = waiting.pop()
            if process in alive:
                continue
            alive.add(process)
            waiting += [child for pid in children(process.pid) if (child := identify(pid)) is not None]
        self._known = alive
        return frozenset(alive)


def network_namespace(pid: int | Literal["self"]) -> int | None:
    """The inode of its network namespace; None where it is gone, or may not be looked at."""
    try:
        return os.stat(f"{PROC}/{pid}/ns/net").st_ino  # noqa: PTH116 - pathlib costs as much again
    except OSError:
        return None


def sockets_of(process: Process) -> Iterator[tuple[int, Held]]:
    """The inodes of the sockets that a process holds. Raises PermissionError; a process that vanishes holds nothing."""
    folder = f"{PROC}/{process.pid}/fd"
    try:
        names = os.listdir(folder)  # noqa: PTH208 - as above
    except PermissionError:
        raise
    except OSError:
        return
    for name in names:
        try:
            match = _SOCKET.fullmatch(os.readlink(f"{folder}/{name}"))  # noqa: PTH115 - as above
        except OSError:
            continue
        if match is not None:
            yield int(match[1]), Held(process, int(name))
