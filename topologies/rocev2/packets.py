"""Packets of RoCEv2 as they are on the wire: the base transport header, data, and the invariant CRC. Pure.

The formats are those of the InfiniBand architecture, volume 1, chapter 9, and its annex A17 (RoCEv2).
"""

from __future__ import annotations

import struct
import zlib
from ipaddress import IPv4Address, IPv6Address
from typing import NamedTuple

from controller.model import ROCEV2_PORT

HEADER_BYTES = 12
"""The base transport header has this many bytes."""
CRC_BYTES = 4
_NUMBER_MASK = 2**24 - 1
"""The numbers of queue pairs, and of packets, have 24 bits."""

_WRITE_MIDDLE = 0x07
"""The opcode of data within an RDMA WRITE over a reliable connection. Such a packet has no further header."""
_DEFAULT_PARTITION = 0xFFFF
_UDP = 17
_UDP_BYTES = 8
_DO_NOT_FRAGMENT = 0x4000
_NO_LOCAL_HEADER = b"\xff" * 8
"""The invariant CRC covers this in the place of the local route header, which RoCEv2 does not have."""
_MASKED = 0xFF

Address = IPv4Address | IPv6Address


class Ends(NamedTuple):
    """Who sends a packet to whom: addresses of one family, and UDP ports."""

    src: Address
    dst: Address
    src_port: int
    dst_port: int = ROCEV2_PORT


def base_header(queue_pair: int, number: int) -> bytes:
    """Returns the base transport header of a packet to a queue pair. Packets are numbered modulo 2**24."""
    return struct.pack("!BBHII", _WRITE_MIDDLE, 0, _DEFAULT_PARTITION, queue_pair & _NUMBER_MASK, number & _NUMBER_MASK)


def number_of(datagram: bytes) -> int:
    """Returns the number of the packet in a UDP datagram of RoCEv2."""
    return int.from_bytes(datagram[9:HEADER_BYTES], "big")


def invariant_crc(ends: Ends, content: bytes) -> bytes:
    """Returns the CRC of a datagram, whose ``content`` is the base transport header and the data.

    It covers all that stays the same on the way: not the traffic class, hop limit, checksums and notice of congestion.
    The packet has no options, no identification, and may not be fragmented, as Linux sends it over IPv4 by a socket
    without a peer.
    """
    udp_bytes = _UDP_BYTES + len(content) + CRC_BYTES
    udp = struct.pack("!HHHH", ends.src_port, ends.dst_port, udp_bytes, 0xFFFF)
    # The reserved byte before the queue pair has the notices of congestion.
    header = content[:4] + bytes((_MASKED,)) + content[5:HEADER_BYTES]
    covered = (_NO_LOCAL_HEADER, _ip_header(ends, udp_bytes), udp, header, content[HEADER_BYTES:])
    return struct.pack("<I", zlib.crc32(b"".join(covered)))


def datagram(ends: Ends, queue_pair: int, number: int, data: bytes) -> bytes:
    """Returns the content of a UDP datagram of RoCEv2."""
    content = base_header(queue_pair, number) + data
    return content + invariant_crc(ends, content)


def is_whole(ends: Ends, received: bytes) -> bool:
    """Returns whether a received datagram has the CRC of its content."""
    content, crc = received[:-CRC_BYTES], received[-CRC_BYTES:]
    return len(received) >= HEADER_BYTES + CRC_BYTES and invariant_crc(ends, content) == crc


def _ip_header(ends: Ends, udp_bytes: int) -> bytes:
    """Returns the IP header with ones in the place of what may change on the way."""
    src, dst = ends.src, ends.dst
    if src.version == 4:
        first = (0x45, _MASKED, 20 + udp_bytes, 0, _DO_NOT_FRAGMENT, _MASKED, _UDP, 0xFFFF)
        return struct.pack("!BBHHHBBH", *first) + src.packed + dst.packed
    return struct.pack("!IHBB", 0x6FFFFFFF, udp_bytes, _UDP, _MASKED) + src.packed + dst.packed
