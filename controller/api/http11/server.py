"""Ryu's WSGI server with TLS, and with a listener that only ``close`` ends."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from http import HTTPStatus
from typing import Any, NamedTuple

import eventlet
import eventlet.wsgi
from eventlet.green import ssl
from eventlet.greenio import shutdown_safe
from ryu.app import wsgi

from controller.accepting import PAUSE_SECONDS, Acceptor
from controller.access.certificates.accepted import Judge
from controller.access.certificates.contexts import CertificateError, load_own, load_revoked, load_trusted, restrict
from controller.api.http11.connection import IDLE_SECONDS, SOCKET_SECONDS, Protocol
from controller.api.http11.gate import Gate
from controller.api.http11.open_connections import OpenConnections, State
from controller.config.config import Api
from controller.config.values import socket_name
from controller.lingering import linger

LOG = logging.getLogger("trainyard.api")
HANDSHAKE_SECONDS = 5.0
MAX_CONNECTIONS = 4096
SAY_AGAIN_SECONDS = 60.0
"""Log that there are too many connections at most this often."""
REFUSAL_SECONDS = 0.5
"""Limits the wait for the answers to the requests that a stop refuses."""


class _Shown(NamedTuple):
    """The certificate (DER) that a client has shown on a connection. A socket that its peer has left does not tell."""

    certificate: bytes
    state: State


class ServerError(RuntimeError):
    """The API cannot listen. The message says where and why."""


class ApiServer(wsgi.WSGIServer):
    """Listens at the address in ``api``, and serves when it is called. ``connections`` limits the open connections.

    ``is_monitoring``: it listens at the address for monitoring, without TLS, and not at that of the API. ``refused``
    is called with the status of each answer that the application did not give. Raises ServerError.
    """

    def __init__(
        self,
        application: Any,
        api: Api,
        connections: int = MAX_CONNECTIONS,
        refused: Callable[[HTTPStatus], object] | None = None,
        *,
        is_monitoring: bool = False,
    ) -> None:
        host, port = (api.metrics_host, api.metrics_port) if is_monitoring else (api.host, api.port)
        wsgi.CONF.set_override("wsapi_host", host)
        wsgi.CONF.set_override("wsapi_port", port)
        self._name = "the address for monitoring" if is_monitoring else "the API"
        self._context: Any = None if is_monitoring else server_context(api)
        self._judge = None if is_monitoring else _client_judge(api)
        self._certified: dict[Any, _Shown] = {}
        """The open connections whose clients have shown certificates."""
        self._connections = min(connections, MAX_CONNECTIONS)
        self._open = OpenConnections()
        self._say_after = 0.0
        self._refused = refused if refused is not None else _ignore
        self._gate = Gate(application)
        self._accepting: Any = None
        try:
            super().__init__(self._gate)
        except OSError as error:
            names = "api.metrics_host and api.metrics_port" if is_monitoring else "api.host and api.port"
            raise ServerError(
                f"{self._name} cannot listen on {socket_name(host, port or 0)}: {error.strerror}; "
                f"set {names} to what is free"
            ) from error
        self.address: tuple[str, int] = self.server.getsockname()[:2]

    def serve_forever(self) -> None:
        """Serve until ``close``, or until the green thread is killed. No fault of a connection ends it.

        ``eventlet.wsgi.server`` would end if a connection is reset before it is accepted, or if the process has no file
        descriptor left.
        """
        if self._gate.is_closed():
            return
        self._accepting = eventlet.getcurrent()
        scheme = "https" if self._context is not None else "http"
        LOG.info("%s listens on %s://%s", self._name, scheme, socket_name(*self.address))
        server = eventlet.wsgi.Server(
            self.server,
            self.address,
            self.handle,
            environ={"wsgi.url_scheme": "https", "HTTPS": "on"} if self._context is not None else None,
            max_http_version=eventlet.wsgi.DEFAULT_MAX_HTTP_VERSION,
            protocol=Protocol,
            log_output=False,
            keepalive=IDLE_SECONDS,
            socket_timeout=SOCKET_SECONDS,
            debug=False,
        )
        server.refused = self._refused
        acceptor = Acceptor(self.server, self._name)
        pool = eventlet.GreenPool(self._connections)
        while not self._gate.is_closed():
            connection, address = acceptor.accept()
            if not pool.free():
                self._make_room()
            state: State = [address, connection, eventlet.wsgi.STATE_IDLE]
            self._open.add(state)
            try:
                pool.spawn_n(self._serve, server, state)
            except Exception:  # no error may prevent the next connection
                LOG.exception("the API could not serve a connection; it goes on")
                self._open.remove(state)
                _close(connection)
                eventlet.sleep(PAUSE_SECONDS)

    def close(self) -> None:
        """Refuse all new connections and requests. Requests on open connections get 503."""
        self._gate.close()
        # In this order: the acceptor would take a closed socket for a fault, and try again.
        if self._accepting is not None:
            self._accepting.kill()
        self.server.close()

    def drain(self, seconds: float) -> None:
        """Wait for the answers to the requests before ``close``. After ``seconds`` the unanswered ones get 503."""
        if not self._gate.wait(seconds) and (late := self._gate.cancel()):
            LOG.warning("%d requests have taken over %g s and are refused: the controller stops", late, seconds)
        self._gate.wait(REFUSAL_SECONDS)

    def _make_room(self) -> None:
        """End a connection on which no request is there. Where each has one, a new connection waits."""
        state = self._open.dispensable()
        now = time.monotonic()
        if now >= self._say_after:
            self._say_after = now + SAY_AGAIN_SECONDS
            what = f"an idle one of {state[0][0]} is ended" if state is not None else "new ones wait"
            LOG.warning("%s has %d connections, which is the most: %s", self._name, self._connections, what)
        if state is not None:
            _end(state)

    def prepare(self, api: Api) -> Callable[[], None]:
        """Returns what makes the certificates in ``api``, as they are now, count.

        New connections use them. Open ones whose client certificate they do not allow are ended, and all others stay.
        Raises ServerError, and then nothing changes.
        """
        context, judge = server_context(api), _client_judge(api)

        def use() -> None:
            before, self._context, self._judge = self._judge, context, judge
            eventlet.spawn(self._end_refused, judge, before)

        return use

    def _end_refused(self, judge: Judge | None, before: Judge | None) -> None:
        for secured, shown in tuple(self._certified.items()):
            if shown.state[2] is eventlet.wsgi.STATE_CLOSE:
                continue
            objection: str | None = "client certificates are not accepted any more"
            if judge is not None and before is not None:
                objection = judge.objection(shown.certificate, before)
            if objection is not None and secured in self._certified:
                LOG.warning("the connection of %s is ended: %s", shown.state[0][0], objection)
                _end(shown.state)
            eventlet.sleep(0)

    def _serve(self, server: Any, state: State) -> None:
        """Serve one connection from its first byte to its end, in its own green thread. Raises nothing."""
        address = state[0]
        try:
            state[1].settimeout(SOCKET_SECONDS)
            if self._context is not None:
                self._secure(state)
            server.process_request(state)
        except (OSError, eventlet.Timeout) as error:
            LOG.debug("the connection of %s has ended: %s", address, error)
        except Exception:
            if state[2] is eventlet.wsgi.STATE_CLOSE:
                LOG.debug("the connection of %s was ended while it was served", address)
            else:
                LOG.exception("the connection of %s has failed", address)
        finally:
            self._open.remove(state)
            self._certified.pop(state[1], None)
            _close(state[1])
            self._gate.left()

    def _secure(self, state: State) -> None:
        """Have a connection speak TLS. Raises OSError, or Timeout if the handshake is late."""
        judge = self._judge
        state[1] = self._context.wrap_socket(state[1], server_side=True, do_handshake_on_connect=False)
        try:
            with eventlet.Timeout(HANDSHAKE_SECONDS):
                state[1].do_handshake()
        except OSError:
            linger(state[1])
            raise
        self._admit(state, judge)

    def _admit(self, state: State, before: Judge | None) -> None:
        """Remember a client's certificate. Raises OSError if a reload during the handshake has withdrawn it."""
        certificate = state[1].getpeercert(binary_form=True)
        if certificate is None:
            return
        if before is not self._judge:
            raise ConnectionAbortedError("the certificates have changed during the handshake")
        self._certified[state[1]] = _Shown(certificate, state)


def _ignore(_status: HTTPStatus) -> None:
    """Do nothing: refused requests are not counted."""


def _end(state: State) -> None:
    """End a connection that another green thread serves. That one notices it, and closes it."""
    state[2] = eventlet.wsgi.STATE_CLOSE
    _shut(state[1])


def _close(connection: Any) -> None:
    _shut(connection)
    connection.close()


def _shut(connection: Any) -> None:
    try:
        shutdown_safe(connection)
    except OSError as error:
        LOG.debug("a connection was gone already: %s", error)


def server_context(api: Api) -> Any:
    """Returns how TLS is spoken with clients; None without a certificate. Raises ServerError.

    With ``client_authority`` a client may show a certificate of this authority. Without one it needs a token.
    """
    if api.tls_certificate is None or api.tls_key is None:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    restrict(context, "server")
    try:
        load_own(context, api.tls_certificate, api.tls_key)
        if api.client_authority is not None:
            context.verify_mode = ssl.CERT_OPTIONAL
            load_trusted(context, api.client_authority)
        if api.client_revoked is not None:
            load_revoked(context, api.client_revoked)
    except CertificateError as error:
        raise ServerError(str(error)) from error
    return context


def _client_judge(api: Api) -> Judge | None:
    """Returns who judges client certificates that were accepted before; None where none are. Raises ServerError."""
    if api.client_authority is None:
        return None
    try:
        return Judge.read(api.client_authority, api.client_revoked)
    except CertificateError as error:
        raise ServerError(str(error)) from error
