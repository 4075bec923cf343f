"""A cgroup for each job, by which the kernel distinguishes the sockets of jobs that have processes of their own.

The groups are in the cgroup v2 hierarchy where that is mounted and can be written, else in one of version 1.
"""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Iterable
from pathlib import Path

from topologies.errors import LabError

MOUNTS = Path("/proc/self/mountinfo")
_NEEDS_SETTINGS = {"cpuset"}
"""New groups of these version 1 controllers accept no process before processors and memory are set."""
_PATIENCE_SECONDS = 5.0


def hierarchies(mountinfo: str) -> list[Path]:
    """Return the mounted hierarchies in which a group can be made, the best first, from the text of ``mountinfo``."""
    second, first = [], []
    for line in mountinfo.splitlines():
        before, _, after = line.partition(" - ")
        kind, _source, options = after.split(" ", 2)
        folder = Path(re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal[1], 8)), before.split()[4]))
        if kind == "cgroup2":
            second.append(folder)
        elif kind == "cgroup" and not _NEEDS_SETTINGS & set(options.split(",")):
            first.append(folder)
    return second + first


def folder_for(run: str, mounts: Path = MOUNTS) -> Path | None:
    """Return the folder for a run's groups, without making it; None where no hierarchy can be written."""
    for hierarchy in hierarchies(mounts.read_text()):
        if os.access(hierarchy, os.W_OK):
            return hierarchy / f"trainyard-{run}"
    return None


def make(folder: Path | None, job: str) -> Path:
    """Make the group of a job where it does not exist yet, and return it. Raises LabError."""
    if folder is None:
        raise LabError("a cgroup a job needs a cgroup hierarchy that can be written; none is mounted (processes: host)")
    group = folder / job
    try:
        group.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise LabError(f"cannot make the cgroup {group}: {error.strerror} (processes: host needs none)") from error
    return group


def join(group: Path) -> None:
    """Move the calling process into a group. Raises OSError."""
    (group / "cgroup.procs").write_text("0\n")


def remove(folders: Iterable[Path], *, patience: float = _PATIENCE_SECONDS) -> None:
    """Remove the groups of runs whose processes have ended. Raises LabError where the kernel keeps one."""
    deadline = time.monotonic() + patience
    for folder in folders:
        while folder.exists():
            # The files in a group belong to the kernel and go with the group.
            with contextlib.suppress(OSError):
                for group in folder.iterdir():
                    if group.is_dir():
                        group.rmdir()
                folder.rmdir()
                break
            if time.monotonic() > deadline:
                raise LabError(f"the cgroup {folder} cannot be removed")
            time.sleep(0.05)
