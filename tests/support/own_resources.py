"""What a test's own part of the process holds: files below its folder, and threads by name.

Counts of the whole process would hold what earlier tests in it left to the garbage collector or to their last threads.
"""

from __future__ import annotations

import os
import threading
from pathlib import Path


def open_below(folder: Path) -> list[str]:
    """Paths below a folder of which this process has a descriptor, one for each descriptor."""
    below = f"{folder.resolve()}/"
    paths = []
    for descriptor in os.listdir("/proc/self/fd"):
        try:
            path = os.readlink(f"/proc/self/fd/{descriptor}")
        except FileNotFoundError:  # closed since it was listed
            continue
        if path.startswith(below):
            paths.append(path)
    return sorted(paths)


def threads_named(name: str) -> list[threading.Thread]:
    """Threads of this process that live and have the name."""
    return [thread for thread in threading.enumerate() if thread.name == name]
