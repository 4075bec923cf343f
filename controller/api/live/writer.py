"""Writes a body to a client by itself, in small parts: who does not take it costs little, and is disconnected."""

from __future__ import annotations

import logging
import socket
import struct
import time
from collections.abc import Callable, Iterable
from typing import Any

import eventlet

from controller.steps import Pause

LOG = logging.getLogger("trainyard.api")
WRITE_SECONDS = 10.0
"""Limits the time in which a client takes a part."""
BUFFER_BYTES = 2**16
"""Limits what the system keeps for a client that does not read."""
PART_BYTES = 32_768
"""Write parts of about this size."""
_LINGER = struct.pack("ii", 1, 0)


class Writer:
    """Writes to a client. ``written``: when it was written to last, by ``time.monotonic``."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self.written = time.monotonic()
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, BUFFER_BYTES)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def write(self, data: bytes) -> None:
        """Write all of ``data``. Raises Timeout where the client does not take it, and OSError where it is gone."""
        with eventlet.Timeout(WRITE_SECONDS):
            self._connection.sendall(memoryview(data))  # eventlet slices what is left, and slices of bytes are copies
        self.written = time.monotonic()

    def abort(self) -> None:
        """Let the end of the connection throw away what the client has not read."""
        try:
            self._connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER)
        except OSError as error:
            LOG.debug("a stream's connection was gone already: %s", error)


def in_parts(pieces: Iterable[bytes]) -> Callable[[Any], None]:
    """Returns what writes the pieces of a body to a client's connection, each made no earlier than it is needed.

    So a client that does not read holds one part of the body in memory.
    """

    def write(connection: Any) -> None:
        writer, pause = Writer(connection), Pause()
        waiting = bytearray()
        try:
            for piece in pieces:
                waiting += piece
                if len(waiting) >= PART_BYTES:
                    writer.write(bytes(waiting))
                    waiting.clear()
                pause()
            writer.write(bytes(waiting))
        except (OSError, eventlet.Timeout) as error:
            LOG.debug("a client has not taken the whole answer: %s", error)
            writer.abort()

    return write
