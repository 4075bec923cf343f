"""Who may connect as a switch: the address decides, and with TLS the certificate."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from functools import partial
from typing import Any, NamedTuple

from ryu.base import app_manager  # Ryu's modules import each other in a cycle, which must begin here
from ryu.controller import controller as ryu_controller
from ryu.controller import ofp_event
from ryu.lib import hub

from controller.accepting import Acceptor
from controller.access.certificates.contexts import Certificates
from controller.dataplane.peers import flow_stats
from controller.dataplane.peers.admission import Admission
from controller.dataplane.peers.checked_socket import HANDSHAKE_SECONDS, CheckedSocket
from controller.dataplane.peers.handshakes import Handshakes
from controller.dataplane.peers.log import PeerLog

LOG = logging.getLogger(__name__)


class Peers(NamedTuple):
    """What decides on the peers of a listener: their addresses, and with TLS their certificates."""

    admission: Admission
    handshakes: Handshakes | None


def install(switches: Collection[str], connections: int, certificates: Certificates | None = None) -> Peers:
    """Have Ryu listen for switches through a ``Listener``.

    ``switches`` are the addresses and networks that may connect; if empty, all may. At most ``connections`` are open
    at a time. With ``certificates`` they speak TLS. The result can be changed while it listens. Raises
    CertificateError.
    """
    log = PeerLog(LOG)
    peers = Peers(Admission(switches), Handshakes(certificates, log) if certificates is not None else None)
    # Ryu creates its server by this name, and has no other hook to refuse a peer before it speaks OpenFlow. Its own
    # options for TLS know no list of revoked certificates, set no limit to a handshake, and are read once.
    flow_stats.install()
    ryu_controller.StreamServer = partial(Listener, peers=peers, connections=connections, log=log)
    return peers


class Listener(hub.StreamServer):
    """Ryu's server for switches. It accepts only permitted peers, hands on only checked messages, and never ends.

    If the limit of connections is reached, the connection that has waited longest to become a switch is closed.
    """

    def __init__(
        self,
        address: Any,
        handle: Callable[[Any, Any], None],
        *,
        peers: Peers,
        connections: int,
        log: PeerLog | None = None,
        **options: Any,
    ) -> None:
        super().__init__(address, partial(self._handle_checked, handle), **options)
        self._admission = peers.admission
        self._most = connections
        self._open = 0
        self._unknown: dict[CheckedSocket, None] = {}
        self._handshakes = peers.handshakes
        self._log = log if log is not None else PeerLog(LOG)
        _remove_ryu_error_handler()

    def serve_forever(self) -> None:
        """Accept connections until the green thread is killed."""
        acceptor = Acceptor(self.server, "the OpenFlow port")
        while True:
            connection, address = acceptor.accept()
            problem = self._problem(address[0])
            if problem is not None:
                text = f"{address[0]} may not connect as a switch: {problem}"
                self._log.say(logging.WARNING, address[0], text)
                connection.close()
                continue
            self._open += 1
            hub.spawn(self._serve, connection, address)

    def _serve(self, connection: Any, address: Any) -> None:
        try:
            connection.settimeout(HANDSHAKE_SECONDS)
            secured = self._handshakes.secure(connection, address[0]) if self._handshakes is not None else connection
            if secured is not None:
                connection = secured
                self.handle(connection, address)
        except Exception as error:  # an error that a peer causes in Ryu ends only this connection, with one log line
            text = f"the OpenFlow connection from {address[0]} is ended: {type(error).__name__}: {error}"
            self._log.say(logging.WARNING, address[0], text)
        finally:
            connection.close()
            self._open -= 1

    def _handle_checked(self, handle: Callable[[Any, Any], None], connection: Any, address: Any) -> None:
        """Let Ryu ``handle`` a connection as long as its peer keeps the rules."""
        checked = CheckedSocket(connection, address[0], self._log, lambda: self._unknown.pop(checked, None))
        self._unknown[checked] = None
        self._admission.opened(connection, address[0], checked.refuse)
        if self._handshakes is not None:
            self._handshakes.opened(connection, checked.refuse)
        try:
            handle(checked, address)
        finally:
            self._admission.closed(connection)
            if self._handshakes is not None:
                self._handshakes.closed(connection)
            self._unknown.pop(checked, None)
            checked.close()

    def _problem(self, address: str) -> str | None:
        if not self._admission.admits(address):
            return "openflow.switches does not name it"
        if self._open < self._most:
            return None
        if not self._unknown:
            return f"there are {self._most} connections already, which is the most"
        longest = next(iter(self._unknown))
        del self._unknown[longest]
        longest.refuse("it has not become a switch, and there are too many connections")
        return None


def _remove_ryu_error_handler() -> None:
    """Remove Ryu's own handler of error messages.

    It only logs for debugging, takes half a millisecond for each message, and raises at some messages.
    """
    brick = app_manager.lookup_service_brick(ofp_event.NAME)
    for handler in list(brick.event_handlers.get(ofp_event.EventOFPErrorMsg, ()) if brick is not None else ()):
        brick.unregister_handler(ofp_event.EventOFPErrorMsg, handler)
