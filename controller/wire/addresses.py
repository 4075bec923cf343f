"""What names a place in a network: addresses of hosts, switches and ports, and rates of links."""

from __future__ import annotations

import ipaddress
import re
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field

MAX_DPID = 2**64 - 1
MAX_ADDRESSES = 16
"""Let one interface have this many addresses."""
MAX_SERVER_INTERFACES = 16
"""Let a server have this many interfaces in the network that is ordered."""
INTERFACE_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,14}$"
_MAC = re.compile(r"([0-9a-f]{2}:){5}[0-9a-f]{2}")


def as_dpid(value: object) -> object:
    """Convert a datapath id from hexadecimal text, as Open vSwitch prints it; a number stays as it is."""
    if isinstance(value, str):
        try:
            return int(value.replace(":", ""), 16)
        except ValueError as error:
            raise ValueError(
                f"{value!r} is no datapath id; it is a number or hexadecimal text such as '0000000000000001'"
            ) from error
    return value


def _host_address(address: str) -> str:
    """Check an IPv4 address that one server can have."""
    try:
        parsed = ipaddress.IPv4Address(address)
    except ValueError as error:
        raise ValueError(f"{address!r} is no IPv4 address; it is written like 10.0.0.1") from error
    if parsed.is_unspecified or parsed.is_loopback or parsed.is_multicast or parsed.is_reserved:
        raise ValueError(f"{address} is the address of no single server; it is written like 10.0.0.1")
    return str(parsed)


def _any_address(address: str) -> str:
    """Check an IPv4 or IPv6 address that one interface can have; an IPv6 address is returned in its shortest form."""
    if ":" not in address:
        return _host_address(address)
    try:
        parsed = ipaddress.IPv6Address(address)
    except ValueError as error:
        raise ValueError(f"{address[:60]!r} is no IPv6 address; it is written like fd00::1") from error
    if parsed.is_link_local:
        raise ValueError(f"{address} is valid on one link alone; give the interface's global or unique local address")
    if parsed.ipv4_mapped is not None:
        raise ValueError(f"{address} is an IPv4 address; write {parsed.ipv4_mapped}")
    if parsed.is_unspecified or parsed.is_loopback or parsed.is_multicast:
        raise ValueError(f"{address} is the address of no single server; it is written like fd00::1")
    return str(parsed)


def _mac(text: str) -> str:
    """Check the MAC address of one interface."""
    mac = text.lower()
    if _MAC.fullmatch(mac) is None:
        raise ValueError(f"{text[:40]!r} is no MAC address; it is written like 0c:42:a1:00:00:01")
    if int(mac[:2], 16) & 1 or mac == "00:00:00:00:00:00":
        raise ValueError(f"{mac} is the address of no single interface")
    return mac


HostAddress = Annotated[str, AfterValidator(_host_address)]
AnyAddress = Annotated[str, AfterValidator(_any_address)]
"""The IPv4 or IPv6 address of an interface."""
InterfaceName = Annotated[str, Field(pattern=INTERFACE_PATTERN)]
"""The name of a network interface, such as eth0."""
EndpointName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,62}(/[A-Za-z0-9][A-Za-z0-9_.-]{0,14})?$")]
"""The name of a server, or SERVER/INTERFACE of one of its interfaces."""
Mac = Annotated[str, AfterValidator(_mac)]
"""The MAC address of an interface: six bytes in hexadecimal, in lower case, with colons between them."""
Dpid = Annotated[int, BeforeValidator(as_dpid), Field(ge=1, le=MAX_DPID)]
PortNumber = Annotated[int, Field(ge=1, le=0xFFFFFF00)]
Rate = Annotated[float, Field(ge=1e3, le=1e13)]
"""The rate of a link, in bit/s."""
