"""The context of a job's task on this host: its rank, the addresses of its peers, and its sockets."""

from __future__ import annotations

import contextlib
import select
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import IPv4Address

from topologies.experiments.experiment import JobPlan
from topologies.trainer.transfers.frames import HEADER_BYTES, Channel, Frame, Kind, PeerLostError, job_key

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
    """Host hN has the address ``base`` + N."""

    base: IPv4Address

    def of(self, host: str) -> str:
        """Returns the IPv4 address of a host. Raises ValueError for a name that is not h and a number."""
        number = host.removeprefix("h")
        if number == host or not number.isdecimal():
            raise ValueError(f"a host is called h1, h2, ...; there is no address for {host}")
        return str(self.base + int(number))


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

    ``begin`` waits until the job arrives, and a task prepares all that it can before it calls ``begin``. A worker that
    has computed, and so comes to the iteration's barrier, calls ``entered``. A peer has ``hello_seconds`` to complete
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
    entered: Callable[[], None] = lambda: None
    hello_seconds: float = HELLO_SECONDS
    kernel_buffers: bool = True

    @property
    def host(self) -> str:
        """The host of this task."""
        return self.job.hosts[self.rank]

    def compute(self, since: float) -> None:
        """Wait until the compute time has passed since ``since`` (monotonic). Raises HaltedError."""
        self.rest(since + self.job.compute_seconds)

    def rest(self, until: float) -> None:
        """Wait until ``until`` (monotonic). Raises HaltedError."""
        # This sleeps, and checks the event now and then. A wait for the event needs several times as many system calls.
        while (left := until - time.monotonic()) > 0:
            time.sleep(min(left, HALT_SECONDS))
            if self.sockets.closed.is_set():
                raise HaltedError

    def listen(self) -> socket.socket:
        """Open the port of the job at this host's own address. Raises OSError."""
        sock = self.sockets.add(socket.socket(socket.AF_INET, socket.SOCK_STREAM))
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((self.addresses.of(self.host), self.job.port))
        sock.listen(len(self.job.hosts))
        return sock

    def welcome(self, listener: socket.socket, ranks: set[int]) -> dict[int, Channel]:
        """Accept connections until each of ``ranks`` has greeted; others are closed. Raises PeerLostError."""
        channels: dict[int, Channel] = {}
        silent: dict[socket.socket, Channel] = {}
        deadline = time.monotonic() + self.connect_seconds
        while missing := ranks - channels.keys():
            ready = select.select([listener, *silent], [], [], max(0.0, deadline - time.monotonic()))[0]
            if not ready:
                names = ", ".join(self.job.hosts[rank] for rank in sorted(missing))
                raise PeerLostError(f"{names} did not connect within {self.connect_seconds:g} s")
            for sock in ready:
                if sock is listener:
                    arrived, channel = self._accept(listener)
                    silent[arrived] = channel
                    continue
                channel = silent.pop(sock)
                rank = _rank(channel)
                if rank is None or rank not in missing or rank in channels:
                    sock.close()
                    continue
                sock.settimeout(None)
                channel.peer = self.job.hosts[rank]
                channels[rank] = channel
        for sock in silent:
            sock.close()
        return channels

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

    def call(self, rank: int) -> Channel:
        """Connect to a peer, and try again until it listens. Raises PeerLostError, HaltedError."""
        peer = self.job.hosts[rank]
        deadline = time.monotonic() + self.connect_seconds
        while True:
            sock = self.sockets.add(socket.socket(socket.AF_INET, socket.SOCK_STREAM))
            try:
                sock.bind((self.addresses.of(self.host), 0))
                sock.settimeout(DIAL_SECONDS)
                sock.connect((self.addresses.of(peer), self.job.port))
            except OSError as error:
                sock.close()
                if time.monotonic() > deadline:
                    raise PeerLostError(f"{peer} does not answer on port {self.job.port}: {error}") from error
                if self.sockets.closed.wait(RETRY_SECONDS):
                    raise HaltedError from error
                continue
            sock.settimeout(None)
            channel = Channel(sock, job_key(self.job.id), peer)
            channel.send(Frame(Kind.HELLO, self.rank))
            return channel


def _rank(channel: Channel) -> int | None:
    """Return the rank of the peer that greets; None where the greeting is wrong."""
    try:
        hello = channel.receive()
    except PeerLostError:
        return None
    return hello.sender if hello.kind is Kind.HELLO and not hello.length else None
