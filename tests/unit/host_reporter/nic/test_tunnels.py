"""The devices of tunnels, as the kernel describes them."""

from __future__ import annotations

import struct

import pytest

from host_reporter.nic import netdev_list
from host_reporter.nic.netdev import Netdev, Tunnel

INHERIT = b"\1"


def attribute(number: int, content: bytes) -> bytes:
    return struct.pack("=HH", 4 + len(content), number) + content + bytes(-len(content) % 4)


def device(kind: str, **details: bytes) -> Netdev | None:
    """Returns what is read of a device; ``details`` are its kind's attributes by number."""
    data = b"".join(attribute(int(number.removeprefix("of_")), content) for number, content in details.items())
    info = attribute(18, attribute(1, kind.encode() + b"\0") + attribute(2, data))
    head = struct.pack("=BxHiII", 0, 1, 5, 0, 0) + attribute(3, b"tunnel0\0")
    return netdev_list.link(head + info + attribute(23, bytes(32)))


@pytest.mark.parametrize(
    ("kind", "details", "expected"),
    [
        ("vxlan", {"of_15": b"\x12\xb5", "of_6": INHERIT, "of_25": b"\0"}, Tunnel("vxlan", 4789, inherits=True)),
        ("vxlan", {"of_15": b"\x21\x18", "of_6": b"\xb8", "of_25": b"\1"}, Tunnel("vxlan", 8472, is_by_packet=True)),
        ("vxlan", {"of_6": INHERIT}, None),
        ("geneve", {"of_5": b"\x17\xc1", "of_4": b"\0"}, Tunnel("geneve", 6081)),
        ("geneve", {"of_5": b"\x17\xc1", "of_4": INHERIT, "of_6": b""}, Tunnel("geneve", 6081, True, True)),
        ("ipip", {"of_5": INHERIT}, Tunnel("ipip", 0, inherits=True)),
        ("ipip", {}, Tunnel("ipip")),
        ("wireguard", {"of_5": INHERIT}, None),
        ("bridge", {"of_15": b"\x12\xb5"}, None),
    ],
)
def test_a_tunnels_port_and_its_type_of_service_are_in_the_kernels_description(
    kind: str, details: dict[str, bytes], expected: Tunnel | None
) -> None:
    read = device(kind, **details)
    assert read is not None
    assert read.tunnel == expected
