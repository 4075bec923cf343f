"""The packet by which a host that enrols tells its switch, and so the controller, at which port it is. Pure.

It is an LLDP frame (IEEE 802.1AB-2016, section 8), which bridges do not forward: it ends at the first switch, and so it
comes in at the host's own port. The system description has 16 random bytes, which only the controller and the host
know, so that nobody else can say where the host is.
"""

from __future__ import annotations

import re
from struct import Struct, error
from typing import NamedTuple

ETH_LLDP = 0x88CC
NEAREST_BRIDGE = bytes.fromhex("0180c200000e")
"""The destination address: the nearest bridge, whichever it is."""
MOST_BYTES = 256
"""An announcement is at most this long, in bytes: its names have 63 characters at most."""
_ETHERNET = Struct("!6s6sH")
_TLV = Struct("!H")
_MARK = b"trainyard "
_SECRET = re.compile(rb"trainyard ([0-9a-f]{32})")
_TTL_SECONDS = 120
_CHASSIS, _PORT, _TTL, _NAME, _DESCRIPTION = 1, 2, 3, 5, 6
_CHASSIS_IS_MAC, _PORT_IS_MAC = b"\x04", b"\x03"


class Announcement(NamedTuple):
    """What a host announces: its MAC address, as ``Mac`` is written, and its secret in hexadecimal."""

    mac: str
    secret: str


def frame_of(announcement: Announcement, name: str) -> bytes:
    """Returns the Ethernet frame, without its checksum. ``name`` is the host's, for people who look at packets."""
    mac = bytes.fromhex(announcement.mac.replace(":", ""))
    values = (
        (_CHASSIS, _CHASSIS_IS_MAC + mac),
        (_PORT, _PORT_IS_MAC + mac),
        (_TTL, _TTL_SECONDS.to_bytes(2, "big")),
        (_NAME, name.encode()),
        (_DESCRIPTION, _MARK + announcement.secret.encode()),
        (0, b""),
    )
    body = b"".join(_TLV.pack(kind << 9 | len(value)) + value for kind, value in values)
    return _ETHERNET.pack(NEAREST_BRIDGE, mac, ETH_LLDP) + body


def parse(frame: bytes) -> Announcement | None:
    """Returns what a frame announces; None for any other frame, also for the LLDP frames of other programs."""
    if not _ETHERNET.size < len(frame) <= MOST_BYTES:
        return None
    _, source, kind = _ETHERNET.unpack_from(frame)
    match = _SECRET.fullmatch(_value_of(_DESCRIPTION, frame)) if kind == ETH_LLDP else None
    return Announcement(source.hex(":"), match[1].decode()) if match is not None else None


def _value_of(wanted: int, frame: bytes) -> bytes:
    """Returns the first value of a type in an LLDP frame; empty where there is none, or where it is cut off."""
    at = _ETHERNET.size
    while True:
        try:
            (head,) = _TLV.unpack_from(frame, at)
        except error:
            return b""
        kind, begin, at = head >> 9, at + _TLV.size, at + _TLV.size + (head & 0x1FF)
        if kind == 0 or at > len(frame):
            return b""
        if kind == wanted:
            return frame[begin:at]
