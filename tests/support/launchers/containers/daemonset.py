"""The container of deploy/kubernetes/daemonset.yaml, run by podman with the rights and mounts that stand there.

What differs: the image is this machine's own programs, read only; the node's folders are the test's.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import yaml

from evaluation.bench.support.api_client import HOST
from tests.support.launchers.containers.podman import STARTED_IN, Containers
from tests.support.launchers.jobs.found_jobs import FoundJobs
from tests.support.launchers.machine import cgroups
from tests.support.paths import ROOT

MANIFEST = ROOT / "deploy" / "kubernetes" / "daemonset.yaml"


class DaemonSetJobs(FoundJobs):
    """A controller, and the agent in its container."""

    def __init__(self, folder: Path, containers: Containers) -> None:
        place = folder / "node"
        (place / "progress").mkdir(parents=True)
        super().__init__(place, place / "progress")
        (self.logs / "containers").mkdir()
        (place / "node-jobs").mkdir()
        (place / "state").mkdir()
        self._containers, self._place = containers, place

    def close(self) -> None:
        try:
            super().close()
        finally:
            cgroups.remove(STARTED_IN)

    def _start(self) -> subprocess.Popen[bytes]:
        files = {name: self._place / name for name in ("agent.yaml", "ca.pem", "enrol-token", "xtables.lock")}
        for file in files.values():
            file.touch(0o600)
        files["agent.yaml"].write_text(f"controller: {self.controller.url}\nperiod: 0.2\nmarking: false\n")
        files["enrol-token"].write_text(HOST)
        node = {
            "/sys/fs/cgroup": Path("/sys/fs/cgroup"),
            "/var/log/pods": self.logs / "pods",
            "/var/log/containers": self.logs / "containers",
            "/run/trainyard": self._place,
            "/etc/trainyard/jobs.d": self._place / "node-jobs",
            "/var/lib/host-reporter": self._place / "state",
            "/run/xtables.lock": files["xtables.lock"],
        }
        mounted = {f"/etc/trainyard/{name}": path for name, path in files.items()}
        return AgentContainer(self._containers, node, mounted, "h1", self._place / "image").start(self._log)


class AgentContainer:
    """``node``: for each path of the node that the manifest mounts, what is there. ``files``: likewise single files."""

    def __init__(
        self, containers: Containers, node: Mapping[str, Path], files: Mapping[str, Path], host: str, image: Path
    ) -> None:
        self._containers = containers
        self._pod = yaml.safe_load(MANIFEST.read_text())["spec"]["template"]["spec"]
        self._agent = self._pod["containers"][0]
        self._node, self._files, self._host, self._image = node, files, host, image

    def start(self, log: Path) -> subprocess.Popen[bytes]:
        """Start it. SIGTERM ends it as the kubelet does."""
        _make_image(self._image)
        command = [
            *self._containers.podman("run"),
            "--rm",
            "--network",
            "host",
            "--pid",
            "host",
            "--cgroupns",
            "private",
        ]
        command += ["--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1024:1024", "--cgroup-parent", STARTED_IN]
        command += [*self._rights(), *self._volumes(), "--env", f"NODE_NAME={self._host}"]
        command += ["--rootfs", str(self._image), *self._command()]
        with log.open("ab") as output:
            return subprocess.Popen(command, stdout=output, stderr=output, stdin=subprocess.DEVNULL)

    def _rights(self) -> Iterator[str]:
        context = self._agent["securityContext"]
        assert context["readOnlyRootFilesystem"] and not context["privileged"]
        yield "--read-only"
        yield from (f"--cap-drop={capability.lower()}" for capability in context["capabilities"]["drop"])
        yield from (f"--cap-add={capability}" for capability in context["capabilities"]["add"])

    def _volumes(self) -> Iterator[str]:
        volumes = {volume["name"]: volume for volume in self._pod["volumes"]}
        for mount in self._agent["volumeMounts"]:
            volume, place = volumes[mount["name"]], mount["mountPath"]
            if "emptyDir" in volume:
                continue
            source = self._node[volume["hostPath"]["path"]] if "hostPath" in volume else self._files[place]
            yield f"--volume={source}:{place}:{'ro' if mount.get('readOnly') else 'rw'}"
        # The image: programs and libraries of this machine, the environment and the checkout.
        for source in ("/usr", "/etc/passwd", str(ROOT), *_elsewhere()):
            yield f"--volume={source}:{source}:ro"

    def _command(self) -> Iterator[str]:
        here = {
            "host-reporter": [sys.executable, "-m", "host_reporter.agent"],
            "--target=1": [f"--target={_process_of_the_node()}"],
            # The test's controller lists its hosts, so that none enrols.
            "--enrol-token-file=/etc/trainyard/enrol-token": ["--token-file=/etc/trainyard/enrol-token"],
        }
        for word in (*self._agent["command"], *self._agent["args"]):
            yield from here.get(word, [word.replace("$(NODE_NAME)", self._host)])


def _make_image(image: Path) -> None:
    """Folders to mount on, and the links of a system whose programs are all in /usr."""
    for name in (
        "usr",
        "proc",
        "sys",
        "dev",
        "tmp",
        "run",
        "etc/trainyard/jobs.d",
        "var/log/pods",
        "var/log/containers",
    ):
        (image / name).mkdir(parents=True, exist_ok=True)
    for name in ("bin", "sbin", "lib", "lib64"):
        (image / name).symlink_to(f"usr/{name}")


def _process_of_the_node() -> int:
    """The first process; another one where this machine lets nobody look at the first."""
    try:
        Path("/proc/1/ns/cgroup").readlink()
    except PermissionError:
        return os.getpid()
    return 1


def _elsewhere() -> Iterator[str]:
    """The environment where it is not in the checkout."""
    if ROOT not in Path(sys.prefix).resolve().parents:
        yield str(Path(sys.prefix).resolve())
