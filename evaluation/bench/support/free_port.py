"""Ports for servers that are started now, each given once on this machine."""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import socket
import tempfile
from functools import cache
from pathlib import Path

_LOWEST_PORT = 10_000
_given: set[int] = set()


def free_port() -> int:
    """Returns a port that a server can listen on, at any address of this machine.

    It is not one of those that the system gives to connections: between this call and the server's start, and for a
    minute after its end, a connection from any address would keep a server from listening on 0.0.0.0. Where the system
    gives all ports to connections, it is any free one.

    No process that calls this gets a port that another one has got, as long as that one runs: a server may need seconds
    until it listens, and the clients of both would talk to the first one.
    """
    first, last = map(int, Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split())
    ports = [port for port in range(_LOWEST_PORT, 2**16) if not first <= port <= last] or [0]
    while True:
        port = secrets.choice(ports)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("0.0.0.0", port))
            found = int(probe.getsockname()[1])
            if _take(found):
                return found


def _take(port: int) -> bool:
    """Returns whether nobody else has a port. Raises OSError where another process has it."""
    if port in _given:
        return False
    # The lock of one byte lasts until this process ends, whatever ends it.
    fcntl.lockf(_locks(os.getpid()), fcntl.LOCK_EX | fcntl.LOCK_NB, 1, port)
    _given.add(port)
    return True


@cache
def _locks(_process: int) -> int:
    """Returns the descriptor of the file whose bytes stand for the ports. It stays open."""
    path = Path(tempfile.gettempdir()) / f"trainyard-ports-{os.getuid()}"
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
