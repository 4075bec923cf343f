"""A job's cgroup, in version 2's one hierarchy: the kernel's id of it and of its children, and their processes.

Where only version 1's hierarchies have the job's group, its processes are known, but sockets do not name it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

MAX_GROUPS = 4096
"""Look at no more cgroups below a job's cgroup than this."""

_VIEWS = (("/proc/self/mountinfo", ""), ("/proc/1/mountinfo", "/proc/1/root"))
"""Where hierarchies are mounted: as we see it, and, where our own /sys hides them, as the first process does."""


class Hierarchy(NamedTuple):
    """A mounted hierarchy. ``root``: the group that is at the mount's place."""

    place: Path
    root: str
    is_second: bool


class CgroupId(NamedTuple):
    """What identifies a cgroup: its path in the hierarchy, and the kernel's id, since a path may be used again."""

    path: str
    id: int


class Cgroup(NamedTuple):
    """A job's cgroup as it is now. ``path`` starts at the hierarchy's root, as /proc/PID/cgroup shows it.

    ``id`` is 0 in a hierarchy of version 1, which sockets do not name.
    """

    folder: Path
    path: str
    id: int


def hierarchies() -> tuple[Hierarchy, ...]:
    """Those that can be reached, the second version's first."""
    by_place: dict[Path, Hierarchy] = {}
    for mounts, prefix in _VIEWS:
        try:
            text = Path(mounts).read_text(encoding="utf-8", errors="surrogateescape")
        except OSError:
            continue
        for hierarchy in parse_mounts(text):
            place = Path(f"{prefix}{hierarchy.place}")
            # Another mount may hide it.
            if place not in by_place and os.path.exists(place / "cgroup.procs"):  # noqa: PTH110 - it never raises
                by_place[place] = hierarchy._replace(place=place)
    return tuple(sorted(by_place.values(), key=lambda hierarchy: not hierarchy.is_second))


def parse_mounts(mountinfo: str) -> list[Hierarchy]:
    """The hierarchies in the text of a ``mountinfo``."""
    mounted = []
    for line in mountinfo.splitlines():
        before, separator, after = line.partition(" - ")
        fields, kind = before.split(" "), after.split(" ", 1)[0]
        if separator and len(fields) > 4 and kind in ("cgroup", "cgroup2"):
            mounted.append(Hierarchy(Path(_unescaped(fields[4])), _unescaped(fields[3]), kind == "cgroup2"))
    return mounted


def find(name: str, mounted: tuple[Hierarchy, ...]) -> Cgroup | None:
    """The group that a job file names: by its path in the hierarchy, or by its folder. None: it is not there."""
    for hierarchy in mounted:
        folder, path = _in(hierarchy, name)
        if path == "/":
            continue
        try:
            inode = folder.stat().st_ino
        except OSError:
            continue
        return Cgroup(folder, path, inode if hierarchy.is_second else 0)
    return None


def is_there(group: CgroupId) -> bool:
    """Returns whether the cgroup itself is there, and not another one that was made with its path."""
    present = find(group.path, hierarchies())
    return present is not None and present.id == group.id


def ids(group: Cgroup) -> set[int]:
    """The ids of a group and of all below it; empty for one that sockets do not name."""
    inodes: set[int] = set()
    if group.id:
        for folder in _below(group.folder):
            try:
                inodes.add(os.stat(folder).st_ino)  # noqa: PTH116 - pathlib costs as much again
            except OSError:
                continue
    return inodes


def pids(group: Cgroup) -> set[int]:
    """The processes in a group and below it."""
    numbers: set[int] = set()
    for folder in _below(str(group.folder)):
        try:
            with open(f"{folder}/cgroup.procs", "rb") as file:  # noqa: PTH123 - as above
                numbers.update(map(int, file.read().split()))
        except (OSError, ValueError):
            continue
    # A process of another pid namespace shows as 0.
    numbers.discard(0)
    return numbers


def _in(hierarchy: Hierarchy, name: str) -> tuple[Path, str]:
    """The folder and the path of a group with this name in a hierarchy."""
    root = hierarchy.root.rstrip("/")
    for mounted in (str(hierarchy.place), str(hierarchy.place).removeprefix("/proc/1/root")):
        if name == mounted or name.startswith(f"{mounted}/"):
            return hierarchy.place / name.removeprefix(mounted).strip("/"), _path(root, name.removeprefix(mounted))
    relative = name.removeprefix(root) if root and name.startswith(f"{root}/") else name
    return hierarchy.place / relative.strip("/"), _path(root, relative)


def _path(root: str, relative: str) -> str:
    return f"{root}/{relative.strip('/')}".rstrip("/") or "/"


def _below(folder: str | Path) -> Iterator[str]:
    """A folder and those below it, MAX_GROUPS at most."""
    waiting, count = [str(folder)], 0
    while waiting and count < MAX_GROUPS:
        here = waiting.pop()
        yield here
        count += 1
        try:
            with os.scandir(here) as entries:
                waiting += [entry.path for entry in entries if entry.is_dir(follow_symlinks=False)]
        except OSError:
            continue


def _unescaped(text: str) -> str:
    return re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal[1], 8)), text)
