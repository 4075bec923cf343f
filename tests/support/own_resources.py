"""What a test's own part of the process holds: files below its folder, and threads by name.

Counts of the whole process would hold what earlier tests in it left to the garbage collector or to their last threads.
"""

from __future__ import annotations

import threading
from pathlib import Path


def open_below(folder: Path) -> list[Path]:
    """Paths below a folder of which this process has a descriptor, one for each descriptor."""
    paths: list[Path] = []
    for descriptor in Path("/proc/self/fd").iterdir():
        try:
            path = descriptor.readlink()
        except FileNotFoundError:  # closed since it was listed
            continue
        if path.is_relative_to(folder.resolve()):
            paths.append(path)
    return sorted(paths)


def threads_named(name: str) -> list[threading.Thread]:
    """Threads of this process that live and have the name."""
    return [thread for thread in threading.enumerate() if thread.name == name]
