"""Where a found job's output is: the file behind a descriptor of rank 0, its container's log, or files it has open.

Only regular files are named. A file behind a descriptor is opened through ``/proc/PID/fd``, so that it is the very file
that the process writes to, whatever is at its path. It must be open for writing: what a training reads is no log.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

from host_reporter.launchers import cgroup_paths
from host_reporter.launchers.pods import Pods
from host_reporter.launchers.processes import Processes, Seen
from host_reporter.procfs import PROC, identify
from host_reporter.readers.folder_stamp import FolderStamp
from host_reporter.readers.location import Kind, Location

MAX_DESCRIPTORS = 1024
"""Look at no more open files of a process than this."""

MAX_PARENTS = 8
MAX_CANDIDATES = 16
"""Look at no more processes of a job than this."""

DOCKER = Path("/var/lib/docker/containers")
"""https://docs.docker.com/engine/logging/drivers/json-file/"""
CONTAINERS = Path("/var/log/containers")
"""The kubelet's links to the logs of containers, POD_NAMESPACE_CONTAINER-ID.log."""

_LAUNCHERS = frozenset(
    {
        "mpirun", "mpiexec", "mpiexec.hydra", "mpirun_rsh", "orterun", "prterun", "prun", "orted", "prted", "srun",
        "hydra_pmi_proxy", "hydra_bstrap_pr", "horovodrun", "aprun",
    }
)  # fmt: skip
"""The programs, as /proc/PID/comm names them, whose output is that of the ranks that they start."""

_NAMES: dict[str, Kind] = {
    "metrics.csv": "csv",
    "results.csv": "csv",
    "trainer_state.json": "trainer-state",
}


class Outputs:
    """Finds the output of jobs. ``progress_dir`` is where the two-line helper writes. No method raises."""

    def __init__(
        self, progress_dir: Path, processes: Processes, *, docker: Path = DOCKER, containers: Path = CONTAINERS
    ) -> None:
        self._progress_dir = progress_dir
        self._processes = processes
        self._docker = docker
        self._containers = containers

    @property
    def _pods(self) -> Pods:
        return self._processes.pods

    def helper(self, names: Iterable[str | None], user: int | None) -> Location | None:
        """Returns the helper's file of a job with one of these names, where it is the user's; None: there is none."""
        for name in filter(None, names):
            for path in (f"{name}.jsonl", f"{name}.{user}.jsonl"):
                if user is not None and _is_own(self._progress_dir / path, user):
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
        for place, candidates in ((self._printed, firsts), (self._steps_file, rest), (self._printed, rest)):
            if (location := next(filter(None, map(place, candidates)), None)) is not None:
                return location
        for seen in firsts[:1]:
            if (location := self._launchers_output(seen)) is not None:
                return location
        return next(filter(None, map(self._open_file, (*firsts, *rest))), None)

    def _printed(self, seen: Seen) -> Location | None:
        """Returns where a process's standard output and standard error are kept."""
        return _standard_output(seen.process.pid) or self._container_log(seen.cgroups)

    def _steps_file(self, seen: Seen) -> Location | None:
        """Returns the file of ``srun --output=FILE``, which srun alone has open, and not what its script had open."""
        pid = seen.process.pid
        if _name(pid) != "srun":
            return None
        inherited = {target for _, target in _open_paths(seen.parent)}
        for number, target in _open_paths(pid):
            if number > 2 and target not in inherited and _regular(pid, number) is not None:
                return _descriptor(pid, number, target, None)
        return None

    def _launchers_output(self, seen: Seen) -> Location | None:
        """Returns the output of the mpirun above a process, which prints what its ranks print."""
        pid = seen.process.pid
        for _ in range(MAX_PARENTS):
            pid = self._processes.parent_of(pid)
            if pid <= 1 or _user(pid) != seen.user:
                return None
            if _name(pid) in _LAUNCHERS and (location := _standard_output(pid)) is not None:
                return location
        return None

    def _container_log(self, cgroups: tuple[str, ...]) -> Location | None:
        group = cgroup_paths.pod_group(cgroups)
        if group is not None:
            return self._pod_log(group)
        container = cgroup_paths.docker_container(cgroups)
        if container is None:
            return None
        file = self._docker / container / f"{container}-json.log"
        return Location(file, str(file), "docker-json", follow_links=False, owner=0) if _is_own(file, 0) else None

    def _pod_log(self, group: cgroup_paths.PodGroup) -> Location | None:
        folder = self._pods.folder(group.uid)
        if folder is None:
            return None
        try:
            containers = [entry.name for entry in os.scandir(folder) if entry.is_dir(follow_symlinks=False)]
            name = containers[0] if len(containers) == 1 else self._container_name(group.container)
            if name not in containers:
                return None
            numbers = [int(path.stem) for path in (folder / name).glob("*.log") if path.stem.isdigit()]
        except OSError:
            return None
        if not numbers:
            return None
        file = folder / name / f"{max(numbers)}.log"
        if file.is_symlink():
            # As Docker's logs are shown to the kubelet. Root has made the link.
            return Location(file, str(file), "docker-json", owner=0)
        return Location(file, str(file), "cri", follow_links=False, owner=0)

    def _container_name(self, container: str | None) -> str:
        """Returns the name that a pod gives to one of its containers; empty: it is not known."""
        end = f"-{container}.log"
        names = (name for name in os.listdir(self._containers) if name.endswith(end))  # noqa: PTH208 - as in procfs
        return next((name.removesuffix(end).rpartition("_")[2] for name in names), "")

    def _open_file(self, seen: Seen) -> Location | None:
        """Returns a file of metrics that a process has open for writing."""
        found: dict[int, Location] = {}
        for number, target in _open_paths(seen.process.pid):
            folder, _, name = target.rpartition("/")
            kind = _NAMES.get(name) or ("jsonl" if name.endswith(".jsonl") else None)
            is_events = "tfevents" in name
            if (kind is None and not is_events) or _regular(seen.process.pid, number) is None:
                continue
            if folder == str(self._progress_dir) and kind == "jsonl":
                found[0] = _descriptor(seen.process.pid, number, target, kind)
            elif is_events:
                found.setdefault(1, _folder(seen, folder))
            else:
                found.setdefault(2, _descriptor(seen.process.pid, number, target, kind))
        return found[min(found)] if found else None


def _standard_output(pid: int) -> Location | None:
    """Returns the regular file behind descriptor 1, or behind 2 where only that has anything; None: there is none."""
    files = [(number, *known) for number in (1, 2) if (known := _regular(pid, number)) is not None]
    if not files:
        return None
    number, target, _ = next((file for file in files if file[2]), files[0])
    return _descriptor(pid, number, target, None)


def _descriptor(pid: int, number: int, target: str, kind: Kind | None) -> Location:
    path = f"{PROC}/{pid}/fd/{number}"
    try:
        owner = os.stat(path).st_uid  # noqa: PTH116 - pathlib costs as much again
    except OSError:
        owner = None
    return Location(Path(path), target, kind, owner=owner)


def _regular(pid: int, number: int) -> tuple[str, int] | None:
    """Returns the name and the size of a regular file that a process writes to; None: the descriptor is none."""
    path = f"{PROC}/{pid}/fd/{number}"
    try:
        # The link has the rights with which the file was opened.
        if not os.lstat(path).st_mode & stat.S_IWUSR:
            return None
        status = os.stat(path)  # noqa: PTH116 - pathlib costs as much again
        return (os.readlink(path), status.st_size) if stat.S_ISREG(status.st_mode) else None  # noqa: PTH115 - as above
    except OSError:
        return None


def _open_paths(pid: int) -> Iterator[tuple[int, str]]:
    """Yields what a process has open that has a path: the descriptor, and the path."""
    folder = f"{PROC}/{pid}/fd"
    try:
        names = os.listdir(folder)  # noqa: PTH208 - as above
    except OSError:
        return
    for name in sorted(names, key=int)[:MAX_DESCRIPTORS]:
        try:
            target = os.readlink(f"{folder}/{name}")  # noqa: PTH115 - as above
        except OSError:
            continue
        # Sockets and pipes have none.
        if target.startswith("/"):
            yield int(name), target


def _folder(seen: Seen, folder: str) -> Location:
    """Returns a folder as a process sees it, which may be in a container."""
    root = f"{PROC}/{seen.process.pid}/root"
    try:
        is_ours = os.path.samestat(os.stat(root), os.stat("/"))  # noqa: PTH116 - as above
    except OSError:
        is_ours = True
    path = Path(folder if is_ours else f"{root}{folder}")
    return Location(path, folder, "tensorboard", follow_links=False, owner=seen.user)


def _is_own(path: Path, user: int) -> bool:
    """Returns whether a path is a regular file of a user, and no link."""
    try:
        status = os.lstat(path)
    except (OSError, ValueError):
        return False
    return stat.S_ISREG(status.st_mode) and status.st_uid == user


def _user(pid: int) -> int | None:
    try:
        return os.stat(f"{PROC}/{pid}").st_uid if identify(pid) is not None else None  # noqa: PTH116 - as above
    except OSError:
        return None


def _name(pid: int) -> str:
    try:
        return Path(f"{PROC}/{pid}/comm").read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""
