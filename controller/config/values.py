"""The types of values in the settings: addresses, datapath ids, ports, rates. Each refuses wrong values."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from controller.documents.explained_model import ExplainedModel
from controller.wire.addresses import MAX_DPID, as_dpid


class Section(ExplainedModel):
    """Base of every part of the settings: immutable, no unknown keys, no silent type changes."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, strict=True)


def is_loopback(host: str) -> bool:
    """Returns whether ``host`` names this machine only."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def socket_name(host: str, port: int) -> str:
    """Returns an address and its port as URLs have them: an IPv6 address stands in brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def as_section(value: object) -> object:
    """Give an empty section its defaults; raises ValueError for a value that is no section."""
    if value is None:
        return {}
    if not isinstance(value, Mapping | BaseModel):
        raise ValueError("it must be a mapping of settings, or be left out")
    return value


def as_optional_section(value: object) -> object:
    """Check that a section is left out or is one; raises ValueError for a value that is no section."""
    return None if value is None else as_section(value)


ENROL = "enrol"
"""Stands in the place of the list of hosts where all hosts enrol."""


def as_hosts(value: object) -> object:
    """Check that the hosts are a list; raises ValueError for a word. ``ENROL`` has become an empty list before."""
    if isinstance(value, str):
        raise ValueError(f"{value[:40]!r} is no list of hosts; give a list, or the word {ENROL}")
    return value


_DATABASE = re.compile(r"(ssl|tcp|unix):\S+")
"""``pssl:`` and ``ptcp:`` are left out because then the switch would connect."""


def as_databases(value: object) -> object:
    """Check the address of the switches' database, or a map with each switch's own."""
    if isinstance(value, Mapping):
        if not value:
            raise ValueError("it names no switch; give an address, or one for each switch: {1: tcp:10.0.0.1:6640}")
        addresses: dict[object, str] = {}
        for key, address in value.items():
            dpid = as_dpid(key)
            if not isinstance(dpid, int) or not 1 <= dpid <= MAX_DPID:
                raise ValueError(f"{key!r} is no datapath id; it is from 1 to {MAX_DPID:x}, in hexadecimal")
            if dpid in addresses:
                raise ValueError(f"switch {dpid:#x} is named twice; each has one database")
            addresses[dpid] = _database(address)
        return addresses
    return _database(value)


def _database(address: object) -> str:
    if not isinstance(address, str) or not _DATABASE.fullmatch(address):
        raise ValueError(
            f"{str(address)[:40]!r} is no address of a database; it is written like tcp:10.0.0.1:6640, "
            "ssl:10.0.0.1:6640 or unix:/var/run/openvswitch/db.sock"
        )
    return address


_LABEL = r"[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_HOST_NAME = re.compile(rf"(?=.{{1,253}}$){_LABEL}(\.{_LABEL})*")


def _listening(host: str) -> str:
    """Check an address or a name to listen at. Only the start shows whether it is this machine's."""
    try:
        return str(ipaddress.ip_address(host))
    except ValueError:
        looks_numeric = re.fullmatch(r"[0-9.]+", host) is not None
        if looks_numeric or not _HOST_NAME.fullmatch(host):
            raise ValueError(f"{host!r} is no address and no host's name; 127.0.0.1, or 0.0.0.0 for all") from None
        return host


def _network(text: str) -> str:
    """Check the addresses of switches: one address, or a network."""
    try:
        return str(ipaddress.ip_network(text, strict=False))
    except ValueError as error:
        raise ValueError(f"{text!r} is no address or network; it is written like 10.0.0.7 or 10.0.0.0/24") from error


Listening = Annotated[str, AfterValidator(_listening)]
AddressRange = Annotated[str, AfterValidator(_network)]
TcpPort = Annotated[int, Field(ge=0, le=65535)]
Share = Annotated[float, Field(gt=0, lt=1)]
