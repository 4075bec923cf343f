"""Reads the interfaces of the agent's network namespace, their counters and addresses, from the kernel over rtnetlink.

``/sys/class/net`` shows those of the namespace in which sysfs was mounted, which may be another one. The formats are
those of linux/rtnetlink.h, linux/if_link.h and linux/if_addr.h.
"""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Iterator

from host_reporter.nic.netdev import Count, Netdev, Network, Tunnel
from host_reporter.nic.rtnetlink import attributes
from host_reporter.nic.tunnels import tunnel

_NEW_LINK, _GET_LINK, _NEW_ADDRESS, _GET_ADDRESS = 16, 18, 20, 22
_ERROR, _DONE = 2, 3
_REQUEST_DUMP, _INTERRUPTED = 0x301, 0x010
_HEADER = struct.Struct("=IHHII")
_LINK = struct.Struct("=BxHiII")
_ADDRESS = struct.Struct("=BBBBI")
_NAME, _LOWER, _MASTER, _INFO, _STATS, _LOWER_NAMESPACE = 3, 5, 10, 18, 23, 37
_INFO_KIND, _INFO_DATA = 1, 2
_BOND, _BOND_MODE = "bond", 1
_PEER_OR_OWN, _OWN = 1, 2
_INDEX = struct.Struct("=I")
_STATISTICS = struct.Struct("=QQQQ")
"""Packets received and sent, bytes received and sent: the beginning of ``struct rtnl_link_stats64``."""
_VETH = "veth"
_RECEIVE_BYTES = 256 * 1024
_TIMEOUT_SECONDS = 2.0
_TRIES = 5


def read() -> Network:
    """Returns the interfaces and addresses as they are now. Raises OSError."""
    with _open() as netlink:
        links = _links(netlink)
        owned = [found for body in _dump(netlink, _GET_ADDRESS) if (found := address(body)) is not None]
    return Network({netdev.ifindex: netdev for netdev in links}, dict(owned))


def tunnels() -> list[Tunnel]:
    """Returns the tunnels of known kinds that have a device. Raises OSError."""
    with _open() as netlink:
        return [netdev.tunnel for netdev in _links(netlink) if netdev.tunnel is not None]


def _open() -> socket.socket:
    netlink = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, socket.NETLINK_ROUTE)
    netlink.settimeout(_TIMEOUT_SECONDS)
    return netlink


def _links(netlink: socket.socket) -> list[Netdev]:
    return [netdev for body in _dump(netlink, _GET_LINK) if (netdev := link(body)) is not None]


def _dump(netlink: socket.socket, request: int) -> list[bytes]:
    """Returns the bodies of all messages of an answer; one that a change has interrupted is asked for again."""
    body = bytes(_LINK.size)
    for _ in range(_TRIES):
        netlink.send(_HEADER.pack(_HEADER.size + len(body), request, _REQUEST_DUMP, 1, 0) + body)
        found: list[bytes] = []
        is_whole, is_over = True, False
        while not is_over:
            for kind, flags, content in messages(netlink.recv(_RECEIVE_BYTES)):
                is_whole &= not flags & _INTERRUPTED
                is_over |= kind == _DONE
                if kind in (_NEW_LINK, _NEW_ADDRESS):
                    found.append(content)
        if is_whole:
            return found
    raise OSError("the interfaces change too quickly")


def messages(data: bytes) -> Iterator[tuple[int, int, bytes]]:
    """Yields type, flags and content of each message of a datagram. Raises OSError where the kernel refuses."""
    at = 0
    while at + _HEADER.size <= len(data):
        length, kind, flags, _, _ = _HEADER.unpack_from(data, at)
        if length < _HEADER.size or at + length > len(data):
            raise OSError("the kernel's answer is cut off")
        content = data[at + _HEADER.size : at + length]
        if kind == _ERROR:
            number = -struct.unpack_from("=i", content)[0]
            raise OSError(number, os.strerror(number))
        yield kind, flags, content
        at += (length + 3) & ~3


def link(body: bytes) -> Netdev | None:
    """Returns the interface of a message; None: it has no name or no counters."""
    _, link_type, index, _, _ = _LINK.unpack_from(body)
    values = dict(attributes(body[_LINK.size :]))
    if _NAME not in values or len(values.get(_STATS, b"")) < _STATISTICS.size:
        return None
    got_packets, sent_packets, got, sent = _STATISTICS.unpack_from(values[_STATS])
    info = dict(attributes(values.get(_INFO, b"")))
    kind = _text(info.get(_INFO_KIND, b""))
    details = dict(attributes(info.get(_INFO_DATA, b"")))
    mode = details.get(_BOND_MODE) if kind == _BOND else None
    lower = _index(values.get(_LOWER))
    # The other end of a veth pair is no interface below it, and a number of another namespace means nothing here.
    if kind == _VETH or _LOWER_NAMESPACE in values or lower == index:
        lower = None
    return Netdev(
        ifindex=index,
        name=_text(values[_NAME]),
        link_type=link_type,
        kind=kind,
        lower=lower,
        master=_index(values.get(_MASTER)),
        bytes=Count(sent, got),
        packets=Count(sent_packets, got_packets),
        bond_mode=mode[0] if mode else None,
        tunnel=tunnel(kind, details),
    )


def address(body: bytes) -> tuple[bytes, int] | None:
    """Returns an address of this host and the index of its interface; None: the message has no address."""
    *_, index = _ADDRESS.unpack_from(body)
    values = dict(attributes(body[_ADDRESS.size :]))
    # On a link of two ends the first attribute is the other end's address.
    own = values.get(_OWN, values.get(_PEER_OR_OWN))
    return (own, index) if own is not None else None


def _text(raw: bytes) -> str:
    """Returns a name; a character that terminals and logs may not have becomes a question mark."""
    text = raw.rstrip(b"\0").decode(errors="replace")
    return "".join(letter if letter.isprintable() else "?" for letter in text)


def _index(raw: bytes | None) -> int | None:
    """Returns the index in an attribute; None where it names no interface."""
    number = int(_INDEX.unpack(raw)[0]) if raw is not None and len(raw) == _INDEX.size else 0
    return number or None
