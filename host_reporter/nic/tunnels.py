"""What the kernel says of a tunnel's device, as a value. Pure.

The numbers are those of linux/if_link.h and linux/if_tunnel.h. A type of service (TOS) of 1 stands for that of the
packet inside: the bit belongs to ECN, so that no header could have it otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, cast

from host_reporter.nic.netdev import Tunnel, TunnelKind

_INHERIT = 1


class _Numbers(NamedTuple):
    """The attributes of a kind that have its type of service, its UDP port, and who makes each packet's header."""

    tos: int
    udp_port: int | None
    by_packet: int


_KINDS: Mapping[str, _Numbers] = {
    "vxlan": _Numbers(tos=6, udp_port=15, by_packet=25),
    "geneve": _Numbers(tos=4, udp_port=5, by_packet=6),
    "ipip": _Numbers(tos=5, udp_port=None, by_packet=19),
}


def tunnel(kind: str, details: Mapping[int, bytes]) -> Tunnel | None:
    """Returns how a device makes outer headers, by its kind's attributes; None: it is no tunnel of a known kind."""
    numbers = _KINDS.get(kind)
    if numbers is None:
        return None
    port = 0
    if numbers.udp_port is not None and not (port := int.from_bytes(details.get(numbers.udp_port, b""), "big")):
        return None
    return Tunnel(
        cast(TunnelKind, kind),
        port,
        inherits=details.get(numbers.tos, b"")[:1] == bytes([_INHERIT]),
        # The kernel gives VXLAN's as one byte, and those of the others without a value.
        is_by_packet=numbers.by_packet in details and details[numbers.by_packet] != bytes(1),
    )
