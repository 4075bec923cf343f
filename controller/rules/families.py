"""The addresses of hosts, as rules match them: both families of IP, and MAC addresses. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv6Address

from controller.model import Host
from controller.rules.rule import ETH_IPV4, ETH_IPV6, Match

ANY = Match()


def addresses(host: Host) -> tuple[str, ...]:
    """Returns the IP addresses of a host, of both families; empty where none is known."""
    return host.addresses


def ends(host: Host) -> tuple[str, ...]:
    """Returns all by which a switch can know a host: its IP addresses, and its MAC address where that is known."""
    return addresses(host) if host.mac is None else (*addresses(host), host.mac)


def is_mac(end: str) -> bool:
    """Returns whether one of ``ends`` is a MAC address. An address of IPv6 with five colons has two side by side."""
    return end.count(":") == 5 and "::" not in end


def link_local(mac: str) -> str:
    """Returns the link-local IPv6 address that an interface makes of its MAC address (RFC 4291, appendix A)."""
    first, *rest = bytes.fromhex(mac.replace(":", ""))
    end = bytes((first ^ 0x02, *rest[:2], 0xFF, 0xFE, *rest[2:]))
    return str(IPv6Address(b"\xfe\x80" + bytes(6) + end))


def is_ipv6(address: str) -> bool:
    """Returns whether an address is one of IPv6."""
    return ":" in address


def eth_type(address: str) -> int:
    """Returns the type of the Ethernet frames that carry packets to this address."""
    return ETH_IPV6 if is_ipv6(address) else ETH_IPV4


def pairs(src: Host, dst: Host) -> Iterator[tuple[str, str]]:
    """Yields the addresses between which packets from ``src`` to ``dst`` can go: both are of one family."""
    for source in addresses(src):
        for destination in addresses(dst):
            if is_ipv6(source) is is_ipv6(destination):
                yield source, destination


def from_address(address: str, match: Match = ANY) -> Match:
    """Returns ``match`` for packets from this address."""
    if is_ipv6(address):
        return match._replace(eth_type=ETH_IPV6, ipv6_src=address)
    return match._replace(eth_type=ETH_IPV4, ipv4_src=address)


def to_address(address: str, match: Match = ANY) -> Match:
    """Returns ``match`` for packets to this address."""
    if is_ipv6(address):
        return match._replace(eth_type=ETH_IPV6, ipv6_dst=address)
    return match._replace(eth_type=ETH_IPV4, ipv4_dst=address)


def from_end(end: str, match: Match = ANY) -> Match:
    """Returns ``match`` for packets from a host that is known by one of its ``ends``."""
    return match._replace(eth_src=end) if is_mac(end) else from_address(end, match)


def to_end(end: str, match: Match = ANY) -> Match:
    """Returns ``match`` for packets to a host that is known by one of its ``ends``."""
    return match._replace(eth_dst=end) if is_mac(end) else to_address(end, match)
