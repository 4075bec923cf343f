"""What /proc tells of the processes of a launch: environment, cgroups, user, parent, and where descriptors lead."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

MAX_DESCRIPTORS = 64


@dataclass(frozen=True)
class Seen:
    """One process. ``descriptors``: number to what it leads to, as the link in ``/proc/PID/fd`` reads."""

    pid: int
    parent: int
    uid: int
    command: tuple[str, ...]
    cgroup: tuple[str, ...]
    environment: dict[str, str]
    descriptors: dict[int, str]


def launched(variable: str, value: str) -> list[Seen]:
    """Returns the processes that have this variable in their environment, and their ancestors that can be read.

    Ancestors are daemons, such as slurmstepd, and end before this process and the first of the machine.
    """
    every = {seen.pid: seen for seen in _every()}
    chosen = {pid for pid, seen in every.items() if seen.environment.get(variable) == value}
    outside = {1, *_ancestors(os.getpid(), every), os.getpid()}
    for pid in tuple(chosen):
        chosen |= set(_ancestors(pid, every))
    return [every[pid] for pid in sorted(chosen - outside) if pid in every]


def _every() -> Iterator[Seen]:
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            # It may end while it is read.
            with contextlib.suppress(OSError, ValueError, IndexError):
                yield _read(entry)


def _read(entry: Path) -> Seen:
    status = dict(line.split(":\t", 1) for line in (entry / "status").read_text().splitlines() if ":\t" in line)
    command = (entry / "cmdline").read_bytes().decode(errors="replace").rstrip("\0").split("\0")
    variables = (entry / "environ").read_bytes().decode(errors="replace").split("\0")
    return Seen(
        int(entry.name),
        int(status["PPid"]),
        int(status["Uid"].split()[1]),
        tuple(command),
        tuple((entry / "cgroup").read_text().splitlines()),
        dict(variable.split("=", 1) for variable in variables if "=" in variable),
        dict(_descriptors(entry)),
    )


def _descriptors(entry: Path) -> Iterable[tuple[int, str]]:
    for number in sorted(map(int, (path.name for path in (entry / "fd").iterdir())))[:MAX_DESCRIPTORS]:
        with contextlib.suppress(OSError):
            yield number, str((entry / "fd" / str(number)).readlink())


def _ancestors(pid: int, every: dict[int, Seen]) -> Iterator[int]:
    while pid in every and every[pid].parent:
        pid = every[pid].parent
        yield pid
