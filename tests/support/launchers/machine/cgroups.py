"""The cgroup hierarchies that are mounted here, and groups in them that a test makes and removes."""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass
from pathlib import Path

V2 = "cgroup2"


@dataclass(frozen=True)
class Hierarchy:
    """``kind``: ``cgroup`` (version 1) or ``cgroup2``. ``controllers``: those of version 1, such as ``freezer``."""

    kind: str
    root: Path
    controllers: frozenset[str] = frozenset()


def hierarchies() -> tuple[Hierarchy, ...]:
    """Returns what ``/proc/self/mounts`` lists of them, in its order."""
    found = []
    for line in Path("/proc/self/mounts").read_text().splitlines():
        _, place, kind, options, *_ = line.split()
        if kind in ("cgroup", V2):
            found.append(Hierarchy(kind, Path(place), frozenset(options.split(",")) if kind != V2 else frozenset()))
    return tuple(found)


def freezer() -> Path | None:
    """Returns the hierarchy in which Slurm tracks processes by version 1; None: there is none."""
    return next((one.root for one in hierarchies() if "freezer" in one.controllers), None)


def is_version_2() -> bool:
    """Returns whether version 2 is the only one here, as systemd mounts it by default."""
    found = hierarchies()
    return bool(found) and all(one.kind == V2 for one in found)


def make(path: str) -> None:
    """Make a group of this path in each hierarchy, so that a process can be in it as a container is."""
    for hierarchy in hierarchies():
        group = hierarchy.root / path.strip("/")
        group.mkdir(parents=True, exist_ok=True)
        _inherit_cpuset(hierarchy, group)


def join(path: str, process: int) -> None:
    """Move a process into a group that ``make`` has made."""
    for hierarchy in hierarchies():
        (hierarchy.root / path.strip("/") / "cgroup.procs").write_text(f"{process}\n")


def remove(path: str, seconds: float = 5.0) -> None:
    """Remove a group with those below it, from each hierarchy. Its processes have ended, or will within this time."""
    deadline = time.monotonic() + seconds
    for hierarchy in hierarchies():
        group = hierarchy.root / path.strip("/")
        while group.is_dir():
            below = sorted((folder for folder in group.rglob("*") if folder.is_dir()), reverse=True)
            for folder in (*below, group):
                with contextlib.suppress(OSError):
                    folder.rmdir()
            if time.monotonic() > deadline:
                break
            if group.is_dir():
                time.sleep(0.02)


def _inherit_cpuset(hierarchy: Hierarchy, group: Path) -> None:
    """A new group of version 1's cpuset takes no process before it has processors and memory."""
    if "cpuset" not in hierarchy.controllers:
        return
    for folder in reversed([group, *group.parents]):
        if hierarchy.root in folder.parents:
            for name in ("cpuset.cpus", "cpuset.mems"):
                if not (folder / name).read_text().strip():
                    (folder / name).write_text((folder.parent / name).read_text())
