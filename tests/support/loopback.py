"""Real TCP connections of this process on the loopback, for tests of what the kernel tells of them."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator
from ipaddress import IPv4Address
from pathlib import Path


def pair(server: socket.socket, source: str | None = None) -> tuple[socket.socket, socket.socket]:
    """A connection to a server of ours: the client's end, and the server's."""
    address = server.getsockname()
    to = ("127.0.0.1", address[1]) if server.family == socket.AF_INET6 else address
    client = socket.create_connection(to, 5, source_address=(source, 0) if source else None)
    return client, server.accept()[0]


@contextlib.contextmanager
def connections(count: int, *, address: str = "127.0.0.1") -> Iterator[tuple[socket.socket, list[socket.socket]]]:
    """A server, and both ends of so many connections to it."""
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(socket.create_server((address, 0)))
        ends = []
        for _ in range(count):
            for end in pair(server):
                ends.append(stack.enter_context(end))
        yield server, ends


def has_been_read(connection: socket.socket) -> bool:
    """Returns whether the other end of a connection over IPv4 has read all that was sent."""
    other, own = (_as_listed(*end) for end in (connection.getpeername(), connection.getsockname()))
    ends = (line.split() for line in Path("/proc/net/tcp").read_text().splitlines())
    return any(fields[1:3] == [other, own] and fields[4].endswith(":00000000") for fields in ends)


def _as_listed(address: str, port: int) -> str:
    """Returns an end of a connection as the kernel lists it on a little-endian machine."""
    return f"{int.from_bytes(IPv4Address(address).packed, 'little'):08X}:{port:04X}"


def exchange(sender: socket.socket, receiver: socket.socket, count: int) -> None:
    """Send so many bytes, and read them."""
    rest = count
    while rest:
        part = min(rest, 30_000)
        sender.sendall(bytes(part))
        got = 0
        while got < part:
            got += len(receiver.recv(65536))
        rest -= part
