"""Messages between the tasks of a job: a fixed header, then as many bytes as it says, over blocking TCP sockets.

The payload counts as the job's demand; a header adds 36 bytes to each message.
"""

from __future__ import annotations

import socket
import struct
import zlib
from enum import IntEnum
from typing import NamedTuple

BLOCK_BYTES = 256 * 1024
"""What one system call moves at most: few calls a second keep thirteen trainers within half a slow core."""

_HEADER = struct.Struct("!2sBxIIHHHxxQQ")
_MAGIC = b"Ty"
_ZEROS = memoryview(bytes(BLOCK_BYTES))
HEADER_BYTES = _HEADER.size


class PeerLostError(Exception):
    """The other end is gone, or speaks of something else; the message is for people."""


class Kind(IntEnum):
    """What a message is."""

    HELLO = 1
    PUSH = 2
    PULL = 3
    GOT = 4
    CHUNK = 5


_KINDS = frozenset(int(kind) for kind in Kind)


class Frame(NamedTuple):
    """A header. ``step``, ``chunk`` and ``value`` (the partial sum of the chunk) are for rings."""

    kind: Kind
    sender: int
    iteration: int = 0
    length: int = 0
    step: int = 0
    chunk: int = 0
    value: int = 0


def job_key(job: str) -> int:
    """Tells the messages of one job from those of another."""
    return zlib.crc32(job.encode())


class Channel:
    """One connection of a job. ``peer`` names the other end for messages. Counts payload bytes both ways."""

    def __init__(self, sock: socket.socket, key: int, peer: str) -> None:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._sock = sock
        self._key = key
        self._scratch = memoryview(bytearray(BLOCK_BYTES))
        self._head = memoryview(bytearray(HEADER_BYTES))
        self.peer = peer
        self.sent = 0
        self.received = 0

    def send(self, frame: Frame, body: memoryview | None = None) -> None:
        """Send a header and ``frame.length`` bytes: those of ``body``, or zeros. Raises PeerLostError."""
        head = _HEADER.pack(
            _MAGIC, frame.kind, self._key, frame.iteration, frame.sender, frame.step, frame.chunk,
            frame.value, frame.length,
        )  # fmt: skip
        try:
            # MSG_MORE: the header leaves with the first bytes of the payload, not in a packet of its own.
            self._sock.sendall(head, socket.MSG_MORE if frame.length else 0)
            for start in range(0, frame.length, BLOCK_BYTES):
                size = min(BLOCK_BYTES, frame.length - start)
                self._sock.sendall(_ZEROS[:size] if body is None else body[start : start + size])
        except OSError as error:
            raise PeerLostError(f"cannot send to {self.peer}: {error}") from error
        self.sent += frame.length

    def receive(self) -> Frame:
        """The next header; its payload is still to be taken, by ``discard`` or ``fill``. Raises PeerLostError."""
        self._read(self._head)
        magic, kind, key, iteration, sender, step, chunk, value, length = _HEADER.unpack(self._head)
        if magic != _MAGIC or key != self._key or kind not in _KINDS:
            raise PeerLostError(f"{self.peer} sent something that is not of this job")
        return Frame(Kind(kind), sender, iteration, length, step, chunk, value)

    def expect(self, wanted: Frame) -> Frame:
        """The next header, which must be ``wanted`` but for its value. Raises PeerLostError."""
        got = self.receive()
        if got._replace(value=0) != wanted._replace(value=0):
            raise PeerLostError(f"{self.peer} sent {got} where {wanted} was due")
        return got

    def discard(self, length: int) -> None:
        """Take ``length`` bytes of payload and forget them. Raises PeerLostError."""
        for start in range(0, length, BLOCK_BYTES):
            self._read(self._scratch[: min(BLOCK_BYTES, length - start)])
        self.received += length

    def fill(self, target: memoryview) -> None:
        """Take as many bytes of payload as ``target`` holds. Raises PeerLostError."""
        for start in range(0, len(target), BLOCK_BYTES):
            self._read(target[start : start + BLOCK_BYTES])
        self.received += len(target)

    def _read(self, target: memoryview) -> None:
        done = 0
        try:
            while done < len(target):
                # MSG_WAITALL: the kernel gathers the whole block before Python wakes.
                got = self._sock.recv_into(target[done:], 0, socket.MSG_WAITALL)
                if got == 0:
                    raise PeerLostError(f"{self.peer} closed the connection")
                done += got
        except OSError as error:
            raise PeerLostError(f"cannot receive from {self.peer}: {error}") from error
