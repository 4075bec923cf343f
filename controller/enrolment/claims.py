"""What a host takes for itself, and who has it already: addresses, MAC addresses, ports of switches. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal, NamedTuple

from controller.enrolment.record import Enrolment, Site

Kind = Literal["address", "mac", "port"]
_WORDS = {"address": "the address", "mac": "the MAC address", "port": ""}


class Claim(NamedTuple):
    """Something that one host alone may have: an IP address, a MAC address, or a port of a switch."""

    kind: Kind
    value: str | Site

    def __str__(self) -> str:
        return f"{_WORDS[self.kind]} {self.value}".strip()


class Clash(NamedTuple):
    """A claim that another has already. ``holder`` is the name of a host, or says in words what has it."""

    claim: Claim
    holder: str

    @property
    def told(self) -> str:
        """The clash in words that name no other host: who asks must not learn who else there is."""
        return f"{self.claim} is taken"

    def __str__(self) -> str:
        return f"{self.claim} is that of {self.holder}"


def claims_of(enrolment: Enrolment) -> Iterator[Claim]:
    """Yields what a host that has asked takes for itself."""
    for address in enrolment.addresses:
        yield Claim("address", address)
    for link in enrolment.links:
        if link.mac is not None:
            yield Claim("mac", link.mac)
        if link.site is not None:
            yield Claim("port", link.site)


def clashes(enrolment: Enrolment, *held: Mapping[Claim, str]) -> list[Clash]:
    """Returns the claims of a host that others have. ``held`` maps claims to holders; its own are none of them."""
    return [
        Clash(claim, holder)
        for claim in claims_of(enrolment)
        for holder in (mapping.get(claim) for mapping in held)
        if holder not in (None, enrolment.name)
    ]
