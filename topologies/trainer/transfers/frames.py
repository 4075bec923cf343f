"""Messages between the tasks of a job: a fixed header, then as many bytes as it says, over blocking TCP sockets.

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
"""Linux: as SO_SNDBUF, past the administrator's limit; for root."""
_SLACK_BYTES = 64 * 1024
_UNSENT_BYTES = 64 * 1024
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
        self._head = memoryview(bytearray(HEADER_BYTES))
        self._poll = select.poll()
        self._poll.register(sock, select.POLLIN)
        self.peer = peer
        self.sent = 0
        self.received = 0

    def send(self, frame: Frame, body: memoryview | None = None) -> None:
        """Send a header and ``frame.length`` bytes: those of ``body``, or zeros. Raises PeerLostError."""
        head = _HEADER.pack(
            _MAGIC, frame.kind, self._key, frame.iteration, frame.sender, frame.step, frame.chunk,
            frame.value, frame.length,
        )  # fmt: skip
        payload = (
            _ZEROS[: min(BLOCK_BYTES, frame.length - start)] if body is None else body[start : start + BLOCK_BYTES]
            for start in range(0, frame.length, BLOCK_BYTES)
        )
        # The header leaves with the first bytes of the payload: one call, and no packet of its own.
        self._write([memoryview(head), *([first] if (first := next(payload, None)) is not None else [])])
        for block in payload:
            self._write([block])
        self.sent += frame.length

    def gathers(self, length: int) -> None:
        """Have the kernel make room for messages of ``length`` bytes that come before they are read."""
        with contextlib.suppress(OSError):
            self._sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, 2 * (length + HEADER_BYTES))

    def holds(self, length: int) -> bool:
        """Make room for ``length`` bytes in the kernel; whether a message so long can be sent without waiting."""
        wanted = 2 * (length + HEADER_BYTES) + _SLACK_BYTES
        for option in (_SO_SNDBUFFORCE, socket.SO_SNDBUF):
            with contextlib.suppress(OSError):
                self._sock.setsockopt(socket.SOL_SOCKET, option, wanted // 2)
                break
        return self._sock.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF) >= wanted

    def receive(self) -> Frame:
        """The next header, of a message without a payload. Raises PeerLostError."""
        self._read(self._head)
        return self._header()

    def expect(self, wanted: Frame, target: memoryview | None = None) -> Frame:
        """The next message, which must be ``wanted`` but for its value; its payload goes to ``target`` (None: nowhere).

        Header and payload come in one call, so a message that is not ``wanted`` may be noticed as late as at the other
        end's close. Raises PeerLostError.
        """
        target = nowhere()[: min(wanted.length, BLOCK_BYTES)] if target is None else target
        first = target[:BLOCK_BYTES]
        self._read(self._head, first)
        got = self._header()
        if got._replace(value=0) != wanted._replace(value=0):
            raise PeerLostError(f"{self.peer} sent {got} where {wanted} was due")
        for start in range(len(first), wanted.length, BLOCK_BYTES):
            at = start if len(target) == wanted.length else 0
            self._read(target[at : at + min(BLOCK_BYTES, wanted.length - start)])
        self.received += wanted.length
        return got

    def receive_payload(self, kind: Kind, sizes: Sequence[int]) -> Frame:
        """The next message: a GOT, or one of ``kind`` whose payload, as long as ``sizes`` says of its chunk, goes
        nowhere. Raises PeerLostError.
        """
        got = self.receive()
        if got.kind is Kind.GOT and not got.length:
            return got
        if got.kind is not kind or got.chunk >= len(sizes) or got.length != sizes[got.chunk]:
            raise PeerLostError(f"{self.peer} sent {got} where {kind.name} was due")
        for start in range(0, got.length, BLOCK_BYTES):
            self._read(nowhere()[: min(BLOCK_BYTES, got.length - start)])
        self.received += got.length
        return got

    def decides_late(self) -> None:
        """Keep little unsent in the kernel, so that what is more urgent need not wait behind it."""
        with contextlib.suppress(OSError):
            self._sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, _UNSENT_BYTES)

    def _header(self) -> Frame:
        magic, kind, key, iteration, sender, step, chunk, value, length = _HEADER.unpack(self._head)
        if magic != _MAGIC or key != self._key or kind not in _KINDS:
            raise PeerLostError(f"{self.peer} sent something that is not of this job")
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
                # What is there already costs one call; for the rest this sleeps until all of it has come.
                got = self._receive_into(wanted)
                if got == 0:
                    raise PeerLostError(f"{self.peer} closed the connection")
                while wanted and got >= len(wanted[0]):
                    got -= len(wanted.pop(0))
                if got:
                    wanted[0] = wanted[0][got:]
        except OSError as error:
            raise PeerLostError(f"cannot receive from {self.peer}: {error}") from error

    def _receive_into(self, wanted: list[memoryview]) -> int:
        """Bytes received, 0 at the end of the stream; sleeps if none are there."""
        while True:
            with contextlib.suppress(BlockingIOError):
                return self._sock.recvmsg_into(wanted, 0, socket.MSG_DONTWAIT)[0]
            # Not woken by every packet: the kernel gathers as much as it can hold of what is missing.
            self._sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, sum(map(len, wanted)))
            timeout = self._sock.gettimeout()
            if not self._poll.poll(None if timeout is None else timeout * 1000):
                raise TimeoutError("timed out")
