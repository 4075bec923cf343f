"""Where a found job's output is: the file behind a descriptor of rank 0, its container's log, or files it has open.

Only regular files are named. A file behind a descriptor is opened through ``/proc/PID/fd``, so that it is the very file
that the process writes to, whatever is at its path. It must be open for writing: what a training reads is no log.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from host_reporter.jobs.found.container_logs import CONTAINERS, DOCKER, ContainerLogs, is_own
from host_reporter.jobs.found.descriptors import (
    arguments_of,
    as_seen_by,
    descriptor,
    open_paths,
    program_of,
    standard_output,
    user_of,
    written,
)
from host_reporter.jobs.found.pipes import piped_output
from host_reporter.launchers.known.hydra import writes_labels
from host_reporter.launchers.processes import Processes, Seen
from host_reporter.procfs import PROC
from host_reporter.readers.folder_stamp import FolderStamp
from host_reporter.readers.location import Kind, Location

MAX_PARENTS = 8
MAX_CANDIDATES = 16
"""Look at no more processes of a job than this."""

_LAUNCHERS = frozenset(
    {
        "mpirun", "mpiexec", "mpiexec.hydra", "mpirun_rsh", "orterun", "prterun", "prun", "orted", "prted", "srun",
        "hydra_pmi_proxy", "hydra_bstrap_pr", "horovodrun", "aprun",
    }
)  # fmt: skip
"""The programs, as /proc/PID/comm names them, whose output is that of the ranks that they start."""

_NAMES: dict[str, Kind | None] = {
    "metrics.csv": "csv",
    "progress.csv": "csv",
    "results.csv": "csv",
    "trainer_state.json": "trainer-state",
    "training.csv": "csv",
    "training.log": None,
}
"""Files of metrics that programs have open, and their kind; None: their content tells it."""


class Outputs:
    """Finds the output of jobs. ``progress_dir`` is where the two-line helper writes. No method raises."""

    def __init__(
        self, progress_dir: Path, processes: Processes, *, docker: Path = DOCKER, containers: Path = CONTAINERS
    ) -> None:
        self._progress_dir = progress_dir
        self._processes = processes
        self._containers = ContainerLogs(processes.pods, docker, containers)

    def helper(self, names: Iterable[str | None], user: int | None) -> Location | None:
        """Returns the helper's file of a job with one of these names, where it is the user's; None: there is none."""
        for name in filter(None, names):
            for path in (f"{name}.jsonl", f"{name}.{user}.jsonl"):
                if user is not None and is_own(self._progress_dir / path, user):
                    file = self._progress_dir / path
                    return Location(file, str(file), "jsonl", follow_links=False, owner=user)
        return None

    def has_news(self, stamp: FolderStamp, wall: float) -> bool:
        """Returns whether a file has come into the helper's folder. ``wall``: seconds since the epoch."""
        try:
            return stamp.is_news(self._progress_dir, wall)
        except OSError:
            return False

    @staticmethod
    def is_gone(location: Location) -> bool:
        """Returns whether the process has ended, or closed the file, through whose descriptor a file is read."""
        return location.path.is_relative_to(PROC) and not os.path.exists(location.path)  # noqa: PTH110 - it never raises

    def find(self, first: Iterable[Seen], others: Iterable[Seen]) -> Location | None:
        """Returns where rank 0's output is; None: nothing is found yet. The surest candidates come first."""
        firsts, rest = tuple(first)[:MAX_CANDIDATES], tuple(others)[:MAX_CANDIDATES]
        places = (
            (self._printed, firsts),
            (self._steps_file, rest),
            (self._printed, rest),
            (self._launchers_output, firsts[:1]),
            (self._piped, firsts[:1]),
        )
        for place, candidates in places:
            if (location := next(filter(None, map(place, candidates)), None)) is not None:
                is_labelled = any(map(self._has_labels, firsts[:1]))
                return replace(location, ranks_in_brackets=True) if is_labelled else location
        # Of a script's processes that print into pipes any may be the training, so the file must be one and the same.
        piped = {location.shown: location for location in map(self._piped, rest) if location is not None}
        if len(piped) == 1 and not firsts:
            return next(iter(piped.values()))
        return next(filter(None, map(self._open_file, (*firsts, *rest))), None)

    def _printed(self, seen: Seen) -> Location | None:
        """Returns where a process's standard output and standard error are kept."""
        return standard_output(seen.process.pid, seen.user) or self._containers.find(seen.cgroups)

    def _steps_file(self, seen: Seen) -> Location | None:
        """Returns the file of ``srun --output=FILE``, which srun alone has open, and not what its script had open."""
        pid = seen.process.pid
        if seen.user is None or program_of(pid) != "srun":
            return None
        inherited = {target for _, target in open_paths(seen.parent)}
        for number, target in open_paths(pid):
            if number > 2 and target not in inherited and written(pid, number) is not None:
                return descriptor(pid, number, target, None, seen.user)
        return None

    def _launchers_output(self, seen: Seen) -> Location | None:
        """Returns the output of the mpirun above a process, which prints what its ranks print."""
        for pid in self._launchers_above(seen):
            if (location := standard_output(pid, seen.user)) is not None:
                return location
            if (location := piped_output(pid, seen.user, self._processes)) is not None:
                return location
        return None

    def _launchers_above(self, seen: Seen) -> Iterator[int]:
        """Yields the processes of launchers above a process, as far as they are of its user."""
        pid = seen.process.pid
        for _ in range(MAX_PARENTS):
            pid = self._processes.parent_of(pid)
            if pid <= 1 or user_of(pid) != seen.user:
                return
            if program_of(pid) in _LAUNCHERS:
                yield pid

    def _piped(self, seen: Seen) -> Location | None:
        return piped_output(seen.process.pid, seen.user, self._processes)

    def _has_labels(self, seen: Seen) -> bool:
        """Returns whether the mpiexec above a rank puts ``[0] `` before the lines of its ranks."""
        program = next(iter(arguments_of(seen.process.pid)), "")
        return any(writes_labels(arguments_of(pid), program) for pid in self._launchers_above(seen))

    def _open_file(self, seen: Seen) -> Location | None:
        """Returns a file of metrics that a process has open for writing."""
        if seen.user is None:
            # What it may read itself is not known.
            return None
        found: dict[int, Location] = {}
        pid = seen.process.pid
        for number, target in open_paths(pid):
            folder, _, name = target.rpartition("/")
            kind = "jsonl" if name.endswith(".jsonl") else _NAMES.get(name)
            is_events = "tfevents" in name
            if (kind is None and name not in _NAMES and not is_events) or written(pid, number) is None:
                continue
            if folder == str(self._progress_dir) and kind == "jsonl":
                found[0] = descriptor(pid, number, target, kind, seen.user)
            elif is_events:
                path = as_seen_by(pid, folder)
                found.setdefault(1, Location(path, folder, "tensorboard", follow_links=False, owner=seen.user))
            else:
                found.setdefault(2, descriptor(pid, number, target, kind, seen.user))
        return found[min(found)] if found else None
