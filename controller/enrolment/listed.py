"""What the settings give to hosts, links and the controller itself, which no other host may take. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from controller.config.config import Config
from controller.config.hosts import plugs
from controller.enrolment.claims import Claim
from controller.enrolment.record import Site


class Listed(NamedTuple):
    """The hosts of the settings, and what they and others of the settings hold. ``needs_site``: the controller finds
    the paths, so it must know where each host is attached.
    """

    names: frozenset[str]
    holders: Mapping[Claim, str]
    needs_site: bool

    @classmethod
    def of(cls, config: Config) -> Listed:
        """Returns what is listed in the settings."""
        holders = {Claim("address", address): "the controller" for address in config.control_addresses}
        for link in config.links:
            ends = (Site(link.a, link.a_port), Site(link.b, link.b_port))
            holders |= {Claim("port", end): "a link between switches" for end in ends}
        for plug in plugs(config.hosts):
            holders |= {Claim("address", address): plug.label for address in plug.attachment.every_address}
            if plug.attachment.mac is not None:
                holders[Claim("mac", plug.attachment.mac)] = plug.label
            if plug.place is not None:
                holders[Claim("port", Site(*plug.place))] = plug.label
        names = frozenset(host.name for host in config.hosts)
        return cls(names, holders, config.forwarding == "paths")
