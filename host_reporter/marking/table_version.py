"""Finds out whether the mangle table was changed. It needs no process, because the agent checks this each period.

nf_tables counts its transactions, and an equal number means that nothing has changed. iptables-legacy has no such
number, so the whole table is read in the kernel's format, without its counters. Where neither works, the caller must
read the table's text each time. linux/netfilter/nf_tables.h, linux/netfilter_ipv4/ip_tables.h and
linux/netfilter_ipv6/ip6_tables.h define the formats. nf_tables has one number for both address families.
"""

from __future__ import annotations

import ctypes
import os
import socket
import struct
from typing import NamedTuple

Version = int | tuple[bytes, ...]
"""The number of the last transaction, or the table's entries. Equal versions mean that the table has not changed."""

_NETFILTER = 12
_GET_GENERATION = 10 << 8 | 16
_REQUEST = 1
_HEADER = struct.Struct("=IHHII")
_FAMILY = struct.Struct(">BBH")
_GENERATION_ID = 1
_TIMEOUT_SECONDS = 2.0

_TABLE = b"mangle"
_GET_INFO, _GET_ENTRIES = 64, 65
_INFO_BYTES, _SIZE_AT = 84, 80
_ENTRIES_HEADER_BYTES = 40
"""The header has the table's name (32 bytes), its size, and padding that aligns the entries to 8 bytes."""


class Layout(NamedTuple):
    """Where iptables-legacy of an address family has its tables, and what their entries look like.

    ``family`` and ``level`` are of the socket and its option. At ``next_at`` an entry has its length, and at
    ``counted`` the counters that the kernel changes.
    """

    family: int
    level: int
    next_at: int
    counted: slice


OVER_IPV4 = Layout(socket.AF_INET, socket.IPPROTO_IP, 90, slice(92, 112))
OVER_IPV6 = Layout(socket.AF_INET6, socket.IPPROTO_IPV6, 142, slice(144, 168))

_libc = ctypes.CDLL(None, use_errno=True)


def read(*, is_nft: bool, is_ipv6: bool = False) -> Version | None:
    """Returns the table's version in this thread's network namespace; None where the kernel does not give it."""
    try:
        return _generation() if is_nft else _entries(OVER_IPV6 if is_ipv6 else OVER_IPV4)
    except (OSError, struct.error):
        return None


def follows(after: Version | None, before: Version | None, rules: int) -> bool:
    """Returns whether one transaction that replaced ``rules`` rules explains all changes between two versions."""
    if isinstance(before, int) and isinstance(after, int):
        return after == (before + 1) & 0xFFFFFFFF
    if isinstance(before, tuple) and isinstance(after, tuple):
        return len(before) == len(after) and sum(a != b for a, b in zip(before, after, strict=True)) <= rules
    return False


def _generation() -> int:
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, _NETFILTER) as netlink:
        netlink.settimeout(_TIMEOUT_SECONDS)
        body = _FAMILY.pack(socket.AF_UNSPEC, 0, 0)
        netlink.send(_HEADER.pack(_HEADER.size + len(body), _GET_GENERATION, _REQUEST, 1, 0) + body)
        answer = netlink.recv(4096)
    length, kind, _, _, _ = _HEADER.unpack_from(answer)
    at = _HEADER.size + _FAMILY.size
    size, number = struct.unpack_from("=HH", answer, at)
    # Any other answer is an error: the kernel has no nf_tables, or this process may not read it.
    if kind >> 8 != _GET_GENERATION >> 8 or number != _GENERATION_ID or size != 8 or length < at + size:
        raise OSError("the kernel gave no generation")
    return int(struct.unpack_from(">I", answer, at + 4)[0])


def _entries(layout: Layout) -> tuple[bytes, ...]:
    with socket.socket(layout.family, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as udp:
        info = _get_option(udp, layout.level, _GET_INFO, _TABLE.ljust(_INFO_BYTES, b"\0"))
        (size,) = struct.unpack_from("=I", info, _SIZE_AT)
        header = _TABLE.ljust(32, b"\0") + struct.pack("=I", size)
        answer = _get_option(udp, layout.level, _GET_ENTRIES, header.ljust(_ENTRIES_HEADER_BYTES + size, b"\0"))
    return split(answer[_ENTRIES_HEADER_BYTES:], layout)


def split(table: bytes, layout: Layout = OVER_IPV4) -> tuple[bytes, ...]:
    """Returns the entries of a table without their counters. Raises struct.error for a truncated table."""
    entries, counted = [], layout.counted
    at = 0
    while at < len(table):
        (length,) = struct.unpack_from("=H", table, at + layout.next_at)
        if length < counted.stop or at + length > len(table):
            raise struct.error("an entry is cut off")
        entries.append(table[at : at + counted.start] + table[at + counted.stop : at + length])
        at += length
    return tuple(entries)


def _get_option(udp: socket.socket, level: int, option: int, request: bytes) -> bytes:
    """Call ``getsockopt`` with a request in the buffer for the answer, which Python's own function cannot do."""
    room = ctypes.create_string_buffer(request, len(request))
    length = ctypes.c_uint32(len(request))
    if _libc.getsockopt(udp.fileno(), level, option, room, ctypes.byref(length)) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return room.raw[: length.value]
