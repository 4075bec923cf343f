"""Messages between a worker and its parameter server: a fixed header, then as many bytes as it says, over TCP."""

from __future__ import annotations

import contextlib
import json
import socket
import struct
from enum import IntEnum
from typing import Any, NamedTuple

from sasp.core.errors import EndOfStreamError, SaspError

_HEADER = struct.Struct("!2sBBIIdQ")
_MAGIC = b"Sp"
HEADER_BYTES = _HEADER.size
VERSION = 2
MAX_JSON_BYTES = 1024 * 1024
"""A JSON message, such as a list of layers, has at most so many bytes."""

MAX_LAYER_BYTES = 1 << 36
"""The parameters of a layer have at most so many bytes."""

UNSENT_BYTES = 64 * 1024
"""The kernel holds at most so many unsent bytes, half a chunk, because their order can no longer be changed.

With much less the link would be idle whenever a busy processor wakes the sender late."""

MAX_LATE = 255
"""A gradient that lacks more iterations than this is said to lack this many."""

SILENCE_SECONDS = 120
"""A peer that is silent for so long counts as lost, because a host that loses its power closes no connection.

A switch restarts within this time. The kernel by itself would wait 15 minutes with data in flight, and for ever
without."""

_PROBE_SECONDS = 10
"""A silent peer is probed at this interval, so that a few lost probes do not make it count as lost."""


class Kind(IntEnum):
    """The kinds of messages."""

    HELLO = 1
    """JSON: who the worker is, and what it trains."""
    WELCOME = 2
    """JSON: how many workers there are."""
    REFUSED = 3
    """Text for people."""
    LAYER = 4
    """A layer's first parameters; ``chunk``: its number in the model's order."""
    ORDER = 5
    """JSON: the layers' numbers, front first."""
    PUSH = 6
    """A chunk of gradients; ``value``: the learning rate; ``late``: the iterations that its parameters lacked."""
    FRESH = 7
    """A chunk of parameters."""
    DONE = 8
    """The worker has all that it wanted, and sends nothing more."""


_KINDS = frozenset(int(kind) for kind in Kind)


class Frame(NamedTuple):
    """The header of a message; ``length`` counts the bytes that follow it."""

    kind: Kind
    length: int
    chunk: int = 0
    iteration: int = 0
    value: float = 0.0
    late: int = 0


def pack(frame: Frame) -> bytes:
    """Return a header as bytes."""
    return _HEADER.pack(_MAGIC, frame.kind, frame.late, frame.chunk, frame.iteration, frame.value, frame.length)


def unpack(head: bytes | bytearray | memoryview) -> Frame:
    """Return the header that bytes are of. Raises SaspError for anything else."""
    magic, kind, late, chunk, iteration, value, length = _HEADER.unpack(head)
    if magic != _MAGIC or kind not in _KINDS:
        raise SaspError("something that is no message of this protocol")
    limit = (
        MAX_JSON_BYTES if kind in {Kind.HELLO, Kind.WELCOME, Kind.REFUSED, Kind.ORDER, Kind.DONE} else MAX_LAYER_BYTES
    )
    if length > limit:
        raise SaspError(f"a message of {length} bytes")
    return Frame(Kind(kind), length, chunk, iteration, value, late)


def json_message(kind: Kind, content: Any) -> bytes:
    """Return a whole message, header and JSON."""
    body = json.dumps(content, allow_nan=False).encode()
    return pack(Frame(kind, len(body))) + body


def small_buffer(sock: socket.socket) -> None:
    """Let the order be decided late: in the kernel lies only what the network takes next."""
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    # Not on every system; there the order is kept by chunks of the socket's own buffer.
    with contextlib.suppress(OSError, AttributeError):
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, UNSENT_BYTES)


def notice_silence(
    sock: socket.socket, silence_seconds: int = SILENCE_SECONDS, probe_seconds: int = _PROBE_SECONDS
) -> None:
    """Let calls on ``sock`` fail with OSError once the peer has been silent for ``silence_seconds``.

    Both are needed: probes are sent only while nothing is on its way, and the limit counts only while something is.
    A stopped process, which takes nothing of what is on its way to it, counts as silent too.
    """
    probes = silence_seconds // probe_seconds - 1
    for level, name, value in (
        (socket.SOL_SOCKET, "SO_KEEPALIVE", 1),
        (socket.IPPROTO_TCP, "TCP_KEEPIDLE", probe_seconds),
        (socket.IPPROTO_TCP, "TCP_KEEPINTVL", probe_seconds),
        (socket.IPPROTO_TCP, "TCP_KEEPCNT", probes),
        (socket.IPPROTO_TCP, "TCP_USER_TIMEOUT", silence_seconds * 1000),
    ):
        # Not every system has each of them; there its own times hold.
        with contextlib.suppress(OSError, AttributeError):
            sock.setsockopt(level, getattr(socket, name), value)


def send_all(sock: socket.socket, *parts: bytes | memoryview) -> None:
    """Send parts one after the other, in few calls. Raises OSError."""
    waiting = [memoryview(part) for part in parts if len(part)]
    while waiting:
        sent = sock.sendmsg(waiting)
        while waiting and sent >= len(waiting[0]):
            sent -= len(waiting.pop(0))
        if sent:
            waiting[0] = waiting[0][sent:]


def receive(sock: socket.socket, longest: int = MAX_LAYER_BYTES) -> tuple[Frame, bytearray]:
    """The next message; ``longest``: bytes of contents, of which no more are taken in.

    Raises EndOfStreamError, SaspError for a message of something else, OSError.
    """
    head = _exactly(sock, HEADER_BYTES)
    frame = unpack(head)
    if frame.length > max(longest, MAX_JSON_BYTES):
        raise SaspError(f"a message of {frame.length} bytes")
    return frame, _exactly(sock, frame.length)


def _exactly(sock: socket.socket, length: int) -> bytearray:
    data = bytearray(length)
    view = memoryview(data)
    while view:
        got = sock.recv_into(view)
        if got == 0:
            raise EndOfStreamError("the connection was closed")
        view = view[got:]
    return data
