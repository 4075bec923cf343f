"""The section of the settings on hosts that enrol."""

from __future__ import annotations

import ipaddress
from typing import Annotated, Literal

from pydantic import Field

from controller.config.values import AddressRange, Section


class EnrolmentSettings(Section):
    """How hosts that are not in the list are added. An agent with a token of the role enrol asks, and an operator
    decides."""

    approve: Literal["by-hand", "at-once"] = "by-hand"
    """Who decides. by-hand: an operator. at-once: nobody, for a host whose request comes from the address that it
    names, and that asks for nothing that another host has or asks for. Whoever has the enrolment token and an address
    of networks can then add hosts."""
    networks: Annotated[tuple[AddressRange, ...], Field(strict=False, max_length=64)] = ()
    """The addresses and networks that a host may ask for, such as 10.0.0.0/16. Without any, a host may ask for every
    address that no other host has. Addresses of its further interfaces, and IPv6 addresses, are left out where they are
    in none."""
    most_waiting: Annotated[int, Field(ge=1, le=100_000)] = 4096
    """How many hosts may wait for a decision, or be remembered as refused."""
    most_waiting_per_address: Annotated[int, Field(ge=1, le=100_000)] = 32
    """How many of them may have asked from one IP address; of IPv6, from one network of 64 bits. It is to be raised
    where agents reach the controller through an address translation, or where more hosts than this share an IPv6
    network."""

    def allows(self, address: str) -> bool:
        """Returns whether a host may ask for this address."""
        wanted = ipaddress.ip_address(address)
        return not self.networks or any(wanted in ipaddress.ip_network(network) for network in self.networks)
