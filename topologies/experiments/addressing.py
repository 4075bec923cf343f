"""The addresses of hosts on the measured network: of IPv4, of IPv6 or of both, and in a subnet for each rail. Pure.

Host hN has the address N of each subnet. On the first rail these are 10.0.0.N and fd00::N, on the second 10.1.0.N and
fd00:0:0:1::N, and so on. The addresses of IPv6 are unique local ones (RFC 4193).
"""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address
from typing import Literal

Families = Literal["ipv4", "ipv6", "both"]
"""The families of a network's addresses."""

Subnet = IPv4Address | IPv6Address
"""A subnet is written as its first address."""

MOST_RAILS = 8
"""A host has at most this many interfaces: a GPU server has as many as GPUs."""

_IPV4, _IPV6 = IPv4Address("10.0.0.0"), IPv6Address("fd00::")
_IPV4_RAIL, _IPV6_RAIL = 1 << 16, 1 << 64
_PREFIX_BITS = {4: 24, 6: 64}


def subnets(families: Families, rail: int) -> tuple[Subnet, ...]:
    """Returns the subnets of a rail, that of IPv4 first."""
    ipv4, ipv6 = _IPV4 + rail * _IPV4_RAIL, _IPV6 + rail * _IPV6_RAIL
    chosen: dict[Families, tuple[Subnet, ...]] = {"ipv4": (ipv4,), "ipv6": (ipv6,), "both": (ipv4, ipv6)}
    return chosen[families]


def of_host(families: Families, number: int, rail: int = 0) -> tuple[str, ...]:
    """Returns the addresses of a host's interface on a rail, that of IPv4 first."""
    return tuple(str(subnet + number) for subnet in subnets(families, rail))


def with_prefix(address: str) -> str:
    """Returns an address with the length of its subnet's prefix, as ``ip addr add`` takes it."""
    return f"{address}/{_PREFIX_BITS[6 if ':' in address else 4]}"


def of_job(families: Families, rails: int, job: int) -> tuple[Subnet, ...]:
    """Returns the subnet on each rail over which a job sends; ``job`` is its number in the experiment.

    With both families jobs take turns, so that traffic of both competes for the links.
    """
    return tuple(found[job % len(found)] for found in (subnets(families, rail) for rail in range(rails)))
