"""Real PyTorch jobs on the emulated network, one after the other, a host for each worker and parameter server.

Where the kernel has no Open vSwitch datapath the lab runs itself again inside a User-Mode Linux box. Every host's
traffic is in one class: what is measured is what a job does with its own share of the network. First a short job on
links that do not limit it says how long computing takes here, with all workers at work; from that follows the rate of
the links with which communication takes as long as it should.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from statistics import median
from typing import NamedTuple, Protocol

from pydantic import TypeAdapter, ValidationError

from evaluation.pytorch.fork_server import launch, torch_version
from evaluation.pytorch.lab import Here, TorchLab
from evaluation.sasp.testbed.request import (
    LOOKS,
    MEETING,
    POINTS,
    ArmResult,
    Point,
    SaspRequest,
    SaspResult,
    Training,
    WorkerResult,
    link_bps,
    name_of,
)
from topologies.emulation import Plug, emulate
from topologies.errors import LabError
from topologies.fork_server import ForkedProcess, ForkServer
from topologies.lab.agents import end, last_line
from topologies.lab.use.meters import Meter
from topologies.networks import Testbed
from topologies.trainer.start import Meeting

MEMORY = "4G"
RESULT = "sasp.json"
PORT = 29600
UNLIMITED_BPS = 1e9
"""More than the testbed's processors can carry."""

CALIBRATING = Training("calibrate", "bsp", 40)
"""Nothing is sent while it computes."""

_LAUNCH_SECONDS = 300.0
_READY_SECONDS = 300.0
_START_SECONDS = 1.0
_END_SECONDS = 20.0
_WATCH = "watch"


class Hosts(Protocol):
    """What a job needs of a network: of ``topologies.emulation.Emulation``."""

    folder: Path

    def plugs(self, *hosts: str) -> tuple[Plug, ...]:
        """The interfaces of hosts."""

    def pid(self, host: str) -> int:
        """A process in the host's namespaces."""


class Arms(NamedTuple):
    """What was trained on one network, and PyTorch's version."""

    arms: tuple[ArmResult, ...]
    torch: str


def _train_here(request: SaspRequest, here: Here, results: Path) -> SaspResult:
    calibrated = _on_links(UNLIMITED_BPS, calibrating(request), here, results).arms[0]
    seconds, model_bytes = pass_seconds(calibrated), calibrated.workers[0].model_bytes
    rate = link_bps(request.transport, request.workers, model_bytes, request.ratio * seconds)
    arms, version = _on_links(rate, request, here, results)
    return SaspResult(here.datapath, version, seconds, model_bytes, rate, arms)


def calibrating(request: SaspRequest) -> SaspRequest:
    """Return the request of the job that measures how long computing takes."""
    return SaspRequest(
        request.task, request.transport, request.ratio, request.seed, request.workers, request.accelerator_seconds,
        (CALIBRATING,), request.limit_seconds, request.chunk_bytes,
    )  # fmt: skip


def pass_seconds(calibrated: ArmResult) -> float:
    """Return the median of workers' forward and backward, in seconds."""
    return median(worker.pass_seconds for worker in calibrated.workers)


def _on_links(rate: float, request: SaspRequest, here: Here, results: Path) -> Arms:
    servers = request.workers + (request.transport == "server")
    with emulate(Testbed(servers=servers, link_bps=rate, datapath=here.kind), datapath=here.kind) as emulation:
        # No controller: the switch forwards by itself, its ports and the hosts' limited to the links' rate.
        for bridge in emulation.bridges:
            emulation.run(None, ["ovs-ofctl", "-O", "OpenFlow13", "add-flow", bridge, "actions=NORMAL"])
        launcher = launch(emulation, "evaluation.sasp.testbed.fork_server")
        return train_all(request, emulation, launcher, results)


LAB = TorchLab("evaluation.sasp.testbed.lab", MEMORY, RESULT, SaspRequest, SaspResult, _train_here)


def train_all(request: SaspRequest, hosts: Hosts, launcher: subprocess.Popen[bytes], results: Path) -> Arms:
    """Each training from start to end by processes that ``launcher`` starts. Raises LabError."""
    version = torch_version()
    fork_server = ForkServer(launcher, _LAUNCH_SECONDS)
    try:
        jobs = [_Job(request, number, hosts, fork_server) for number in range(len(request.trainings))]
        return Arms(tuple(job.train(results) for job in jobs), version)
    finally:
        fork_server.close()


class _Job:
    """One training of a request, by its number. It has a port for itself: the last one's may not be free yet."""

    def __init__(self, request: SaspRequest, number: int, hosts: Hosts, fork_server: ForkServer) -> None:
        self._request = request
        self._training = request.trainings[number]
        self._hosts = hosts
        self._fork_server = fork_server
        self._at = f"{hosts.plugs('h1')[0].addresses[0]}:{PORT + number}"
        self._folder = hosts.folder / self._training.name
        self._members: dict[str, ForkedProcess] = {}

    def train(self, results: Path) -> ArmResult:
        """Let it begin once all workers are ready, and end once it has its target, or is through. Raises LabError."""
        for folder in (self._folder, self._folder / MEETING, self._folder / LOOKS):
            folder.mkdir()
        with _kept(self._folder, results / self._training.name):
            try:
                self._start_all()
                self._begin()
                busy = self._watched() if self._training.target is not None else self._ended()
            finally:
                end(self._members.values(), _END_SECONDS)
            workers = tuple(self._result(rank) for rank in range(self._request.workers))
            return ArmResult(self._training, workers, self._points(), 1.0 - busy)

    def _start_all(self) -> None:
        first = 1
        if self._request.transport == "server":
            self._start("server", "h1", ["server"])
            first = 2
        for rank in range(self._request.workers):
            host = f"h{first + rank}"
            interface = self._hosts.plugs(host)[0].interface
            self._start(f"worker{rank}", host, ["worker", "--rank", str(rank), "--interface", interface])
        if self._training.target is not None:
            self._start(_WATCH, "h1", ["watch"])

    def _start(self, name: str, host: str, part: list[str]) -> None:
        request = self._request
        arguments = [
            *part, "--task", request.task, "--transport", request.transport,
            "--training", json.dumps(asdict(self._training)),
            "--at", self._at, "--workers", str(request.workers),
            "--seed", str(request.seed), "--accelerator-seconds", str(request.accelerator_seconds),
            "--chunk-bytes", str(request.chunk_bytes), "--folder", str(self._folder),
            *(["--record"] if request.record else []),
        ]  # fmt: skip
        log = self._folder / f"{name}.log"
        self._members[name] = self._fork_server.start(
            "job", arguments, namespaces_of=self._hosts.pid(host), log=log, folder=self._folder
        )

    def _begin(self) -> None:
        """Announce the start once all workers are ready."""
        meeting = Meeting(self._folder / MEETING)
        workers = frozenset(f"worker{rank}" for rank in range(self._request.workers))
        if not self._until(lambda: not meeting.missing(workers), _READY_SECONDS):
            raise LabError(f"{self._training.name}: its workers were not ready within {_READY_SECONDS:g} s")
        begin = time.time() + _START_SECONDS
        meeting.begin(begin)
        time.sleep(max(0.0, begin - time.time()))

    def _ended(self) -> float:
        """Wait until all is trained, and all have ended; return the busy share of the processors until the former."""
        meter, members = Meter((), UNLIMITED_BPS), self._members.values()
        done = self._until(lambda: any(one.poll() == 0 for one in members), self._request.limit_seconds)
        busy = meter.use().busy_share
        if not done or not self._until(lambda: all(one.poll() == 0 for one in members), _READY_SECONDS):
            raise LabError(f"{self._training.name}: it was not done within {self._request.limit_seconds:g} s")
        return busy

    def _watched(self) -> float:
        """Wait for who looks on, or for the end of the time; return the busy share of the processors."""
        meter = Meter((), UNLIMITED_BPS)
        self._until(lambda: self._members[_WATCH].poll() == 0, self._request.limit_seconds)
        return meter.use().busy_share

    def _until(self, condition: Callable[[], bool], seconds: float) -> bool:
        """Wait for it; returns whether it came within ``seconds``. Raises LabError where a process fails."""
        deadline = time.monotonic() + seconds
        while not condition():
            for name, member in self._members.items():
                if member.poll() not in {None, 0}:
                    said = last_line(self._folder / f"{name}.log")
                    raise LabError(f"{self._training.name}: {name} ended with status {member.returncode}: {said}")
            if time.monotonic() > deadline:
                return False
            time.sleep(0.1)
        return True

    def _result(self, rank: int) -> WorkerResult:
        path = self._folder / name_of(rank)
        try:
            return TypeAdapter(WorkerResult).validate_json(path.read_bytes())
        except (OSError, ValidationError) as error:
            raise LabError(f"{path}: no worker's result: {error}") from error

    def _points(self) -> tuple[Point, ...]:
        path = self._folder / POINTS
        return TypeAdapter(tuple[Point, ...]).validate_json(path.read_bytes()) if path.exists() else ()


@contextlib.contextmanager
def _kept(folder: Path, results: Path) -> Iterator[None]:
    """What was written in memory is on disk at the end, however that comes, but for parameters."""
    try:
        yield
    finally:
        shutil.rmtree(results, ignore_errors=True)
        shutil.copytree(folder, results, ignore=shutil.ignore_patterns(LOOKS))
        shutil.rmtree(folder)


if __name__ == "__main__":
    sys.exit(LAB.main())
