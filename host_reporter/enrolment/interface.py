"""What this host says of its interface when it enrols: addresses, MAC address and rate, as the kernel has them."""

from __future__ import annotations

import ctypes
import fcntl
import socket
import struct
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

SYSFS = Path("/sys/class/net")
_SIOCGIFCONF = 0x8912
_ENTRY_BYTES = 40
_MOST_ADDRESSES = 4096
_NO_MAC = "00:00:00:00:00:00"
_MEGABIT = 1e6


class InterfaceError(ValueError):
    """There is no interface to enrol with. The message says what would be right."""


class InterfaceFacts(NamedTuple):
    """An interface: its IPv4 addresses, its MAC address, and its rate in bit/s (None: it does not tell)."""

    name: str
    addresses: tuple[str, ...]
    mac: str | None
    rate_bps: float | None


def look(name: str | None, local_address: str | None) -> InterfaceFacts:
    """Returns what there is to say of the interface ``name``; None stands for that of ``local_address``.

    ``local_address`` is this host's own address on its way to the controller, which comes first in the answer where the
    interface has it. Raises InterfaceError.
    """
    addresses = _addresses()
    if name is None:
        name = next((interface for interface, address in addresses if address == local_address), None)
        if name is None:
            raise InterfaceError(
                f"no interface has the address {local_address}, from which the controller is reached; give --interface"
            )
    return InterfaceFacts(name, of_interface(addresses, name, local_address), _mac(name), _rate_bps(name))


def of_interface(addresses: Iterable[tuple[str, str]], name: str, first: str | None) -> tuple[str, ...]:
    """Returns the addresses of an interface, ``first`` at the front.

    Those of the loopback are none, because every host has them. Raises InterfaceError where there is none.
    """
    own = [address for interface, address in addresses if interface == name and not address.startswith("127.")]
    if not own:
        raise InterfaceError(f"interface {name} has no IPv4 address that others reach, or is not up")
    return tuple(sorted(dict.fromkeys(own), key=lambda address: address != first))


def own_address(controller_host: str, port: int) -> str | None:
    """Returns this host's IPv4 address on its way to the controller; None where there is no way. Sends nothing."""
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as trial:
            trial.connect((controller_host, port))
            return str(trial.getsockname()[0])
    except OSError:
        return None


def _addresses() -> list[tuple[str, str]]:
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
