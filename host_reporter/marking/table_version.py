"""Tells whether the packet filter's mangle table was changed, without a process, since this is checked each period.

nf_tables counts its transactions: one number says that nobody has changed anything. The older iptables has no such
number; there the whole table is read, as the kernel hands it out, without its counters. Where neither can be had the
caller has to read the table's text each time. The formats: linux/netfilter/nf_tables.h and
linux/netfilter_ipv4/ip_tables.h.
"""

from __future__ import annotations

import ctypes
import os
import socket
import struct

Version = int | tuple[bytes, ...]
"""Equal to an earlier one: nobody has changed the table since. A transaction's number, or the table's entries."""

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
"""The table's name (32 bytes), its size, and what aligns the entries to 8 bytes."""
_NEXT_AT, _COUNTED = 90, slice(92, 112)
"""Where an entry says how long it is, and what of it the kernel changes by itself."""

_libc = ctypes.CDLL(None, use_errno=True)


def read(*, is_nft: bool) -> Version | None:
    """The table's version now, in this thread's network namespace; None where the kernel does not tell it."""
    try:
        return _generation() if is_nft else _entries()
    except (OSError, struct.error):
        return None


def follows(after: Version | None, before: Version | None, rules: int) -> bool:
    """Returns whether all that was changed between two versions is one own transaction that replaced so many rules."""
    if isinstance(before, int) and isinstance(after, int):
        return after == (before + 1) & 0xFFFFFFFF
    if isinstance(before, tuple) and isinstance(after, tuple):
        return len(before) == len(after) and sum(a != b for a, b in zip(before, after, strict=True)) <= rules
    return False


def _generation() -> int:
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, _NETFILTER) as asking:
        asking.settimeout(_TIMEOUT_SECONDS)
        body = _FAMILY.pack(socket.AF_UNSPEC, 0, 0)
        asking.send(_HEADER.pack(_HEADER.size + len(body), _GET_GENERATION, _REQUEST, 1, 0) + body)
        answer = asking.recv(4096)
    length, kind, _, _, _ = _HEADER.unpack_from(answer)
    at = _HEADER.size + _FAMILY.size
    size, number = struct.unpack_from("=HH", answer, at)
    # Anything else is an error's number: the kernel has no nf_tables, or we are not permitted to ask.
    if kind >> 8 != _GET_GENERATION >> 8 or number != _GENERATION_ID or size != 8 or length < at + size:
        raise OSError("the kernel told no generation")
    return int(struct.unpack_from(">I", answer, at + 4)[0])


def _entries() -> tuple[bytes, ...]:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as asking:
        info = _ask(asking, _GET_INFO, _TABLE.ljust(_INFO_BYTES, b"\0"))
        (size,) = struct.unpack_from("=I", info, _SIZE_AT)
        header = _TABLE.ljust(32, b"\0") + struct.pack("=I", size)
        answer = _ask(asking, _GET_ENTRIES, header.ljust(_ENTRIES_HEADER_BYTES + size, b"\0"))
    return split(answer[_ENTRIES_HEADER_BYTES:])


def split(table: bytes) -> tuple[bytes, ...]:
    """The entries of a table without their counters. Raises struct.error where it is cut off."""
    entries = []
    at = 0
    while at < len(table):
        (length,) = struct.unpack_from("=H", table, at + _NEXT_AT)
        if length < _COUNTED.stop or at + length > len(table):
            raise struct.error("an entry is cut off")
        entries.append(table[at : at + _COUNTED.start] + table[at + _COUNTED.stop : at + length])
        at += length
    return tuple(entries)


def _ask(asking: socket.socket, option: int, question: bytes) -> bytes:
    """``getsockopt`` that hands the question over in the room for the answer, which Python's own does not."""
    room = ctypes.create_string_buffer(question, len(question))
    length = ctypes.c_uint32(len(question))
    if _libc.getsockopt(asking.fileno(), socket.SOL_IP, option, room, ctypes.byref(length)) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return room.raw[: length.value]
