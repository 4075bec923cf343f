"""Who may connect as a switch. OpenFlow without TLS knows no passwords: the address is all that there is to go by."""

from __future__ import annotations

import ipaddress
import logging
from collections.abc import Callable, Collection
from functools import partial
from typing import Any

from ryu.base import app_manager  # noqa: F401 - Ryu's modules import each other in a ring, which begins here
from ryu.controller import controller as ryu_controller
from ryu.lib import hub

from controller.accepting import Acceptor

LOG = logging.getLogger(__name__)
MAX_TOLD = 1000
"""Refused addresses that are remembered, so that each is logged once."""


def install(switches: Collection[str], connections: int) -> None:
    """Have Ryu listen for switches through a ``Listener``.

    ``switches``: the addresses and networks that may connect; none: any. ``connections``: how many at a time, at most.
    """
    # Ryu makes its server by this name, and has no other place to say no before it speaks OpenFlow with a peer.
    ryu_controller.StreamServer = partial(Listener, admits=admission(switches), connections=connections)


def admission(switches: Collection[str]) -> Callable[[str], bool]:
    """Whether an address may connect as a switch."""
    networks = [ipaddress.ip_network(each) for each in switches]

    def admits(address: str) -> bool:
        found = ipaddress.ip_address(address.partition("%")[0])
        if isinstance(found, ipaddress.IPv6Address) and found.ipv4_mapped is not None:
            found = found.ipv4_mapped
        return not networks or any(found in network for network in networks)

    return admits


class Listener(hub.StreamServer):
    """Ryu's server for switches, which takes only those that may connect, and which nothing ends."""

    def __init__(self, *args: Any, admits: Callable[[str], bool], connections: int, **options: Any) -> None:
        super().__init__(*args, **options)
        self._admits = admits
        self._most = connections
        self._open = 0
        self._told: set[str] = set()

    def serve_forever(self) -> None:
        """Take connections until the green thread is killed."""
        acceptor = Acceptor(self.server, "the OpenFlow port")
        while True:
            connection, address = acceptor.accept()
            problem = self._problem(address[0])
            if problem is not None:
                self._say(address[0], problem)
                connection.close()
                continue
            self._open += 1
            hub.spawn(self._serve, connection, address)

    def _serve(self, connection: Any, address: Any) -> None:
        try:
            self.handle(connection, address)
        finally:
            self._open -= 1

    def _problem(self, address: str) -> str | None:
        if not self._admits(address):
            return "openflow.switches does not name it"
        if self._open >= self._most:
            return f"there are {self._most} connections already, which is the most"
        return None

    def _say(self, address: str, problem: str) -> None:
        if address not in self._told and len(self._told) < MAX_TOLD:
            self._told.add(address)
            LOG.warning("%s may not connect as a switch: %s", address, problem)
