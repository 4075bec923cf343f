"""IP addresses of both families: four bytes of IPv4 or sixteen of IPv6, and as people write them. Pure."""

from __future__ import annotations

import socket
from functools import lru_cache

IPV4_BYTES = 4
_LOOPBACK_NETWORK = 127
_LOOPBACK = bytes(15) + b"\1"


def packed(text: str) -> bytes | None:
    """Returns an address in bytes; None where the text is no address."""
    try:
        return socket.inet_pton(socket.AF_INET6 if ":" in text else socket.AF_INET, text)
    except (OSError, ValueError):
        return None


@lru_cache(maxsize=65536)
def text_of(address: bytes) -> str:
    """Returns an address as people write it, one of IPv6 as RFC 5952 recommends."""
    return socket.inet_ntop(socket.AF_INET if is_ipv4(address) else socket.AF_INET6, address)


def is_ipv4(address: bytes) -> bool:
    """Returns whether it is an address of IPv4."""
    return len(address) == IPV4_BYTES


def is_loopback(address: bytes) -> bool:
    """Returns whether packets to it never leave the host."""
    return address[0] == _LOOPBACK_NETWORK if is_ipv4(address) else address == _LOOPBACK
