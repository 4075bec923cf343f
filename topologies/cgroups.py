"""A cgroup a job, for experiments that run a process a job: where the kernel tells one job's sockets from another's.

In the cgroup v2 hierarchy where that is mounted and can be written, else in one of version 1.
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
"""Controllers of version 1 whose new groups take no process before they are told of processors and memory."""
_PATIENCE_SECONDS = 5.0


def hierarchies(mountinfo: str) -> list[Path]:
    """The mounted hierarchies that a new group may be made in, the best first, from the text of ``mountinfo``."""
    second, first = [], []
    for line in mountinfo.splitlines():
        before, _, after = line.partition(" - ")
        kind, _source, options = after.split(" ", 2)
        place = Path(re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal[1], 8)), before.split()[4]))
        if kind == "cgroup2":
            second.append(place)
        elif kind == "cgroup" and not _NEEDS_SETTINGS & set(options.split(",")):
            first.append(place)
    return second + first


def folder_for(run: str, mounts: Path = MOUNTS) -> Path | None:
    """Where a run's groups go; None where there is no hierarchy that can be written. Makes nothing."""
    for hierarchy in hierarchies(mounts.read_text()):
        if os.access(hierarchy, os.W_OK):
            return hierarchy / f"trainyard-{run}"
    return None


def make(place: Path | None, job: str) -> Path:
    """The group of a job, made where it is not there yet. Raises LabError."""
    if place is None:
        raise LabError("a cgroup a job needs a cgroup hierarchy that can be written; none is mounted (processes: host)")
    group = place / job
    try:
        group.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise LabError(f"cannot make the cgroup {group}: {error.strerror} (processes: host needs none)") from error
    return group


def join(group: Path) -> None:
    """Move the calling process in. Raises OSError."""
    (group / "cgroup.procs").write_text("0\n")


def remove(places: Iterable[Path], *, patience: float = _PATIENCE_SECONDS) -> None:
    """Remove runs' groups, whose processes have ended. Raises LabError where the kernel keeps one."""
    deadline = time.monotonic() + patience
    for place in places:
        while place.exists():
            # The files in a group are the kernel's, and go with it.
            with contextlib.suppress(OSError):
                for group in place.iterdir():
                    if group.is_dir():
                        group.rmdir()
                place.rmdir()
                break
            if time.monotonic() > deadline:
                raise LabError(f"the cgroup {place} cannot be removed")
            time.sleep(0.05)
