"""The kernel's list of TCP sockets as bytes: the question, and what its answers say. Pure.

The messages are those of ``linux/inet_diag.h`` over netlink's sock_diag. Parsed with ``struct`` alone: thousands of
sockets are looked at every second. Messages of one length mostly have their attributes in one order, so the places
found in the first are tried on the others, and believed only where the attributes' own headers stand there.
"""

from __future__ import annotations

import errno
import os
import socket
import struct
from typing import NamedTuple

ESTABLISHED, SYN_SENT, FIN_WAIT1, CLOSE_WAIT, LAST_ACK, LISTEN, CLOSING = 1, 2, 4, 8, 9, 10, 11
STATES = (ESTABLISHED, SYN_SENT, FIN_WAIT1, CLOSE_WAIT, LAST_ACK, LISTEN, CLOSING)
"""Those in which a socket sends, receives or waits for peers. The rest are of connections that are over."""

_SOCK_DIAG_BY_FAMILY = 20
_REQUEST_DUMP = 0x301
_ERROR, _DONE = 2, 3
_DUMP_INTERRUPTED = 0x10
_ATTR_INFO, _ATTR_CGROUP_ID = 2, 21
_BYTES_ACKED = 120
"""In ``struct tcp_info``; bytes_received is behind it."""

_HEADER = struct.Struct("=IHHII")
_ATTRIBUTE = struct.Struct("=HH")
_NUMBER = struct.Struct("=i")
_MESSAGE_BYTES = 72
_MAPPED = b"\0" * 10 + b"\xff\xff"
# Header, then family, state, ports, addresses, cookie, inode of struct inet_diag_msg.
_V4 = "=IHHIIBB2xHH4s12x4s12x4xQ16xI"
_V6 = "=IHHIIBB2xHH16s16s4xQ16xI"


class DiagError(RuntimeError):
    """The kernel does not tell its sockets; the message says why."""


class Socket(NamedTuple):
    """A TCP socket. ``cookie`` is its identity, and no other socket's ever.

    ``inode`` is 0 where no program holds it any more; ``cgroup`` is 0 where the kernel does not say. Addresses are four
    bytes of IPv4, also where a socket of IPv6 talks over IPv4, or sixteen. One that listens at all addresses of both
    families has four zero bytes. ``acked``: bytes that the peer has acknowledged; ``received``: bytes that came.
    """

    cookie: int
    inode: int
    cgroup: int
    state: int
    local: bytes
    local_port: int
    remote: bytes
    remote_port: int
    acked: int
    received: int


def request(family: int) -> bytes:
    """The question for all TCP sockets of a family, with their byte counts."""
    states = sum(1 << state for state in STATES)
    body = struct.pack("=BBBBI", family, socket.IPPROTO_TCP, 1 << (_ATTR_INFO - 1), 0, states) + bytes(48)
    return _HEADER.pack(_HEADER.size + len(body), _SOCK_DIAG_BY_FAMILY, _REQUEST_DUMP, 1, 0) + body


class _Layout(NamedTuple):
    """Where a message of some length has what is looked for, and the attributes' headers as they must stand there."""

    unpack: struct.Struct
    headers: tuple[int, ...]
    has_cgroup: bool
    has_info: bool


class Parser:
    """Of the answers to one or more questions. Not for several threads."""

    def __init__(self) -> None:
        self._layouts: dict[tuple[int, int], _Layout] = {}

    def parse(self, data: bytes | memoryview, sockets: list[Socket]) -> bool:
        """Add the sockets of one piece of an answer to ``found``. Returns whether it was the last piece.

        Raises DiagError for an answer that is an error, or that makes no sense.
        """
        offset, end = 0, len(data)
        while offset + _HEADER.size <= end:
            length, kind, flags, _, _ = _HEADER.unpack_from(data, offset)
            if length < _HEADER.size or offset + length > end:
                raise DiagError("the kernel's answer makes no sense")
            if kind == _DONE:
                return True
            if kind == _ERROR:
                raise DiagError(_described(data, offset, length))
            if flags & _DUMP_INTERRUPTED:
                raise DiagError("the sockets changed while they were listed")
            if kind == _SOCK_DIAG_BY_FAMILY and length >= _HEADER.size + _MESSAGE_BYTES:
                self._append(data, offset, length, sockets)
            offset += (length + 3) & ~3
        return False

    def _append(self, data: bytes | memoryview, offset: int, length: int, sockets: list[Socket]) -> None:
        family = data[offset + _HEADER.size]
        layout = self._layouts.get((length, family))
        values = layout.unpack.unpack_from(data, offset) if layout is not None else ()
        if layout is None or not _fits(layout, values):
            layout = self._layouts[length, family] = _layout(data, offset, length, family)
            values = layout.unpack.unpack_from(data, offset)
        state, local_port, remote_port, local, remote, cookie, inode = values[6:13]
        # A socket of both families that talks, or may be talked to, over IPv4.
        if family == socket.AF_INET6 and (local[:12] == _MAPPED or (state == LISTEN and local == bytes(16))):
            local, remote = local[12:], remote[12:]
        at = 13
        cgroup = acked = received = 0
        if layout.has_cgroup:
            cgroup = values[at + 2]
            at += 3
        if layout.has_info:
            acked, received = values[at + 2], values[at + 3]
        sockets.append(
            Socket(
                cookie,
                inode,
                cgroup,
                state,
                local,
                socket.ntohs(local_port),
                remote,
                socket.ntohs(remote_port),
                acked,
                received,
            )
        )


def _fits(layout: _Layout, values: tuple[object, ...]) -> bool:
    """Returns whether the attributes stand where they stood in the message that the layout is of."""
    at = 13
    headers = layout.headers
    if layout.has_cgroup:
        if values[at : at + 2] != headers[:2]:
            return False
        at += 3
        headers = headers[2:]
    return not layout.has_info or values[at : at + 2] == headers


def _layout(data: bytes | memoryview, place: int, length: int, family: int) -> _Layout:
    """Find the attributes of one message. Those that are cut off, or too short for what is looked for, do not count."""
    at: dict[int, tuple[int, int]] = {}
    offset = _HEADER.size + _MESSAGE_BYTES
    while offset + _ATTRIBUTE.size <= length:
        size, kind = _ATTRIBUTE.unpack_from(data, place + offset)
        if size < _ATTRIBUTE.size or offset + size > length:
            break
        at[kind] = (offset, size)
        offset += (size + 3) & ~3
    cgroup, info = at.get(_ATTR_CGROUP_ID), at.get(_ATTR_INFO)
    if cgroup is not None and cgroup[1] < _ATTRIBUTE.size + 8:
        cgroup = None
    if info is not None and info[1] < _ATTRIBUTE.size + _BYTES_ACKED + 16:
        info = None
    # The kernel writes tcp_info last, and both are looked for in one go.
    if cgroup is not None and info is not None and info[0] < cgroup[0]:
        info = None
    text = _V6 if family == socket.AF_INET6 else _V4
    headers: list[int] = []
    reached = _HEADER.size + _MESSAGE_BYTES
    if cgroup is not None:
        text += f"{cgroup[0] - reached}xHHQ"
        reached = cgroup[0] + _ATTRIBUTE.size + 8
        headers += [cgroup[1], _ATTR_CGROUP_ID]
    if info is not None:
        text += f"{info[0] - reached}xHH{_BYTES_ACKED}xQQ"
        headers += [info[1], _ATTR_INFO]
    return _Layout(struct.Struct(text), tuple(headers), cgroup is not None, info is not None)


def _described(data: bytes | memoryview, offset: int, length: int) -> str:
    if length < _HEADER.size + _NUMBER.size:
        return "the kernel's answer is an error that says nothing"
    number = -_NUMBER.unpack_from(data, offset + _HEADER.size)[0]
    if number == errno.ENOENT:
        return "the kernel lists no TCP sockets; it needs the modules inet_diag and tcp_diag"
    return f"the kernel lists no TCP sockets: {os.strerror(number)}"
