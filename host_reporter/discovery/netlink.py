"""Asks the kernel for the TCP sockets of a network namespace: a netlink socket that was opened in it, and kept."""

from __future__ import annotations

import ctypes
import fcntl
import os
import socket
import struct
import threading
from pathlib import Path

from host_reporter.discovery.sock_diag import DiagError, Parser, Socket, request

_NETLINK_SOCK_DIAG = 4
_RECEIVE_BYTES = 256 * 1024
_TIMEOUT_SECONDS = 2.0
_TRIES = 3
_CLONE_NEWNET = 0x40000000
_SIOCGIFCONF = 0x8912
_INTERFACE_BYTES = 40
_MAX_INTERFACES = 1024

_libc = ctypes.CDLL(None, use_errno=True)


class Diag:
    """The sockets of one namespace. For one thread at a time."""

    def __init__(self, sock: socket.socket | None = None) -> None:
        """``sock``: opened in the namespace (None: here). Raises DiagError."""
        try:
            self._socket = sock if sock is not None else _open()
        except OSError as error:
            raise DiagError(f"the kernel does not answer about sockets: {error.strerror}") from error
        self._buffer = bytearray(_RECEIVE_BYTES)
        self._parser = Parser()

    def sockets(self) -> list[Socket]:
        """All TCP sockets over IPv4, those of both families included. Raises DiagError."""
        for tries_left in reversed(range(_TRIES)):
            try:
                found: list[Socket] = []
                for family in (socket.AF_INET, socket.AF_INET6):
                    self._ask(family, found)
                return found
            except DiagError:
                self._renew()
                if tries_left == 0:
                    raise
            except OSError as error:
                self._renew()
                if tries_left == 0:
                    raise DiagError(f"the kernel does not answer about sockets: {error.strerror}") from error
        raise AssertionError

    def close(self) -> None:
        """Let go of the namespace."""
        self._socket.close()

    def _ask(self, family: int, found: list[Socket]) -> None:
        self._socket.send(request(family))
        view = memoryview(self._buffer)
        while True:
            count = self._socket.recv_into(view)
            if self._parser.parse(view[:count], found):
                return

    def _renew(self) -> None:
        """What is left of an answer must not be taken for the next one's."""
        self._socket.setblocking(False)
        try:
            while self._socket.recv_into(self._buffer):
                pass
        except OSError:
            self._socket.settimeout(_TIMEOUT_SECONDS)


def open_in(namespace: Path) -> tuple[Diag, frozenset[str]]:
    """The sockets of another network namespace, such as ``/proc/PID/ns/net``, and its IPv4 addresses.

    A thread of its own enters it and opens the netlink socket there, which stays there; the thread ends. Raises
    DiagError, OSError: PermissionError without CAP_SYS_ADMIN.
    """
    made: list[tuple[socket.socket, frozenset[str]]] = []
    failed: list[OSError] = []
    descriptor = os.open(namespace, os.O_RDONLY | os.O_CLOEXEC)

    def enter() -> None:
        try:
            if _libc.setns(descriptor, _CLONE_NEWNET) != 0:
                number = ctypes.get_errno()
                raise OSError(number, os.strerror(number))
            made.append((_open(), _addresses()))
        except OSError as error:
            failed.append(error)

    try:
        thread = threading.Thread(target=enter, name="namespace", daemon=True)
        thread.start()
        thread.join()
    finally:
        os.close(descriptor)
    if failed:
        raise failed[0]
    sock, addresses = made[0]
    return Diag(sock), addresses


def _addresses() -> frozenset[str]:
    """The IPv4 addresses of the interfaces that are up, without the loopback's own."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as asking:
        room = bytearray(_MAX_INTERFACES * _INTERFACE_BYTES)
        place = (ctypes.c_char * len(room)).from_buffer(room)
        asked = struct.pack("iP", len(room), ctypes.addressof(place))
        used, _ = struct.unpack("iP", fcntl.ioctl(asking, _SIOCGIFCONF, asked))
        entries = (bytes(room[at + 20 : at + 24]) for at in range(0, used, _INTERFACE_BYTES))
        found = frozenset(map(socket.inet_ntoa, entries))
        del place
    return frozenset(address for address in found if not address.startswith("127."))


def _open() -> socket.socket:
    made = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, _NETLINK_SOCK_DIAG)
    made.settimeout(_TIMEOUT_SECONDS)
    return made
