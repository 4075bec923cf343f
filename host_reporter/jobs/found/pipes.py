"""Where the output of a process is that prints into a pipe, as in ``train | tee log``: in a file of the pipe's reader.

The reader must be a process of the same user that one of the writer's parents has started, as a shell starts both ends
of a pipe; and it must have the other end of that very pipe open.
"""

from __future__ import annotations

from collections.abc import Iterator

from host_reporter.jobs.found.descriptors import (
    descriptor,
    open_paths,
    program_of,
    reads,
    standard_output,
    target_of,
    user_of,
    written,
)
from host_reporter.launchers.processes import Processes
from host_reporter.readers.location import Location

MAX_PIPES = 3
"""Follow at most so many pipes, one behind the other."""

MAX_PARENTS = 8
MAX_READERS = 64
"""Look at no more children of the parents than this."""

_COPIERS = frozenset({"tee"})
"""Programs that write all that they read into each of their files."""


def piped_output(pid: int, user: int | None, processes: Processes) -> Location | None:
    """Returns the regular file that a process's output ends in by way of pipes; None: there is none that is sure."""
    for _ in range(MAX_PIPES):
        pipe = target_of(pid, 1)
        if user is None or pipe is None or not pipe.startswith("pipe:"):
            return None
        reader = next((other for other in _beside(pid, user, processes) if reads(other, pipe)), None)
        if reader is None:
            return None
        if (location := _file_of(reader, user)) is not None:
            return location
        pid = reader
    return None


def _file_of(reader: int, user: int) -> Location | None:
    """Returns the file that a reader of a pipe writes to: its output, or the one file that it has opened."""
    files = [(number, target) for number, target in open_paths(reader) if number > 2 and written(reader, number)]
    if (location := standard_output(reader, user)) is not None and location.path.name == "1":
        return location
    if not files or (len(files) > 1 and program_of(reader) not in _COPIERS):
        return None
    number, target = files[0]
    return descriptor(reader, number, target, None, user)


def _beside(pid: int, user: int, processes: Processes) -> Iterator[int]:
    """Yields the other children of a process's parents, the nearest parent first."""
    left = MAX_READERS
    child = pid
    for _ in range(MAX_PARENTS):
        parent = processes.parent_of(child)
        if parent <= 1:
            return
        for other in processes.children_of(parent)[:left]:
            if other != child and user_of(other) == user:
                left -= 1
                yield other
        if left <= 0 or user_of(parent) != user:
            return
        child = parent
