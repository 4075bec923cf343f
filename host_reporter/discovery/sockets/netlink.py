"""Asks the kernel for the TCP sockets of a network namespace: a netlink socket that was opened in it, and kept."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import os
import socket
import struct
from pathlib import Path
from typing import NamedTuple

from host_reporter.discovery.sockets.sock_diag import DiagError, Parser, Socket, request
from host_reporter.ip_addresses import is_loopback
from host_reporter.worker import in_own_thread

_NETLINK_SOCK_DIAG = 4
_TCP_DESTROYED = 1 << 0
_TCP6_DESTROYED = 1 << 2
"""The groups that hear of each TCP socket that is gone: SKNLGRP_INET_TCP_DESTROY and SKNLGRP_INET6_TCP_DESTROY of
linux/sock_diag.h."""
_SO_RCVBUFFORCE = 33
_EVENT_BYTES = 4 * 1024 * 1024
"""Of events that wait for the next look: some 4,000 sockets, as the kernel counts them."""
_RECEIVE_BYTES = 256 * 1024
_TIMEOUT_SECONDS = 2.0
_TRIES = 3
_CLONE_NEWNET = 0x40000000
_SIOCGIFCONF = 0x8912
_INTERFACE_BYTES = 40
_MAX_INTERFACES = 1024
_IPV6_ADDRESSES = Path("/proc/thread-self/net/if_inet6")

_libc = ctypes.CDLL(None, use_errno=True)


class Ended(NamedTuple):
    """Sockets that are gone, with their last counts; no inode and no cgroup. ``is_all``: none is missing."""

    sockets: list[Socket]
    is_all: bool


class Looked(NamedTuple):
    """All TCP sockets of a network namespace, of both families, and those that have ended since the look before.

    ``namespace`` is 0 for the agent's own, and another number for each other one that is looked at.
    """

    namespace: int
    sockets: list[Socket]
    ended: list[Socket]


class _Opened(NamedTuple):
    """Netlink sockets of one namespace: for questions, and for what the kernel tells of itself, if it does."""

    questions: socket.socket
    events: socket.socket | None


class Diag:
    """The sockets of one namespace. For one thread at a time."""

    def __init__(self, opened: _Opened | None = None, *, event_bytes: int = _EVENT_BYTES) -> None:
        """``opened``: in the namespace (None: here, with room for ``event_bytes`` of events). Raises DiagError."""
        try:
            self._socket, self._events = opened if opened is not None else _open(event_bytes)
        except OSError as error:
            raise DiagError(f"the kernel does not answer about sockets: {error.strerror}") from error
        self._buffer = bytearray(_RECEIVE_BYTES)
        self._parser, self._ended = Parser(), Parser()

    def sockets(self) -> list[Socket]:
        """All TCP sockets, over IPv4 and IPv6. Raises DiagError."""
        for tries_left in reversed(range(_TRIES)):
            try:
                listed: list[Socket] = []
                for family in (socket.AF_INET, socket.AF_INET6):
                    self._ask(family, listed)
                return listed
            except DiagError:
                self._renew()
                if tries_left == 0:
                    raise
            except OSError as error:
                self._renew()
                if tries_left == 0:
                    raise DiagError(f"the kernel does not answer about sockets: {error.strerror}") from error
        raise AssertionError

    def ended(self) -> Ended:
        """The sockets that are gone since it was asked last, or since this was opened."""
        gone: list[Socket] = []
        if self._events is None:
            return Ended(gone, is_all=False)
        is_all = True
        view = memoryview(self._buffer)
        while True:
            try:
                count = self._events.recv_into(view)
                self._ended.parse(view[:count], gone)
            except BlockingIOError:
                return Ended(gone, is_all)
            except (OSError, DiagError) as error:
                # Too many for the room that there is; what fitted can still be read.
                is_all = False
                if not isinstance(error, OSError) or error.errno != errno.ENOBUFS:
                    return Ended(gone, is_all)

    def close(self) -> None:
        """Let go of the namespace."""
        self._socket.close()
        if self._events is not None:
            self._events.close()

    def _ask(self, family: int, sockets: list[Socket]) -> None:
        self._socket.send(request(family))
        view = memoryview(self._buffer)
        while True:
            count = self._socket.recv_into(view)
            if self._parser.parse(view[:count], sockets):
                return

    def _renew(self) -> None:
        """What is left of an answer must not be taken for the next one's."""
        self._socket.setblocking(False)
        try:
            while self._socket.recv_into(self._buffer):
                pass
        except OSError:
            self._socket.settimeout(_TIMEOUT_SECONDS)


def open_in(namespace: Path) -> tuple[Diag, frozenset[bytes]]:
    """The sockets of another network namespace, such as ``/proc/PID/ns/net``, and its addresses.

    A thread of its own enters it and opens the netlink socket there, which stays there; the thread ends. Raises
    DiagError, OSError: PermissionError without CAP_SYS_ADMIN.
    """
    descriptor = os.open(namespace, os.O_RDONLY | os.O_CLOEXEC)

    def enter() -> tuple[_Opened, frozenset[bytes]]:
        if _libc.setns(descriptor, _CLONE_NEWNET) != 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))
        return _open(), _addresses()

    try:
        opened, addresses = in_own_thread(enter, "namespace")
    finally:
        os.close(descriptor)
    return Diag(opened), addresses


def _addresses() -> frozenset[bytes]:
    """The addresses of the interfaces that are up, without the loopback's own."""
    return frozenset(address for address in (*_ipv4_addresses(), *_ipv6_addresses()) if not is_loopback(address))


def _ipv4_addresses() -> list[bytes]:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as asking:
        room = bytearray(_MAX_INTERFACES * _INTERFACE_BYTES)
        buffer = (ctypes.c_char * len(room)).from_buffer(room)
        request = struct.pack("iP", len(room), ctypes.addressof(buffer))
        used, _ = struct.unpack("iP", fcntl.ioctl(asking, _SIOCGIFCONF, request))
        addresses = [bytes(room[at + 20 : at + 24]) for at in range(0, used, _INTERFACE_BYTES)]
        del buffer
    return addresses


def _ipv6_addresses() -> list[bytes]:
    """The file has a line for each address, which begins with its 32 digits; a kernel without IPv6 has no file."""
    try:
        lines = _IPV6_ADDRESSES.read_text(encoding="ascii").splitlines()
    except OSError:
        return []
    return [bytes.fromhex(line.partition(" ")[0]) for line in lines]


def _open(event_bytes: int = _EVENT_BYTES) -> _Opened:
    """Raises OSError."""
    questions = _netlink()
    questions.settimeout(_TIMEOUT_SECONDS)
    events = None
    # Kernels before 4.3 have no such group, and some sandboxes refuse it.
    with contextlib.suppress(OSError):
        events = _netlink()
        try:
            _make_room(events, event_bytes)
            events.setblocking(False)
            events.bind((0, _TCP_DESTROYED | _TCP6_DESTROYED))
        except OSError:
            events.close()
            events = None
    return _Opened(questions, events)


def _netlink() -> socket.socket:
    return socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, _NETLINK_SOCK_DIAG)


def _make_room(events: socket.socket, event_bytes: int) -> None:
    try:
        events.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, event_bytes)
    except PermissionError:
        events.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, event_bytes)
