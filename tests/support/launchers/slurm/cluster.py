"""A real Slurm of Debian's on this machine: munged, slurmctld and a slurmd for each node, in a folder of its own.

Processes are tracked by cgroups where this machine lets Slurm, so that a job's are in ``.../job_N/...``.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

from evaluation.bench.support.free_port import free_port
from evaluation.bench.support.waiting import wait_until
from tests.support.launchers.machine.cgroups import freezer, is_version_2
from tests.support.launchers.machine.needs import search_path
from tests.support.launchers.machine.users import User
from tests.support.launchers.slurm.daemons import Daemon
from tests.support.launchers.slurm.scripts import install
from tests.support.launchers.slurm.settings import SlurmSettings, cgroup_conf, slurm_conf

START_SECONDS = 60.0
JOB_SECONDS = 60.0


class SlurmCluster:
    """It has the prolog and epilog that ship. Jobs are root's unless ``user`` is given.

    ``first_job``: the number of the first one; by default one that no other Slurm of this machine is likely to have.
    """

    def __init__(self, nodes: int = 2, first_job: int | None = None) -> None:
        # Short, and open to the users of jobs: the path of a socket has at most 107 characters.
        self.folder = Path(tempfile.mkdtemp(prefix="slurm-", dir="/tmp"))
        self.folder.chmod(0o755)
        mark = secrets.token_hex(2)
        self._settings = SlurmSettings(
            self.folder,
            # Of their own: Slurm names groups of the machine after its nodes.
            tuple(f"n{mark}x{number}" for number in range(1, nodes + 1)),
            tuple(free_port() for _ in range(nodes)),
            free_port(),
            "proctrack/cgroup" if is_version_2() or freezer() is not None else "proctrack/linuxproc",
            first_job or secrets.randbelow(8_000_000) + 1_000_000,
            install(self.folder),
        )
        self.nodes = self._settings.nodes
        self._daemons: list[Daemon] = []

    def __enter__(self) -> Self:
        try:
            self._start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.close()

    @property
    def environment(self) -> dict[str, str]:
        """What a command of Slurm's needs to find the cluster."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("SLURM", "PYTEST"))}
        return {**kept, "PATH": search_path(), "SLURM_CONF": str(self._settings.file)}

    @property
    def progress(self) -> Path:
        """The folder where trainings report, which the prolog makes."""
        return self.folder / "progress"

    @property
    def environment_files(self) -> Path:
        """The folder in which the task prolog looks for the variables of a job."""
        return self.folder / "environment"

    @property
    def log(self) -> str:
        """What the daemons have said."""
        return "\n".join(daemon.said for daemon in self._daemons)

    def run(self, *command: str, user: User | None = None, folder: Path | None = None, **variables: str) -> str:
        """Run a command such as srun to its end. Returns what it wrote to stdout."""
        done = subprocess.run(
            command, env=self.environment | variables, capture_output=True, text=True, check=False,
            timeout=JOB_SECONDS, cwd=folder or self.folder, **(user.options if user else {}),
        )  # fmt: skip
        assert done.returncode == 0, f"{' '.join(command)}: {done.stderr}\n{self.log[-4000:]}"
        return done.stdout

    def submit(
        self, script: Path, *options: str, user: User | None = None, folder: Path | None = None, **variables: str
    ) -> int:
        """Give a batch script to Slurm. Returns the job's number."""
        said = self.run("sbatch", "--parsable", *options, str(script), user=user, folder=folder, **variables)
        return int(re.split(r"[;\s]", said)[0])

    def wait(self, job: int, seconds: float = JOB_SECONDS) -> None:
        """Wait until no task of a job waits or runs."""
        wait_until(lambda: not self.run("squeue", "--noheader", f"--jobs={job}").strip(), seconds, what=f"job {job}")

    def cancel_all(self) -> None:
        """End all jobs, and wait for that."""
        with contextlib.suppress(AssertionError, subprocess.TimeoutExpired):
            self.run("scancel", "--partition=main")
            wait_until(lambda: not self.run("squeue", "--noheader").strip(), 15, what="the end of all jobs")

    def close(self) -> None:
        """End the daemons, and remove all that was made for them."""
        if self._daemons:
            self.cancel_all()
        for daemon in reversed(self._daemons):
            daemon.stop()
        self._daemons = []
        for group in self._groups():
            _end(group)
            with contextlib.suppress(OSError):
                group.rmdir()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _start(self) -> None:
        self._write_files()
        settings = self._settings
        self._daemon(
            "munged", "--foreground", f"--key-file={self.folder}/munge.key", f"--socket={settings.munge_socket}",
            f"--pid-file={self.folder}/munged.pid", f"--seed-file={self.folder}/munge.seed", "--num-threads=2",
        )  # fmt: skip
        wait_until(settings.munge_socket.exists, START_SECONDS, what="the start of munged")
        self._daemon("slurmctld", "-D", "-f", str(settings.file))
        for node in self.nodes:
            self._daemon("slurmd", "-D", "-N", node, "-f", str(settings.file))
        wait_until(self._is_idle, START_SECONDS, what="the start of Slurm", every=0.1)

    def _write_files(self) -> None:
        for name in ("state", *(f"spool-{node}" for node in self.nodes)):
            (self.folder / name).mkdir()
        key = self.folder / "munge.key"
        key.touch(0o600)
        key.write_bytes(secrets.token_bytes(128))
        self._settings.file.write_text(slurm_conf(self._settings))
        version = 2 if is_version_2() else 1
        (self.folder / "cgroup.conf").write_text(cgroup_conf(Path("/sys/fs/cgroup"), version))

    def _daemon(self, *command: str) -> None:
        log = self.folder / f"{len(self._daemons)}-{command[0]}.log"
        self._daemons.append(Daemon(command, log, self.environment))

    def _is_idle(self) -> bool:
        for daemon in self._daemons:
            daemon.check()
        done = subprocess.run(
            ["sinfo", "--noheader", "--Node", "--format=%T"],
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        return done.returncode == 0 and done.stdout.split() == ["idle"] * len(self.nodes)

    def _groups(self) -> Iterator[Path]:
        """What Slurm leaves of its groups, deepest first."""
        root = Path("/sys/fs/cgroup")
        for node in self.nodes:
            for top in (*root.glob(f"*/slurm_{node}"), *root.glob(f"system.slice/{node}_slurmstepd.scope")):
                yield from sorted((path for path in top.rglob("*") if path.is_dir()), reverse=True)
                yield top


def _end(group: Path, seconds: float = 5.0) -> None:
    """End what is still in a group of the cluster's own, such as a slurmstepd that waits for slurmctld."""
    deadline = time.monotonic() + seconds
    while (left := (group / "cgroup.procs").read_text().split()) and time.monotonic() < deadline:
        for process in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(process), signal.SIGKILL)
        time.sleep(0.02)
