"""What differs between marking packets of IPv4 and of IPv6."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

_LINK_SCOPE, _HOST_SCOPE = 0x20, 0x10
_SCOPE_AT = 3
_ADDRESSES = Path("/proc/thread-self/net/if_inet6")
"""This file has a line for each IPv6 address of the network namespace; a kernel without IPv6 has no such file."""

Reach = Literal["nothing", "link", "network"]
"""How far a host's addresses of a family reach: not out of the host, its own link, or further."""


@dataclass(frozen=True, slots=True)
class Family:
    """An address family. ``name`` is for people.

    ``tool`` begins the names of its iptables commands, and ``nft`` names it for nft. The file ``legacy_tables`` lists
    its tables of the legacy variant that exist; a command on another table would create it. ``most_headers`` are the
    bytes of an IP header and the longest TCP header (60, RFC 9293, section 3.1). ``is_ipv6``: it is IPv6.
    """

    name: str
    tool: str
    nft: str
    legacy_tables: Path
    most_headers: int
    is_ipv6: bool = False

    def variant(self, of_ipv4: str) -> str:
        """Returns the name of this family's variant of the tool, such as ip6tables-legacy for iptables-legacy."""
        return self.tool + of_ipv4.removeprefix(IPV4.tool)

    @property
    def word(self) -> str:
        """What goes before "traffic" or "marks" in a message, which is about IPv4 where nothing else is said."""
        return f"{self.name} " if self.is_ipv6 else ""


IPV4 = Family("IPv4", "iptables", "ip", Path("/proc/thread-self/net/ip_tables_names"), 80)
IPV6 = Family("IPv6", "ip6tables", "ip6", Path("/proc/thread-self/net/ip6_tables_names"), 100, is_ipv6=True)


def family_of(variant: str) -> Family:
    """Returns the family that a variant of the tool marks."""
    return IPV6 if variant.startswith(IPV6.tool) else IPV4


def ipv6_reach(addresses: Path = _ADDRESSES) -> Reach:
    """Returns how far the IPv6 addresses of this network namespace reach."""
    try:
        lines = addresses.read_text(encoding="ascii").splitlines()
    except OSError:
        return "nothing"
    scopes = {int(line.split()[_SCOPE_AT], 16) for line in lines} - {_HOST_SCOPE}
    if not scopes:
        return "nothing"
    return "link" if scopes == {_LINK_SCOPE} else "network"
