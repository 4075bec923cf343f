"""Real TCP connections of this process on the loopback, for tests of what the kernel tells of them."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator


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
