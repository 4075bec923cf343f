"""Real PyTorch jobs on the emulated network, one after the other: each a parameter server and workers, a host each.

Where the kernel has no Open vSwitch datapath the lab runs itself again inside a User-Mode Linux box. Every host's
traffic is in one class: what is measured is what a job does with its own share of the network.
"""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol

from pydantic import TypeAdapter, ValidationError

from evaluation.pytorch.fork_server import launch, torch_version
from evaluation.pytorch.lab import Here, TorchLab
from evaluation.sasp.request import ArmResult, SaspRequest, SaspResult, Training, WorkerResult, name_of
from topologies.emulation import emulate
from topologies.errors import LabError
from topologies.fork_server import ForkedProcess, ForkServer
from topologies.lab.agents import end, last_line
from topologies.lab.meters import Meter
from topologies.networks import Testbed
from topologies.trainer.start import Meeting

MEMORY = "4G"
RESULT = "sasp.json"
PORT = 29600
_LAUNCH_SECONDS = 300.0
_READY_SECONDS = 300.0
_START_SECONDS = 1.0
_END_SECONDS = 20.0


class Hosts(Protocol):
    """What a job needs of a network: of ``topologies.emulation.Emulation``."""

    folder: Path

    def address(self, host: str) -> str:
        """A host's address."""

    def pid(self, host: str) -> int:
        """A process in the host's namespaces."""


def _train_here(request: SaspRequest, here: Here, results: Path) -> SaspResult:
    topo = Testbed(servers=request.workers + 1, link_bps=request.link_bps, datapath=here.kind)
    with emulate(topo, datapath=here.kind) as emulation:
        # No controller: the switch forwards by itself, its ports and the hosts' limited to the links' rate.
        for bridge in emulation.bridges:
            emulation.run(None, ["ovs-ofctl", "-O", "OpenFlow13", "add-flow", bridge, "actions=NORMAL"])
        launcher = launch(emulation, "evaluation.sasp.fork_server")
        arms, version = train_all(request, emulation, launcher, results)
    return SaspResult(here.datapath, request.link_bps, request.seed, version, arms)


LAB = TorchLab("evaluation.sasp.lab", MEMORY, RESULT, SaspRequest, SaspResult, _train_here)


def train_all(
    request: SaspRequest, hosts: Hosts, launcher: subprocess.Popen[bytes], results: Path
) -> tuple[tuple[ArmResult, ...], str]:
    """Each training from start to end by processes that ``launcher`` starts, and PyTorch's version. Raises LabError."""
    version = torch_version()
    fork_server = ForkServer(launcher, _LAUNCH_SECONDS)
    try:
        return tuple(_train(request, training, hosts, fork_server, results) for training in request.trainings), version
    finally:
        fork_server.close()


def _train(request: SaspRequest, training: Training, hosts: Hosts, fork_server: ForkServer, results: Path) -> ArmResult:
    folder = hosts.folder / training.name
    folder.mkdir()
    meeting = Meeting(folder / "meeting")
    meeting.folder.mkdir()
    with _kept(folder, results / training.name), _ended() as members:
        server = f"{hosts.address('h1')}:{PORT}"
        common = ["--server", server, "--workers", str(request.workers), "--scheme", training.scheme]
        members["server"] = _start(fork_server, hosts.pid("h1"), common, folder / "server.log")
        for rank in range(request.workers):
            arguments = [
                *common, "--rank", str(rank), "--family", training.family, "--seed", str(request.seed),
                "--iterations", str(training.iterations), "--batch", str(training.batch),
                "--learning-rate", str(training.learning_rate), "--chunk-bytes", str(request.chunk_bytes),
                "--meet", str(meeting.folder), "--out", str(folder / name_of(rank)),
            ]  # fmt: skip
            name = f"worker{rank}"
            members[name] = _start(fork_server, hosts.pid(f"h{rank + 2}"), arguments, folder / f"{name}.log")
        names = frozenset(name for name in members if name != "server")
        _until(lambda: not meeting.missing(names), members, folder, training, _READY_SECONDS)
        begin = time.time() + _START_SECONDS
        meeting.begin(begin)
        time.sleep(max(0.0, begin - time.time()))
        meter = Meter({}, request.link_bps)
        training_ends = [folder / name_of(rank) for rank in range(request.workers)]
        _until(
            lambda: any(written.exists() for written in training_ends), members, folder, training, request.limit_seconds
        )
        busy = meter.use().busy_share
        _until(
            lambda: all(member.poll() == 0 for member in members.values()), members, folder, training, _READY_SECONDS
        )
        workers = [_result(folder / name_of(rank)) for rank in range(request.workers)]
    return ArmResult(training, tuple(workers), 1.0 - busy)


def _start(fork_server: ForkServer, pid: int, arguments: list[str], log: Path) -> ForkedProcess:
    return fork_server.start("job", arguments, namespaces_of=pid, log=log, folder=log.parent)


def _until(
    condition: Callable[[], bool], members: dict[str, ForkedProcess], folder: Path, training: Training, seconds: float
) -> None:
    """Wait for it. Raises LabError where a process fails, or it takes too long."""
    deadline = time.monotonic() + seconds
    while not condition():
        for name, member in members.items():
            if member.poll() not in {None, 0}:
                said = last_line(folder / f"{name}.log")
                raise LabError(f"{training.name}: {name} ended with status {member.returncode}: {said}")
        if time.monotonic() > deadline:
            raise LabError(f"{training.name}: it was not done within {seconds:g} s")
        time.sleep(0.1)


def _result(path: Path) -> WorkerResult:
    try:
        return TypeAdapter(WorkerResult).validate_json(path.read_bytes())
    except (OSError, ValidationError) as error:
        raise LabError(f"{path}: no worker's result: {error}") from error


@contextlib.contextmanager
def _ended() -> Iterator[dict[str, ForkedProcess]]:
    """Processes by name, none of which is left."""
    members: dict[str, ForkedProcess] = {}
    try:
        yield members
    finally:
        end(members.values(), _END_SECONDS)


@contextlib.contextmanager
def _kept(folder: Path, results: Path) -> Iterator[None]:
    """What was written in memory is on disk at the end, however that comes."""
    try:
        yield
    finally:
        shutil.rmtree(results, ignore_errors=True)
        shutil.copytree(folder, results)
        shutil.rmtree(folder)


if __name__ == "__main__":
    sys.exit(LAB.main())
