"""The logs that container engines keep: a pod's on a Kubernetes node, and Docker's JSON lines. No method raises."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from host_reporter.launchers import cgroup_paths
from host_reporter.launchers.pods import Pods
from host_reporter.readers.location import Location

DOCKER = Path("/var/lib/docker/containers")
"""https://docs.docker.com/engine/logging/drivers/json-file/"""
CONTAINERS = Path("/var/log/containers")
"""The kubelet's links to the logs of containers, POD_NAMESPACE_CONTAINER-ID.log."""


class ContainerLogs:
    """Finds the log of the container that a process is in. The folders are root's."""

    def __init__(self, pods: Pods, docker: Path = DOCKER, containers: Path = CONTAINERS) -> None:
        self._pods, self._docker, self._containers = pods, docker, containers

    def find(self, cgroups: tuple[str, ...]) -> Location | None:
        """Returns the log of the container of these cgroups; None: it is no container's, or nothing is printed yet."""
        group = cgroup_paths.pod_group(cgroups)
        if group is not None:
            return self._pod_log(group)
        container = cgroup_paths.docker_container(cgroups)
        if container is None:
            return None
        file = self._docker / container / f"{container}-json.log"
        return Location(file, str(file), "docker-json", follow_links=False, owner=0) if is_own(file, 0) else None

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


def is_own(path: Path, user: int) -> bool:
    """Returns whether a path is a regular file of a user, and no link."""
    try:
        status = os.lstat(path)
    except (OSError, ValueError):
        return False
    return stat.S_ISREG(status.st_mode) and status.st_uid == user
