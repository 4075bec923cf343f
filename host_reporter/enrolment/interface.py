"""What the kernel says of an interface of this host: addresses of both families, MAC address and rate."""

from __future__ import annotations

import ctypes
import fcntl
import socket
import struct
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

SYSFS = Path("/sys/class/net")
IPV6_ADDRESSES = Path("/proc/thread-self/net/if_inet6")
_SIOCGIFCONF = 0x8912
_ENTRY_BYTES = 40
_MOST_ADDRESSES = 4096
_NO_MAC = "00:00:00:00:00:00"
_MEGABIT = 1e6
_GLOBAL_SCOPE = 0
"""The scope of global and unique local addresses, and not of those of a link or of the loopback."""
_PASSING = 0x01 | 0x08 | 0x20 | 0x40
"""Flags of linux/if_addr.h: temporary (RFC 8981), a duplicate, deprecated, tentative."""


class InterfaceError(ValueError):
    """There is no interface to enrol with. The message says what would be right."""


class InterfaceFacts(NamedTuple):
    """An interface: its addresses, those of IPv4 first, its MAC address, and its rate in bit/s (None: not told)."""

    name: str
    addresses: tuple[str, ...]
    mac: str | None
    rate_bps: float | None

    @property
    def ipv4(self) -> tuple[str, ...]:
        """Its IPv4 addresses."""
        return tuple(address for address in self.addresses if ":" not in address)


def look(name: str | None, local_address: str | None = None, *, needs_address: bool = True) -> InterfaceFacts:
    """Returns what there is to say of the interface ``name``; None stands for that of ``local_address``.

    ``local_address`` is this host's own address on its way to the controller, which comes first among those of its
    family where the interface has it. Raises InterfaceError where there is no such interface, and with
    ``needs_address`` where it has no address.
    """
    if name is None:
        name = _interface_of(local_address)
        if name is None:
            raise InterfaceError(
                f"no interface has the address {local_address}, from which the controller is reached; give --interface"
            )
    found = facts_of(_addresses(), name, local_address)
    if needs_address and not found.addresses:
        raise InterfaceError(f"interface {name} has no address that others reach, or is not up")
    return found


def facts_of(addresses: Iterable[tuple[str, str]], name: str, first: str | None) -> InterfaceFacts:
    """Returns what there is to say of an interface; ``first`` comes before its other addresses."""
    return InterfaceFacts(name, of_interface(addresses, name, first), _mac(name), _rate_bps(name))


def of_interface(addresses: Iterable[tuple[str, str]], name: str, first: str | None) -> tuple[str, ...]:
    """Returns the addresses of an interface, ``first`` at the front, and those of IPv4 before those of IPv6.

    Those of the loopback are none, because every host has them.
    """
    own = [address for interface, address in addresses if interface == name and not address.startswith("127.")]
    return tuple(sorted(dict.fromkeys(own), key=lambda address: (":" in address, address != first)))


def own_address(controller_host: str, port: int) -> str | None:
    """Returns this host's address on its way to the controller; None where there is no way. It sends no packet there.

    Where the controller has several addresses, they are tried in the order in which a connection tries them.
    """
    try:
        ways = socket.getaddrinfo(controller_host, port, type=socket.SOCK_DGRAM)
    except OSError:
        return None
    for family, kind, _, _, address in ways:
        try:
            with socket.socket(family, kind | socket.SOCK_CLOEXEC) as trial:
                trial.connect(address)
                return str(trial.getsockname()[0])
        except OSError:  # this host has no address of this family
            continue
    return None


def _addresses() -> list[tuple[str, str]]:
    """Returns the addresses of both families that hosts keep and others reach, each with its interface."""
    return [*_ipv4_addresses(), *lasting(_ipv6_table())]


def _interface_of(address: str | None) -> str | None:
    """Returns the interface with an address, which need not last: connections may begin at a temporary one."""
    every = (*_ipv4_addresses(), *_global(_ipv6_table(), without=0))
    return next((name for name, own in every if own == address), None)


def _ipv6_table() -> str:
    try:
        return IPV6_ADDRESSES.read_text(encoding="ascii", errors="replace")
    except OSError:  # a kernel without IPv6
        return ""


def lasting(table: str) -> Iterator[tuple[str, str]]:
    """Yields the lasting global addresses of ``/proc/net/if_inet6``, each with its interface."""
    yield from _global(table, without=_PASSING)


def _global(table: str, *, without: int) -> Iterator[tuple[str, str]]:
    """Yields the global addresses of a table that have none of the flags ``without``, each with its interface."""
    for line in table.splitlines():
        address, _, _, scope, flags, name = line.split()
        if int(scope, 16) == _GLOBAL_SCOPE and not int(flags, 16) & without:
            yield name, socket.inet_ntop(socket.AF_INET6, bytes.fromhex(address))


def _ipv4_addresses() -> list[tuple[str, str]]:
    """Returns the IPv4 addresses of the interfaces that are up, each with its interface (netdevice(7))."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as asking:
        room = bytearray(_MOST_ADDRESSES * _ENTRY_BYTES)
        buffer = (ctypes.c_char * len(room)).from_buffer(room)
        request = struct.pack("iP", len(room), ctypes.addressof(buffer))
        used, _ = struct.unpack("iP", fcntl.ioctl(asking, _SIOCGIFCONF, request))
        entries = [bytes(room[at : at + _ENTRY_BYTES]) for at in range(0, used, _ENTRY_BYTES)]
        del buffer
    named = ((entry[:16].split(b"\0")[0].decode(errors="replace"), entry[20:24]) for entry in entries)
    # An address may have a label, such as eth0:1.
    return [(label.partition(":")[0], socket.inet_ntoa(address)) for label, address in named]


def _mac(name: str) -> str | None:
    mac = _read(name, "address")
    return mac if mac is not None and len(mac) == len(_NO_MAC) and mac != _NO_MAC else None


def _rate_bps(name: str) -> float | None:
    speed = _read(name, "speed")
    return int(speed) * _MEGABIT if speed is not None and speed.isdecimal() and int(speed) > 0 else None


def _read(name: str, file: str) -> str | None:
    try:
        return (SYSFS / name / file).read_text(encoding="ascii").strip()
    except (OSError, ValueError):  # a virtual interface tells no speed, and says so by an error
        return None
