"""Which addresses count as one client. Pure."""

from __future__ import annotations

import ipaddress


def network_of(address: str) -> str:
    """Returns what counts as one address: an IPv4 address, also one that is written as IPv6, or the /64 of another."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return address
    if isinstance(parsed, ipaddress.IPv4Address):
        return str(parsed)
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return str(ipaddress.ip_network((int(parsed) >> 64 << 64, 64)))
