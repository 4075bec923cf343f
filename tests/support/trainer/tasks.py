"""A job's tasks over real sockets on loopback, each in a thread of this process."""

from __future__ import annotations

import itertools
import os
import socket
from collections import defaultdict
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from ipaddress import IPv4Address

from topologies.experiments.experiment import JobPlan
from topologies.trainer.barriers.record import NOTHING, ServerRecord, WorkerRecord
from topologies.trainer.transfers import parameter_server, ring
from topologies.trainer.transfers.frames import Channel, PeerLostError
from topologies.trainer.transfers.task import HELLO_SECONDS, Addresses, Sockets, TaskContext

_networks = itertools.count(1)


def addresses(rails: int = 1) -> Addresses:
    """Loopback networks of its own for each test, so that none meets another's sockets."""
    return Addresses(tuple(IPv4Address(f"127.{1 + os.getpid() % 250}.{next(_networks)}.0") for _rail in range(rails)))


class OneAddress(Addresses):
    """All hosts have the loopback address of IPv6, where only a parameter server listens."""

    def of(self, _host: str, _rail: int = 0) -> str:
        return "::1"


def plan(architecture: str, hosts: int, model_bytes: int, iterations: int = 3, compute: float = 0.0) -> JobPlan:
    return JobPlan(
        id="a", arrival=0.0, architecture=architecture, hosts=tuple(f"h{i}" for i in range(1, hosts + 1)), port=5001,
        model="m", model_bytes=model_bytes, compute_seconds=compute, iterations=iterations, curve="c",
    )  # fmt: skip


class Job:
    """The contexts of all tasks of a job, the iterations that each reported as finished, and the moments of each."""

    def __init__(
        self,
        job: JobPlan,
        *,
        hello_seconds: float = HELLO_SECONDS,
        in_one_thread: bool = True,
        rails: int = 1,
        recorded: bool = False,
    ) -> None:
        self.job = job
        self.hello_seconds = hello_seconds
        self.in_one_thread = in_one_thread
        self.finished = defaultdict(list)
        self.sockets = [Sockets() for _ in job.hosts]
        self.addresses = addresses(rails)
        workers = len(job.hosts) - 1
        self.records = [ServerRecord(workers), *(WorkerRecord() for _ in range(workers))] if recorded else None

    def context(self, rank: int) -> TaskContext:
        return TaskContext(
            self.job, rank, self.job.iterations, self.addresses, self.sockets[rank], self.finished[rank].append, 10.0,
            hello_seconds=self.hello_seconds, kernel_buffers=self.in_one_thread,
            record=NOTHING if self.records is None else self.records[rank],
        )  # fmt: skip

    def run(self) -> list[list[Channel]]:
        def task(rank: int) -> list[Channel]:
            if self.job.architecture == "ring":
                return ring.peer(self.context(rank))
            return parameter_server.work(self.context(rank)) if rank else parameter_server.serve(self.context(rank))

        with self.pool() as pool:
            return [future.result(20) for future in [pool.submit(task, rank) for rank in range(len(self.job.hosts))]]

    @contextmanager
    def pool(self):
        try:
            with ThreadPoolExecutor(len(self.job.hosts)) as pool:
                try:
                    yield pool
                finally:
                    # Whoever still blocks when the test is over (or has failed) is let go.
                    for sockets in self.sockets:
                        sockets.shut()
        finally:
            for sockets in self.sockets:
                sockets.close()

    def worker(self, rank: int) -> Channel:
        """A worker that the test plays itself."""
        return self.context(rank).call(0)


def readable(channel: Channel, seconds: float) -> bool:
    """Whether anything arrives on a channel within ``seconds``; takes nothing from it."""
    sock = channel._sock
    sock.settimeout(seconds)
    try:
        return bool(sock.recv(1, socket.MSG_PEEK))
    except TimeoutError:
        return False
    finally:
        sock.settimeout(None)


def error_of(future: Future) -> str:
    error = future.exception(10)
    assert isinstance(error, PeerLostError)
    return str(error)
