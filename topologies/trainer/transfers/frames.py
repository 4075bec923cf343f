"""Messages between the tasks of a job over blocking TCP sockets: a fixed header, then a payload of the given length.

The payload counts as the job's demand; a header adds 36 bytes to each message.
"""

from __future__ import annotations

import contextlib
import select
import socket
import struct
import zlib
from collections.abc import Sequence
from enum import IntEnum
from typing import NamedTuple

from topologies.trainer.transfers.memory import BLOCK_BYTES, nowhere, touched

_HEADER = struct.Struct("!2sBxIIHHHxxQQ")
_MAGIC = b"Ty"
_ZEROS = touched(BLOCK_BYTES)
_SO_SNDBUFFORCE = 32
"""Linux's SO_SNDBUFFORCE is like SO_SNDBUF, but exceeds the administrator's limit. It needs root."""
_SLACK_BYTES = 64 * 1024
_UNSENT_BYTES = 64 * 1024
HEADER_BYTES = _HEADER.size


class PeerLostError(Exception):
    """The other end is gone, or has sent an unexpected message. The error message is for people."""


class Kind(IntEnum):
    """The kinds of messages."""

    HELLO = 1
    PUSH = 2
    PULL = 3
    GOT = 4
    CHUNK = 5
    OPEN = 6
    ASK = 7
    WELCOME = 8


_KINDS = frozenset(int(kind) for kind in Kind)


class Frame(NamedTuple):
    """A header. Only rings use ``step`` and ``value`` (the partial sum of the chunk)."""

    kind: Kind
    sender: int
    iteration: int = 0
    length: int = 0
    step: int = 0
    chunk: int = 0
    value: int = 0

    @property
    def is_got(self) -> bool:
        """Whether it reports that a message has arrived, which has no payload."""
        return self.kind is Kind.GOT and not self.length


def check_payload(peer: str, frame: Frame, kind: Kind, sizes: Sequence[int]) -> None:
    """Raise PeerLostError where a frame does not begin a message of ``kind`` with a payload of its chunk's size."""
    if frame.kind is not kind or frame.chunk >= len(sizes) or frame.length != sizes[frame.chunk]:
        raise PeerLostError(f"{peer} sent {frame} where {kind.name} was due")


def job_key(job: str) -> int:
    """Return the key that distinguishes a job's messages from those of other jobs."""
    return zlib.crc32(job.encode())


class Channel:
    """One connection of a job. It counts payload bytes in both directions; ``peer`` names the other end in errors."""

    def __init__(self, sock: socket.socket, key: int, peer: str) -> None:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._sock = sock
        self._key = key
        self._head = memoryview(bytearray(HEADER_BYTES))
        self._poll = select.poll()
        self._poll.register(sock, select.POLLIN)
        self.peer = peer
        self.sent = 0
        self.received = 0

    def send(self, frame: Frame, body: memoryview | None = None) -> None:
        """Send a header and ``frame.length`` bytes, which are those of ``body``, or zeros. Raises PeerLostError."""
        head = _HEADER.pack(
            _MAGIC, frame.kind, self._key, frame.iteration, frame.sender, frame.step, frame.chunk,
            frame.value, frame.length,
        )  # fmt: skip
        payload = (
            _ZEROS[: min(BLOCK_BYTES, frame.length - start)] if body is None else body[start : start + BLOCK_BYTES]
            for start in range(0, frame.length, BLOCK_BYTES)
        )
        # One call sends the header with the first bytes of the payload, so the header is no packet of its own.
        self._write([memoryview(head), *([first] if (first := next(payload, None)) is not None else [])])
        for block in payload:
            self._write([block])
        self.sent += frame.length

    def gathers(self, length: int) -> None:
        """Let the kernel hold messages of ``length`` bytes that arrive before they are read."""
        with contextlib.suppress(OSError):
            self._sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, 2 * (length + HEADER_BYTES))

    def awaits(self, length: int) -> int:
        """Let the connection be readable once a message of ``length`` bytes has come. Returns its file descriptor."""
        with contextlib.suppress(OSError):
            self._sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, length + HEADER_BYTES)
        return self._sock.fileno()

    def holds(self, length: int) -> bool:
        """Let the kernel hold ``length`` bytes to send. Returns whether such a message can be sent without waiting."""
        wanted = 2 * (length + HEADER_BYTES) + _SLACK_BYTES
        for option in (_SO_SNDBUFFORCE, socket.SO_SNDBUF):
            with contextlib.suppress(OSError):
                self._sock.setsockopt(socket.SOL_SOCKET, option, wanted // 2)
                break
        return self._sock.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF) >= wanted

    def receive(self) -> Frame:
        """Receive the header of a message without a payload. Raises PeerLostError."""
        self._read(self._head)
        return self._header()

    def expect(self, wanted: Frame, target: memoryview | None = None) -> Frame:
        """Receive a message, which must equal ``wanted`` except for its value. The payload goes to ``target``, if any.

        One call reads header and payload. So a message that is not ``wanted`` may be noticed only when the other end
        closes. Raises PeerLostError.
        """
        target = nowhere()[: min(wanted.length, BLOCK_BYTES)] if target is None else target
        first = target[:BLOCK_BYTES]
        self._read(self._head, first)
        frame = self._header()
        if frame._replace(value=0) != wanted._replace(value=0):
            raise PeerLostError(f"{self.peer} sent {frame} where {wanted} was due")
        for start in range(len(first), wanted.length, BLOCK_BYTES):
            at = start if len(target) == wanted.length else 0
            self._read(target[at : at + min(BLOCK_BYTES, wanted.length - start)])
        self.received += wanted.length
        return frame

    def receive_payload(self, kind: Kind, sizes: Sequence[int]) -> Frame:
        """Receive a GOT, or a message of ``kind`` with a payload of its chunk's size, which is discarded.

        Raises PeerLostError.
        """
        frame = self.receive()
        if not frame.is_got:
            check_payload(self.peer, frame, kind, sizes)
            self.discard(frame.length)
        return frame

    def discard(self, length: int) -> None:
        """Receive ``length`` bytes of payload that nobody reads. Raises PeerLostError."""
        for start in range(0, length, BLOCK_BYTES):
            self._read(nowhere()[: min(BLOCK_BYTES, length - start)])
        self.received += length

    def decides_late(self) -> None:
        """Keep little unsent data in the kernel, so that more urgent data need not wait behind it."""
        with contextlib.suppress(OSError):
            self._sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, _UNSENT_BYTES)

    def _header(self) -> Frame:
        magic, kind, key, iteration, sender, step, chunk, value, length = _HEADER.unpack(self._head)
        if magic != _MAGIC or key != self._key or kind not in _KINDS:
            raise PeerLostError(f"{self.peer} sent a message that does not belong to this job")
        return Frame(Kind(kind), sender, iteration, length, step, chunk, value)

    def _write(self, parts: list[memoryview]) -> None:
        try:
            while parts:
                sent = self._sock.sendmsg(parts)
                while parts and sent >= len(parts[0]):
                    sent -= len(parts.pop(0))
                if sent:
                    parts[0] = parts[0][sent:]
        except OSError as error:
            raise PeerLostError(f"cannot send to {self.peer}: {error}") from error

    def _read(self, *targets: memoryview) -> None:
        wanted = [target for target in targets if len(target)]
        try:
            while wanted:
                # One call reads all data that has arrived. For more data this sleeps until all of it has arrived.
                count = self._receive_into(wanted)
                if count == 0:
                    raise PeerLostError(f"{self.peer} closed the connection")
                while wanted and count >= len(wanted[0]):
                    count -= len(wanted.pop(0))
                if count:
                    wanted[0] = wanted[0][count:]
        except OSError as error:
            raise PeerLostError(f"cannot receive from {self.peer}: {error}") from error

    def _receive_into(self, wanted: list[memoryview]) -> int:
        """Receive bytes, and sleep while there are none. Returns their number, 0 at the end of the stream."""
        while True:
            with contextlib.suppress(BlockingIOError):
                return self._sock.recvmsg_into(wanted, 0, socket.MSG_DONTWAIT)[0]
            # The kernel gathers as much of the missing data as it can hold, so that not every packet wakes this thread.
            self._sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, sum(map(len, wanted)))
            timeout = self._sock.gettimeout()
            if not self._poll.poll(None if timeout is None else timeout * 1000):
                raise TimeoutError("timed out")
