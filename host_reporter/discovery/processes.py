"""What /proc says of a job's processes: which there are, which sockets they hold, in which network namespace.

Only of processes that are a job's already: nothing here looks through all of /proc.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Literal, NamedTuple

from host_reporter import procfs
from host_reporter.procfs import PROC, Process

MAX_PROCESSES = 4096
"""Look at no more processes of a job than this."""

_SOCKET = re.compile(r"socket:\[(\d+)\]")


class Held(NamedTuple):
    """Where a program holds a socket."""

    process: Process
    descriptor: int


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
    """Processes and all that descend from them, also those whose parent has ended since they were first seen."""

    def __init__(self, *roots: Process) -> None:
        self.roots = frozenset(roots)
        self._known: set[Process] = set(roots)

    def grow(self, roots: Iterable[Process]) -> None:
        """Set the roots anew. What descends from an earlier one stays."""
        self._known |= frozenset(roots) - self.roots
        self.roots = frozenset(roots)

    def look(self, others: Collection[Process] = ()) -> frozenset[Process]:
        """Those that are alive now, without ``others`` and what descends from them."""
        alive: set[Process] = set()
        waiting = [process for process in self._known if process not in others and procfs.is_alive(process)]
        while waiting and len(alive) < MAX_PROCESSES:
            process = waiting.pop()
            if process in alive:
                continue
            alive.add(process)
            born = (procfs.identify(pid) for pid in children(process.pid))
            waiting += [child for child in born if child is not None and child not in others]
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
