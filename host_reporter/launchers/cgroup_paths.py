"""What the path of a cgroup says: Slurm's job, Kubernetes' pod, Docker's container. Pure.

Each pattern begins at the root of the hierarchy, where root alone makes groups. Below, a user may have a subtree of his
own (systemd delegates one), and make a group there with any name.

Sources: https://slurm.schedmd.com/cgroup_v2.html (slurmstepd.scope/job_ID) and cgroup_v1.html (slurm/uid_N/job_ID);
https://kubernetes.io/docs/tasks/administer-cluster/kubeadm/configure-cgroup-driver/ and the kubelet's ``--cgroup-root``
(kubepods.slice with the systemd driver, kubepods with cgroupfs); containerd and CRI-O name a container's scope
``cri-containerd-ID.scope`` and ``crio-ID.scope``; https://docs.docker.com/engine/containers/runmetrics/
(docker/ID, docker-ID.scope).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple, TypeVar

_ID = r"[0-9a-f]{64}"
_NODE = rf"(?:/docker/{_ID}|/system\.slice/docker-{_ID}\.scope)?"
"""A node of a cluster may itself be a container, as kind's are."""
_SLURM = re.compile(
    r"((?:/system\.slice)?/(?:[\w.-]+_)?slurmstepd\.scope/job_(\d{1,10})|/slurm(?:_[\w.-]+)?/uid_\d+/job_(\d{1,10}))"
    r"(/.*)?",
    re.ASCII,
)
_USERS_STEP = re.compile(r"/step_(?!extern)[^/]+(?!/slurm(?:/|$))(?:/.*)?")
_SYSTEMD = re.compile(
    rf"({_NODE}(?:/kubelet\.slice/kubelet-kubepods\.slice|/kubepods\.slice)"
    r"(?:/(?:kubelet-)?kubepods-(?:besteffort|burstable)\.slice)?"
    r"/(?:kubelet-)?kubepods-(?:(?:besteffort|burstable)-)?pod([0-9a-f_]{32,36})\.slice)(/.*)?"
)
_CGROUPFS = re.compile(rf"({_NODE}(?:/kubelet)?/kubepods(?:/(?:besteffort|burstable))?/pod([0-9a-f-]{{32,36}}))(/.*)?")
_CONTAINER = re.compile(rf"/(?:cri-containerd-|crio-|docker-)?({_ID})(?:\.scope)?(?:/.*)?")
_DOCKER = re.compile(rf"(/docker/({_ID})|/system\.slice/docker-({_ID})\.scope)(?:/.*)?")

_Value = TypeVar("_Value")


class SlurmGroup(NamedTuple):
    """The cgroup of a job of Slurm's on one node.

    ``is_users``: the process is in a step, where Slurm starts the user's programs. Slurm's own daemon, which runs as
    root and ends last, and the external step, where logins are put, are outside.
    """

    job: str
    path: str
    is_users: bool


class PodGroup(NamedTuple):
    """The cgroup of a pod. ``container``: the id of the process's container; None: it is in none."""

    uid: str
    path: str
    container: str | None


def parse(text: str) -> tuple[str, ...]:
    """Returns the paths in the text of a ``/proc/PID/cgroup``, each once."""
    paths = (line.split(":", 2)[2] for line in text.splitlines() if line.count(":") >= 2)
    return tuple(dict.fromkeys(path for path in paths if path != "/"))


def slurm_group(paths: Iterable[str]) -> SlurmGroup | None:
    """Returns the job of Slurm's that a process is in; None: it is in none, or the hierarchies do not agree."""
    found = {}
    for match in filter(None, map(_SLURM.fullmatch, paths)):
        is_users = _USERS_STEP.fullmatch(match[4] or "") is not None
        found[match[2] or match[3]] = SlurmGroup(match[2] or match[3], match[1], is_users)
    return _only(found)


def pod_group(paths: Iterable[str]) -> PodGroup | None:
    """Returns the pod that a process is in; None: it is in none, or the hierarchies do not agree."""
    found = {}
    for path in paths:
        match = _SYSTEMD.fullmatch(path) or _CGROUPFS.fullmatch(path)
        if match is not None:
            uid = match[2].replace("_", "-")
            container = _CONTAINER.fullmatch(match[3] or "")
            found[uid] = PodGroup(uid, match[1], container[1] if container is not None else None)
    return _only(found)


def docker_container(paths: Iterable[str]) -> str | None:
    """Returns the id of Docker's container that a process is in; None: it is in none."""
    return _only({match[2] or match[3]: match[2] or match[3] for match in filter(None, map(_DOCKER.fullmatch, paths))})


def _only(found: dict[str, _Value]) -> _Value | None:
    return next(iter(found.values())) if len(found) == 1 else None
