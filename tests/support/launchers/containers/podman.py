"""Containers by podman from a folder: there is no registry, so the image is busybox and what it needs.

runc starts them: crun refuses machines that mount version 1 of cgroups beside version 2. All that podman keeps is in a
folder of its own, and it adds no network.
"""

from __future__ import annotations

import shutil
import subprocess
import uuid
from pathlib import Path
from types import TracebackType
from typing import Self

APPLETS = ("sh", "sleep", "cat", "echo", "readlink", "env", "date")
START_SECONDS = 60.0
STARTED_IN = "/trainyard-test"
"""The group in which podman starts what is then moved: with its driver cgroupfs it takes no slice."""


class Containers:
    """Starts containers, and ends those that still run when it is closed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.image = folder / "image"
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        for name in ("bin", "proc", "sys", "dev", "tmp", "etc", "shared"):
            (self.image / name).mkdir(parents=True)
        busybox = shutil.which("busybox")
        assert busybox is not None, "busybox-static is not installed"
        shutil.copy(busybox, self.image / "bin" / "busybox")
        for applet in APPLETS:
            (self.image / "bin" / applet).symlink_to("busybox")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.close()

    def start(self, script: str, log: Path, *, shared: Path, cgroup: str, **variables: str) -> str:
        """Start a container that runs a shell script. Returns its name.

        ``log``: what it writes, in the format of the container runtime interface (CRI), as podman's k8s-file writes it.
        ``shared``: a folder that it has as ``/shared``. ``cgroup``: the group below which podman makes the container's.
        """
        name = f"t{uuid.uuid4().hex[:12]}"
        command = [
            *self.podman("run"), "--name", name, "--rm", "--network", "host", "--cgroup-parent", cgroup,
            # A user may not raise its limits, as podman would.
            "--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1024:1024",
            "--log-driver", "k8s-file", "--log-opt", f"path={log}", "--volume", f"{shared}:/shared",
            *(f"--env={variable}={value}" for variable, value in variables.items()),
            "--rootfs", str(self.image), "/bin/sh", "-c", script,
        ]  # fmt: skip
        with (self._folder / f"{name}.said").open("wb") as said:
            self._running[name] = subprocess.Popen(command, stdout=said, stderr=said, stdin=subprocess.DEVNULL)
        return name

    def said(self, name: str) -> str:
        """What podman and the container wrote."""
        return (self._folder / f"{name}.said").read_text()

    def process(self, name: str) -> int | None:
        """Returns the process of a container on this machine; None: it does not run yet."""
        assert self._running[name].poll() is None, f"podman ended: {self.said(name)}"
        command = [*self.podman("inspect"), "--format", "{{.State.Pid}}", name]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return int(done.stdout) or None if done.returncode == 0 and done.stdout.strip().isdigit() else None

    def wait(self, name: str) -> int:
        """Wait for a container's end. Returns its status."""
        return self._running.pop(name).wait(START_SECONDS)

    def close(self) -> None:
        for name, process in self._running.items():
            if process.poll() is None:
                subprocess.run([*self.podman("kill"), name], capture_output=True, check=False)
            process.wait(START_SECONDS)
        self._running = {}

    def podman(self, command: str) -> list[str]:
        """The beginning of a command of podman's, which keeps all in the folder of the test."""
        state = self._folder / "podman"
        places = ["--root", f"{state}/root", "--runroot", f"{state}/run", "--tmpdir", f"{state}/tmp"]
        options = [
            "--cgroup-manager",
            "cgroupfs",
            "--events-backend",
            "none",
            "--runtime",
            "runc",
            "--storage-driver",
            "vfs",
        ]
        return ["podman", *places, *options, command]
