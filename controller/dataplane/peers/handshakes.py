"""TLS with switches: the handshake in front of OpenFlow, and the end of connections whose certificate is withdrawn."""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable
from typing import Any

from eventlet.green.ssl import GreenSSLSocket
from ryu.lib import hub

from controller.access.accepted import Judge
from controller.access.certificates import Certificates, TlsContext
from controller.access.reasons import reason
from controller.dataplane.peers.log import PeerLog

LOG = logging.getLogger(__name__)
SECONDS = 5.0
"""A peer that has not completed the handshake within this time is disconnected. Switches take milliseconds."""
MOST_PENDING = 64
"""If this many handshakes are pending, a new one ends the one that has waited longest."""


class Handshakes:
    """Speaks TLS with peers, by the files of ``certificates``. Raises CertificateError.

    ``log`` gets the reason of each handshake that fails.
    """

    def __init__(self, certificates: Certificates, log: PeerLog, *, seconds: float = SECONDS) -> None:
        self._context = TlsContext(certificates, "server")
        self._judge = Judge.read(certificates)
        self._log = log
        self._seconds = seconds
        self._pending: dict[Any, None] = {}
        self._secured: dict[Any, Callable[[str], None]] = {}

    def secure(self, connection: Any, address: str) -> Any | None:
        """Returns the green socket ``connection`` with TLS, after the handshake. Only its caller waits for the peer.

        If the handshake fails, logs why, closes the connection, and returns None.
        """
        self._make_room()
        secured = GreenSSLSocket(
            connection, server_side=True, do_handshake_on_connect=False, _context=self._context.current
        )
        self._pending[secured] = None
        try:
            with hub.Timeout(self._seconds, TimeoutError()):
                secured.do_handshake()
        except TimeoutError:
            problem = f"it has not completed the TLS handshake within {self._seconds:g} s"
        except OSError as error:
            problem = reason(error) if secured in self._pending else "too many TLS handshakes are pending"
        else:
            return secured
        finally:
            self._pending.pop(secured, None)
        secured.close()
        self._log.say(logging.WARNING, address, f"{address} may not connect as a switch: {problem}")
        return None

    def opened(self, secured: Any, refuse: Callable[[str], None]) -> None:
        """Call ``refuse`` with the reason when the certificate of the peer of ``secured`` is withdrawn."""
        self._secured[secured] = refuse

    def closed(self, secured: Any) -> None:
        """Forget a connection."""
        self._secured.pop(secured, None)

    def read_again(self) -> None:
        """Read the files again, and end the open connections that they do not allow; all others stay.

        Raises CertificateError, and then everything stays as it was.
        """
        judge = Judge.read(self._context.certificates)
        self._context.read_again()
        before, self._judge = self._judge, judge
        for secured, refuse in tuple(self._secured.items()):
            objection = judge.objection(secured.getpeercert(binary_form=True), before)
            if objection is not None and secured in self._secured:
                refuse(objection)
            hub.sleep(0)  # a judgement takes a fraction of a millisecond, and there may be a thousand switches

    def _make_room(self) -> None:
        if len(self._pending) >= MOST_PENDING:
            longest = next(iter(self._pending))
            del self._pending[longest]
            # Not through TLS, which would forget the handshake that another green thread is in.
            socket.socket.shutdown(longest, socket.SHUT_RDWR)
