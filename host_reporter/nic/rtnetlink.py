"""Reads and changes an interface's traffic control over rtnetlink, without a process, many times a minute.

``tc`` does the same in a process of its own, which costs fifty times as much. linux/rtnetlink.h and
linux/pkt_sched.h define the formats.
"""

from __future__ import annotations

import contextlib
import os
import socket
import struct
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from host_reporter.nic.errors import NicError

QDISC, CLASS, FILTER = 36, 40, 44
"""These message types describe one qdisc, class or filter (RTM_NEWQDISC, RTM_NEWTCLASS, RTM_NEWTFILTER)."""

KIND, OPTIONS = 1, 2

_TO_REQUEST = 2
"""A description's type plus this number is the type of the request for it (RTM_GETQDISC and so on)."""
_ERROR, _DONE = 2, 3
_REQUEST, _ACKNOWLEDGE, _DUMP, _INTERRUPTED = 0x001, 0x004, 0x300, 0x010
_HEADER = struct.Struct("=IHHII")
_TRAFFIC = struct.Struct("=BBHiIII")
_ATTRIBUTE = struct.Struct("=HH")
_TYPE_MASK = 0x3FFF
_RECEIVE_BYTES = 256 * 1024
_TIMEOUT_SECONDS = 2.0
_TRIES = 5


class Request(NamedTuple):
    """A change: its message type, its flags, the handle, parent and info of its entry, and its attributes."""

    kind: int
    flags: int
    entry: tuple[int, int, int]
    content: bytes


class Entry(NamedTuple):
    """A qdisc, class or filter.

    ``raw`` is the content of its options attribute, and ``options`` the attributes nested in that, by number.
    """

    what: int
    handle: int
    parent: int
    info: int
    kind: str
    raw: bytes
    options: Mapping[int, bytes]


def read(interface: str, *filters_of: int) -> list[Entry]:
    """Returns an interface's qdiscs and classes, and the filters of the qdiscs with these handles. Raises NicError."""
    requests = [(QDISC, 0), (CLASS, 0), *((FILTER, parent) for parent in filters_of)]
    with _connection(interface, "its traffic control cannot be read") as (netlink, index):
        return [entry for what, parent in requests for entry in _dump(netlink, what, index, parent)]


def change(interface: str, requests: Iterable[Request]) -> None:
    """Carry out changes, one after the other. Raises NicError at the first that the kernel refuses."""
    with _connection(interface, "its traffic control cannot be changed") as (netlink, index):
        for kind, flags, entry, content in requests:
            body = _TRAFFIC.pack(socket.AF_UNSPEC, 0, 0, index, *entry) + content
            head = _HEADER.pack(_HEADER.size + len(body), kind, _REQUEST | _ACKNOWLEDGE | flags, 1, 0)
            netlink.send(head + body)
            parse(netlink.recv(_RECEIVE_BYTES), index)


@contextlib.contextmanager
def _connection(interface: str, trouble: str) -> Iterator[tuple[socket.socket, int]]:
    """Yields a connection to the kernel, and the interface's index. Raises NicError."""
    try:
        index = socket.if_nametoindex(interface)
    except OSError as error:
        raise NicError(f"there is no interface {interface}") from error
    try:
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, socket.NETLINK_ROUTE) as netlink:
            netlink.settimeout(_TIMEOUT_SECONDS)
            yield netlink, index
    except OSError as error:
        reason = error.strerror or os.strerror(error.errno) if error.errno else str(error)
        raise NicError(f"{interface}: {trouble}: {reason}") from error


def _dump(netlink: socket.socket, what: int, index: int, parent: int) -> list[Entry]:
    for _ in range(_TRIES):
        body = _TRAFFIC.pack(socket.AF_UNSPEC, 0, 0, index, 0, parent, 0)
        netlink.send(_HEADER.pack(_HEADER.size + len(body), what + _TO_REQUEST, _REQUEST | _DUMP, 1, 0) + body)
        entries: list[Entry] = []
        whole, ended = True, False
        while not ended:
            pieces, is_whole, ended = parse(netlink.recv(_RECEIVE_BYTES), index)
            entries += pieces
            whole &= is_whole
        # A change during the dump may be missing from it, so an interrupted dump is repeated.
        if whole:
            return entries
    raise OSError("the traffic control changes too quickly")


def parse(data: bytes, index: int) -> tuple[list[Entry], bool, bool]:
    """Read one datagram of an answer. Raises OSError where the kernel refuses.

    Returns the entries of the interface with this index, whether no change has interrupted the dump, and whether the
    answer has ended.
    """
    entries: list[Entry] = []
    whole, at = True, 0
    while at + _HEADER.size <= len(data):
        length, kind, flags, _, _ = _HEADER.unpack_from(data, at)
        if length < _HEADER.size:
            raise OSError("the kernel's answer is cut off")
        body = data[at + _HEADER.size : at + length]
        whole &= not flags & _INTERRUPTED
        if kind == _DONE:
            return entries, whole, True
        if kind == _ERROR:
            number = -struct.unpack_from("=i", body)[0]
            if number == 0:  # so the kernel acknowledges a change
                return entries, whole, True
            raise OSError(number, os.strerror(number))
        if kind in {QDISC, CLASS, FILTER} and _TRAFFIC.unpack_from(body)[3] == index:
            entries.append(_entry(kind, body))
        at += (length + 3) & ~3
    return entries, whole, False


def attributes(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yields the number and bytes of each attribute of a message or nest, up to the first that is malformed."""
    at = 0
    while at + _ATTRIBUTE.size <= len(data):
        length, kind = _ATTRIBUTE.unpack_from(data, at)
        if length < _ATTRIBUTE.size or at + length > len(data):
            return
        yield kind & _TYPE_MASK, data[at + _ATTRIBUTE.size : at + length]
        at += (length + 3) & ~3


def attribute(number: int, content: bytes) -> bytes:
    """Returns an attribute of a message, filled up to whole words."""
    length = _ATTRIBUTE.size + len(content)
    return _ATTRIBUTE.pack(length, number) + content + bytes(-length % 4)


def _entry(what: int, body: bytes) -> Entry:
    _, _, _, _, handle, parent, info = _TRAFFIC.unpack_from(body)
    values = dict(attributes(body[_TRAFFIC.size :]))
    kind = values.get(KIND, b"").rstrip(b"\0").decode(errors="replace")
    raw = values.get(OPTIONS, b"")
    return Entry(what, handle, parent, info, kind, raw, dict(attributes(raw)))
