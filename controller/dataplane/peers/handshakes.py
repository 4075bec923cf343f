"""TLS with switches: the handshake in front of OpenFlow, and the end of connections whose certificate is withdrawn."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import eventlet
from eventlet.green.ssl import GreenSSLSocket
from ryu.lib import hub

from controller.access.certificates.accepted import Judge
from controller.access.certificates.contexts import Certificates, TlsContext
from controller.access.certificates.reasons import reason
from controller.dataplane.peers.log import PeerLog
from controller.lingering import linger

LOG = logging.getLogger(__name__)
SECONDS = 5.0
"""A peer that has not completed the handshake within this time is disconnected. Switches take milliseconds."""
MOST_PENDING = 64
"""If this many handshakes are pending, a new one ends the one that has waited longest."""


class _CrowdedError(Exception):
    """A handshake is ended in favour of a newer one."""


class Handshakes:
    """Speaks TLS with peers, by the files of ``certificates``. Raises CertificateError.

    ``log`` gets the reason of each handshake that fails.
    """

    def __init__(self, certificates: Certificates, log: PeerLog, *, seconds: float = SECONDS) -> None:
        self._context = TlsContext(certificates, "server")
        self._judge = Judge.read(certificates.authority, certificates.revoked)
        self._log = log
        self._seconds = seconds
        self._pending: dict[Any, None] = {}
        """The green threads that are in a handshake, in the order in which they began."""
        self._secured: dict[Any, tuple[bytes, Callable[[str], None]]] = {}
        """The certificate (DER) of each open connection, and what ends it. A socket that is shut tells none."""

    def secure(self, connection: Any, address: str) -> Any | None:
        """Returns the green socket ``connection`` with TLS, after the handshake. Only its caller waits for the peer.

        If the handshake fails, logs why, closes the connection, and returns None.
        """
        context, judge, thread = self._context.current, self._judge, eventlet.getcurrent()
        secured = GreenSSLSocket(connection, server_side=True, do_handshake_on_connect=False, _context=context)
        problem: str | None = None
        is_told = False
        try:
            self._pending[thread] = None
            self._end_longest()
            with hub.Timeout(self._seconds, TimeoutError()):
                secured.do_handshake()
            if judge is not self._judge:  # the certificates were read again meanwhile
                problem = self._judge.objection(secured.getpeercert(binary_form=True), judge)
        except TimeoutError:
            problem = f"it has not completed the TLS handshake within {self._seconds:g} s"
        except _CrowdedError:
            problem = "too many TLS handshakes are pending"
        except OSError as error:
            problem, is_told = reason(error), True
        finally:
            self._pending.pop(thread, None)
        if problem is None:
            return secured
        self._log.say(logging.WARNING, address, f"{address} may not connect as a switch: {problem}")
        if is_told:
            linger(secured)
        secured.close()
        return None

    def opened(self, secured: Any, refuse: Callable[[str], None]) -> None:
        """Call ``refuse`` with the reason when the certificate of the peer of ``secured`` is withdrawn."""
        self._secured[secured] = (secured.getpeercert(binary_form=True), refuse)

    def closed(self, secured: Any) -> None:
        """Forget a connection."""
        self._secured.pop(secured, None)

    def prepare(self, certificates: Certificates) -> Callable[[], None]:
        """Returns what makes the files, as they are now, count.

        New connections use them. Open ones that they do not allow are ended, and all others stay. Raises
        CertificateError, and then nothing changes.
        """
        judge, use_files = Judge.read(certificates.authority, certificates.revoked), self._context.prepare(certificates)

        def use() -> None:
            use_files()
            before, self._judge = self._judge, judge
            eventlet.spawn(self._end_refused, judge, before)

        return use

    def _end_refused(self, judge: Judge, before: Judge) -> None:
        for secured, (certificate, refuse) in tuple(self._secured.items()):
            objection = judge.objection(certificate, before)
            if objection is not None and secured in self._secured:
                refuse(objection)
            hub.sleep(0)  # a judgement takes a fraction of a millisecond, and there may be a thousand switches

    def _end_longest(self) -> None:
        if len(self._pending) > MOST_PENDING:
            longest = next(iter(self._pending))
            del self._pending[longest]
            eventlet.kill(longest, _CrowdedError())
