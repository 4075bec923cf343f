"""One rank of a real training on one host: what a launcher such as torchrun, a prolog and an epilog are on a cluster.

The training script is run as it is. Its environment is what torchrun would set; its first step of the optimiser waits,
by a hook that PyTorch has for that, until the job arrives. By then processes, connections and one exchange of
gradients are there: how long they take to start is not what is measured. At the arrival the host's agent gets a job
file with the job's cgroup; of ports, sockets and bytes nobody tells anything.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import runpy
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch.optim.optimizer import register_optimizer_step_pre_hook

from evaluation.real.job import RankUse
from topologies.trainer.results import write_whole
from topologies.trainer.start import Meeting

SCRIPT = Path(__file__).with_name("training.py")
_TASKS = Path("/proc/self/task")


def parser() -> argparse.ArgumentParser:
    """The command line; what follows ``--`` is the script's."""
    command_line = argparse.ArgumentParser(prog="python -m evaluation.real.rank", description=__doc__)
    command_line.add_argument("--job", required=True)
    command_line.add_argument("--rank", type=int, required=True)
    command_line.add_argument("--master", required=True, metavar="ADDRESS:PORT", help="where rank 0 listens")
    command_line.add_argument("--hosts", required=True, metavar="NAME,...", help="the hosts of all ranks, in order")
    command_line.add_argument("--interface", required=True, help="the network interface that the ranks use")
    command_line.add_argument("--cgroup", required=True, help="the cgroup of this rank's processes")
    command_line.add_argument("--jobs-dir", type=Path, required=True, help="the jobs folder of this host's agent")
    command_line.add_argument(
        "--progress-dir", type=Path, required=True, help="the progress folder of this host's agent"
    )
    command_line.add_argument("--meet", type=Path, required=True, help="the folder in which the start is announced")
    command_line.add_argument(
        "--arrival", type=float, required=True, help="the job's arrival, in seconds from the start"
    )
    command_line.add_argument("--iterations", type=int, required=True, help="the job's declared number of iterations")
    command_line.add_argument("--out", type=Path, required=True, help="the file for what this rank has used")
    command_line.add_argument("script_arguments", nargs="*")
    return command_line


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the training script. Raises what the script raises."""
    options = parser().parse_args(arguments)
    torch.set_num_threads(1)
    os.environ |= environment(options)
    gate = Gate(options)
    hook = register_optimizer_step_pre_hook(gate)
    sys.argv = [str(SCRIPT), *options.script_arguments]
    try:
        runpy.run_path(str(SCRIPT), run_name="__main__")
    finally:
        hook.remove()
        gate.leave()
    return 0


def environment(options: argparse.Namespace) -> dict[str, str]:
    """Return the script's environment: torchrun's, Gloo's, and the progress folder for the callback."""
    address, _, port = options.master.rpartition(":")
    return {
        "RANK": str(options.rank),
        "LOCAL_RANK": "0",
        "WORLD_SIZE": str(len(options.hosts.split(","))),
        "MASTER_ADDR": address,
        "MASTER_PORT": port,
        "GLOO_SOCKET_IFNAME": options.interface,
        "TRAINYARD_JOB": options.job,
        "TRAINYARD_PROGRESS_DIR": str(options.progress_dir),
    }


@dataclass(frozen=True, slots=True)
class _Spent:
    """So far: by the clock, on processors, and waiting for one."""

    seconds: float
    cpu: float
    waits: dict[str, int] | None

    @classmethod
    def now(cls) -> _Spent:
        return cls(time.monotonic(), time.process_time(), waits())


@dataclass
class Gate:
    """Called before every step of an optimiser: the first one waits for the job's arrival."""

    options: argparse.Namespace
    _since: _Spent | None = field(default=None, init=False)

    def __call__(self, *_: Any) -> None:
        """Wait, the first time. Raises OSError."""
        if self._since is not None:
            return
        zero = Meeting(self.options.meet).join(f"{self.options.job}-{self.options.rank}")
        time.sleep(max(0.0, zero.monotonic + self.options.arrival - time.monotonic()))
        write_whole(self._job_file, json.dumps(job_file(self.options, zero.epoch + self.options.arrival)))
        self._since = _Spent.now()

    def leave(self) -> None:
        """The training is over: write down what it used, and take the job file away."""
        if self._since is None:
            return
        since, now = self._since, _Spent.now()
        waited = waited_seconds(since.waits, now.waits)
        use = RankUse(self.options.job, self.options.rank, now.seconds - since.seconds, now.cpu - since.cpu, waited)
        write_whole(self.options.out, json.dumps(asdict(use)))
        with contextlib.suppress(FileNotFoundError):
            self._job_file.unlink()

    @property
    def _job_file(self) -> Path:
        return Path(self.options.jobs_dir) / f"{self.options.job}.json"


def job_file(options: argparse.Namespace, arrival_epoch: float) -> dict[str, Any]:
    """What this host's agent is told. At rank 0's host what the job is: its hosts, its metric and its length."""
    document: dict[str, Any] = {"id": options.job, "cgroup": options.cgroup}
    if options.rank == 0:
        document["spec"] = {
            "tasks": [{"role": "peer", "host": host} for host in options.hosts.split(",")],
            "metric": {"name": "accuracy", "direction": "max"},
            "iterations": options.iterations,
            "arrival": arrival_epoch,
        }
    return document


def waits() -> dict[str, int] | None:
    """For how many nanoseconds each thread of this process could have run and had no processor, by its id.

    Returns None where the kernel does not count it.
    """
    nanoseconds = {}
    for task in _TASKS.iterdir():
        try:
            nanoseconds[task.name] = int((task / "schedstat").read_text().split()[1])
        except (FileNotFoundError, ProcessLookupError):
            # A thread that has ended meanwhile, or a kernel without the file.
            if task.exists():
                return None
        except (OSError, IndexError, ValueError):
            return None
    return nanoseconds


def waited_seconds(before: Mapping[str, int] | None, now: Mapping[str, int] | None) -> float | None:
    """What the threads that live now have waited since; what others have is gone with them."""
    if before is None or now is None:
        return None
    return sum(spent - before.get(thread, 0) for thread, spent in now.items()) / 1e9


if __name__ == "__main__":
    sys.exit(main())
