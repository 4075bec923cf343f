"""The addresses that may connect as a switch."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Collection
from typing import Any


class Admission:
    """Admits the addresses in ``networks``, such as 10.0.0.2 or 10.0.1.0/24; if there are none, all addresses."""

    def __init__(self, networks: Collection[str]) -> None:
        self._networks = _parsed(networks)
        self._open: dict[Any, tuple[str, Callable[[str], None]]] = {}

    def admits(self, address: str) -> bool:
        """Returns whether an address may connect."""
        peer = ipaddress.ip_address(address.partition("%")[0])
        if isinstance(peer, ipaddress.IPv6Address) and peer.ipv4_mapped is not None:
            peer = peer.ipv4_mapped
        return not self._networks or any(peer in network for network in self._networks)

    def opened(self, connection: Any, address: str, refuse: Callable[[str], None]) -> None:
        """Call ``refuse`` with the reason when ``address``, from which ``connection`` comes, is admitted no longer.

        That may be so already: a reload may have come after ``admits`` was asked, and before this.
        """
        self._open[connection] = (address, refuse)
        self._check(address, refuse)

    def closed(self, connection: Any) -> None:
        """Forget a connection."""
        self._open.pop(connection, None)

    def change(self, networks: Collection[str]) -> None:
        """Admit other addresses, and end the connections of those that are admitted no longer."""
        self._networks = _parsed(networks)
        for address, refuse in tuple(self._open.values()):
            self._check(address, refuse)

    def _check(self, address: str, refuse: Callable[[str], None]) -> None:
        if not self.admits(address):
            refuse("openflow.switches does not name its address any more")


def _parsed(networks: Collection[str]) -> list[ipaddress.IPv4Network | ipaddress.IPv6Network]:
    return [ipaddress.ip_network(network) for network in networks]
