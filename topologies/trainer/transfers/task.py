"""The context of a job's task on this host: its rank, the addresses of its peers, and its sockets."""

from __future__ import annotations

import contextlib
import select
import socket
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from topologies.experiments.addressing import Subnet
from topologies.experiments.experiment import JobPlan
from topologies.trainer.barriers.record import NOTHING, Record
from topologies.trainer.processor import Processor
from topologies.trainer.transfers.frames import HEADER_BYTES, Channel, Frame, Kind, PeerLostError, job_key
from topologies.trainer.transfers.rails import AnyChannel, joined

RETRY_SECONDS = 0.05
HALT_SECONDS = 0.5
DIAL_SECONDS = 30.0
"""A connection may take this many seconds, because a job of the last class may wait long.

A peer that does not listen yet refuses at once.
"""
HELLO_SECONDS = 5.0
"""Reading a greeting may take this many seconds from its arrival on. A peer may send it at any time."""


class HaltedError(Exception):
    """The task must stop."""


@dataclass(frozen=True)
class Addresses:
    """The addresses over which a job sends. On each rail host hN has the address N of the rail's subnet."""

    subnets: tuple[Subnet, ...]

    @property
    def rails(self) -> int:
        """The number of rails."""
        return len(self.subnets)

    def of(self, host: str, rail: int = 0) -> str:
        """Returns the address of a host on a rail. Raises ValueError for a name that is not h and a number."""
        number = host.removeprefix("h")
        if number == host or not number.isdecimal():
            raise ValueError(f"a host is called h1, h2, ...; there is no address for {host}")
        return str(self.subnets[rail] + int(number))


class Sockets:
    """The open sockets of one task. ``shut`` wakes every thread that blocks on one of them."""

    def __init__(self) -> None:
        self.closed = threading.Event()
        self._lock = threading.Lock()
        self._open: list[socket.socket] = []

    def add(self, sock: socket.socket) -> socket.socket:
        """Take ownership of ``sock``. Raises HaltedError where the sockets are closed already."""
        with self._lock:
            if not self.closed.is_set():
                self._open.append(sock)
                return sock
        sock.close()
        raise HaltedError

    def shut(self) -> None:
        """Wake all threads that block on a socket. ``close`` frees the sockets after that."""
        with self._lock:
            self.closed.set()
            for sock in self._open:
                with contextlib.suppress(OSError):
                    sock.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Free the sockets. Data that was sent still arrives."""
        with self._lock:
            self.closed.set()
            while self._open:
                self._open.pop().close()


@dataclass(frozen=True)
class TaskContext:
    """Task ``rank`` of ``job``, which trains for ``iterations``. Rank 0 calls ``finished`` after each iteration.

    ``begin`` waits until the job arrives, and a task prepares all that it can before it calls ``begin``. The tasks of
    a parameter-server job note the moments of their iterations in ``record``. With a ``processor`` the task shares it
    with the other tasks of its host while it computes. A peer has ``hello_seconds`` to complete
    its greeting.
    Without ``kernel_buffers`` the task does not let the kernel hold whole messages, and uses more threads.
    """

    job: JobPlan
    rank: int
    iterations: int
    addresses: Addresses
    sockets: Sockets
    finished: Callable[[int], None]
    connect_seconds: float
    begin: Callable[[], None] = lambda: None
    record: Record = NOTHING
    processor: Processor | None = None
    hello_seconds: float = HELLO_SECONDS
    kernel_buffers: bool = True

    @property
    def host(self) -> str:
        """The host of this task."""
        return self.job.hosts[self.rank]

    def compute(self, since: float) -> None:
        """Wait until the compute time has passed since ``since`` (monotonic), or longer on a shared processor.

        Raises HaltedError.
        """
        if self.processor is None:
            self.rest(since + self.job.compute_seconds)
        elif not self.processor.compute(self.job.compute_seconds, self.sockets.closed):
            raise HaltedError

    def rest(self, until: float) -> None:
        """Wait until ``until`` (monotonic). Raises HaltedError."""
        # This sleeps, and checks the event now and then. A wait for the event needs several times as many system calls.
        while (left := until - time.monotonic()) > 0:
            time.sleep(min(left, HALT_SECONDS))
            if self.sockets.closed.is_set():
                raise HaltedError

    def listen(self) -> list[socket.socket]:
        """Open the port of the job at this host's own address on each rail. Raises OSError."""
        return [self._listen(rail) for rail in range(self.addresses.rails)]

    def _listen(self, rail: int) -> socket.socket:
        sock = self._socket(self.addresses.of(self.host, rail))
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((self.addresses.of(self.host, rail), self.job.port))
        # Linux gives handshakes up early once more than half of the backlog is unfinished (reqsk_timer_handler).
        sock.listen(2 * len(self.job.hosts))
        return sock

    def _socket(self, address: str) -> socket.socket:
        """Returns a socket of the family of an address."""
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        return self.sockets.add(socket.socket(family, socket.SOCK_STREAM))

    def welcome(self, listeners: Sequence[socket.socket], ranks: set[int]) -> dict[int, AnyChannel]:
        """Accept connections until each of ``ranks`` has greeted on each rail, and answer each; others are closed.

        ``listeners`` are in the order of the rails. Raises PeerLostError.
        """
        rails = range(len(listeners))
        wanted = {(rank, rail) for rank in ranks for rail in rails}
        channels: dict[tuple[int, int], Channel] = {}
        silent: dict[socket.socket, tuple[int, Channel]] = {}
        deadline = time.monotonic() + self.connect_seconds
        while missing := wanted - channels.keys():
            ready = select.select([*listeners, *silent], [], [], max(0.0, deadline - time.monotonic()))[0]
            if not ready:
                names = ", ".join(self.job.hosts[rank] for rank in sorted({rank for rank, _rail in missing}))
                raise PeerLostError(f"{names} did not connect within {self.connect_seconds:g} s")
            for sock in ready:
                if sock in listeners:
                    arrived, channel = self._accept(sock)
                    silent[arrived] = listeners.index(sock), channel
                    continue
                rail, channel = silent.pop(sock)
                rank = _rank(channel)
                if rank is None or (rank, rail) not in missing or (rank, rail) in channels or not self._answer(channel):
                    sock.close()
                    continue
                sock.settimeout(None)
                channel.peer = self.job.hosts[rank]
                channels[rank, rail] = channel
        for sock in silent:
            sock.close()
        return {rank: joined([channels[rank, rail] for rail in rails]) for rank in ranks}

    def _accept(self, listener: socket.socket) -> tuple[socket.socket, Channel]:
        try:
            sock, address = listener.accept()
        except OSError as error:
            raise PeerLostError(f"cannot accept connections: {error}") from error
        self.sockets.add(sock)
        # The socket is readable once the whole greeting has arrived, so half a greeting does not delay other peers.
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, HEADER_BYTES)
        sock.settimeout(self.hello_seconds)
        return sock, Channel(sock, job_key(self.job.id), address[0])

    def _answer(self, channel: Channel) -> bool:
        """Answer a greeting. Returns whether the connection is still there."""
        try:
            channel.send(Frame(Kind.WELCOME, self.rank))
        except PeerLostError:
            return False
        return True

    def call(self, rank: int) -> AnyChannel:
        """Connect to a peer on each rail, and try again until it answers. Raises PeerLostError, HaltedError."""
        deadline = time.monotonic() + self.connect_seconds
        return joined([self._call(rank, rail, deadline) for rail in range(self.addresses.rails)])

    def _call(self, rank: int, rail: int, deadline: float) -> Channel:
        peer = self.job.hosts[rank]
        own, remote = self.addresses.of(self.host, rail), self.addresses.of(peer, rail)
        while True:
            sock = self._socket(own)
            try:
                sock.bind((own, 0))
                sock.settimeout(DIAL_SECONDS)
                sock.connect((remote, self.job.port))
                channel = Channel(sock, job_key(self.job.id), peer)
                # On a busy network the peer may have given up a connection that this end has. Then no answer comes.
                channel.send(Frame(Kind.HELLO, self.rank))
                sock.settimeout(max(RETRY_SECONDS, deadline - time.monotonic()))
                channel.expect(Frame(Kind.WELCOME, rank))
                sock.settimeout(None)
            except (OSError, PeerLostError) as error:
                sock.close()
                if time.monotonic() > deadline:
                    raise PeerLostError(f"{peer} does not answer on port {self.job.port}: {error}") from error
                if self.sockets.closed.wait(RETRY_SECONDS):
                    raise HaltedError from error
                continue
            return channel


def _rank(channel: Channel) -> int | None:
    """Return the rank of the peer that greets; None where the greeting is wrong."""
    try:
        hello = channel.receive()
    except PeerLostError:
        return None
    return hello.sender if hello.kind is Kind.HELLO and not hello.length else None
