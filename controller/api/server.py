"""Ryu's WSGI server with what it lacks: deadlines for slow senders, TLS, a bounded reading of chunks, errors as problem
documents even where no application was reached, and a listener that nothing ends."""

from __future__ import annotations

import logging
import re
import socket
import time
from collections.abc import Callable
from functools import partial
from http import HTTPStatus
from typing import Any

import eventlet
import eventlet.wsgi
from eventlet.green import ssl
from eventlet.greenio import shutdown_safe
from ryu.app import wsgi

from controller.accepting import PAUSE_SECONDS, Acceptor
from controller.api.dispatch import CLOSE, MORE
from controller.api.errors import MEDIA_TYPE, problem
from controller.api.http import HttpError
from controller.config import Api
from controller.wire import MAX_BODY_BYTES

LOG = logging.getLogger("trainyard.api")
HANDSHAKE_SECONDS = 5.0
HEADER_SECONDS = 5.0
FIRST_SECONDS = 10.0
"""Until a new connection's first request: who has not even asked yet must not keep others out."""
IDLE_SECONDS = 120.0
SOCKET_SECONDS = 30.0
LINGER_SECONDS = 2.0
LINGER_BYTES = 32 * 2**20
DISCARD_SECONDS = 1.0
DISCARD_BYTES = 65536
MAX_CONNECTIONS = 4096
CHUNK_OVERHEAD = 2**20
"""What chunk headers may add to the largest body."""
_LENGTH = re.compile(r"[0-9]{1,18}")


class _Bounded:
    """A connection's input while a chunked body is read: eventlet itself would read lines without end."""

    def __init__(self, stream: Any, limit: int) -> None:
        self._stream = stream
        self._left = limit

    def read(self, size: int) -> bytes:
        return self._count(self._stream.read(min(size, self._left + 1)))

    def readline(self, size: int = -1) -> bytes:
        limit = self._left + 1 if size < 0 else min(size, self._left + 1)
        return self._count(self._stream.readline(limit))

    def _count(self, data: bytes) -> bytes:
        self._left -= len(data)
        if self._left < 0:
            raise ValueError("its chunks are too long")
        return data


class Protocol(eventlet.wsgi.HttpProtocol):
    """One connection."""

    close_connection: bool | int
    path: str
    _unread = False
    _is_new = True

    def _read_request_line(self) -> bytes | str:
        # One deadline for the whole line: a byte now and then does not hold the connection.
        line: bytes | str = ""
        with eventlet.Timeout(FIRST_SECONDS if self._is_new else IDLE_SECONDS, False):
            line = super()._read_request_line()
        self._is_new = False
        limit = self.server.url_length_limit
        if len(line) >= limit:
            self.send_error(HTTPStatus.REQUEST_URI_TOO_LONG, f"the request line has {limit} bytes or more")
            return ""
        return line

    def parse_request(self) -> bool:
        """Read the headers, all within HEADER_SECONDS, and refuse what eventlet would refuse in its own words."""
        is_whole = False
        try:
            with eventlet.Timeout(HEADER_SECONDS, False):
                is_whole = bool(super().parse_request())
        except eventlet.wsgi.HeaderLineTooLong:
            self._refuse_headers(f"a header line has {eventlet.wsgi.MAX_HEADER_LINE} bytes or more")
        except eventlet.wsgi.HeadersTooLarge:
            self._refuse_headers(f"the headers have more than {eventlet.wsgi.MAX_TOTAL_HEADER_SIZE} bytes together")
        if is_whole and (fault := self._fault_of_length()) is not None:
            self.send_error(HTTPStatus.BAD_REQUEST, fault)
            is_whole = False
        if not is_whole:
            self.close_connection = True
            return False
        if not self.path.startswith("/"):
            self._localise()
        return True

    def _refuse_headers(self, detail: str) -> None:
        self.send_error(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, detail)

    def _fault_of_length(self) -> str | None:
        """Why nobody can say where the request's body ends (RFC 9112, section 6.3); None: it is said."""
        lengths = {length.strip() for length in self.headers.get_all("Content-Length", [])}
        if not lengths:
            return None
        if len(lengths) > 1:
            return "there are several values of Content-Length; send one"
        length = lengths.pop()
        if _LENGTH.fullmatch(length) is None:
            return f"Content-Length is {length[:40]!r}; send the body's bytes as a number of at most 18 digits"
        if self.headers.get("Transfer-Encoding") is not None:
            return "Content-Length and Transfer-Encoding are there together; send one of them"
        return None

    def _localise(self) -> None:
        """Have other forms of a request's target answered like any other (RFC 9112, section 3.2)."""
        scheme, separator, rest = self.path.partition("://")
        if not separator or scheme.lower() not in ("http", "https"):
            self.path = "/" + self.path
            return
        end = min((rest.find(mark) for mark in "/?" if mark in rest), default=len(rest))
        # The target's own authority is what counts, whatever the header says.
        del self.headers["Host"]
        self.headers["Host"] = rest[:end]
        path = rest[end:]
        self.path = path if path.startswith("/") else "/" + path

    def get_environ(self) -> dict[str, Any]:
        """The WSGI environment, with bounds on the body, and a way to end the connection."""
        environ: dict[str, Any] = super().get_environ()
        given = environ["eventlet.input"]
        if given.chunked_input:
            given.rfile = _Bounded(given.rfile, MAX_BODY_BYTES + CHUNK_OVERHEAD)
        given.discard = partial(self._discard, given.discard)
        if self.headers.get("content-type") is None:
            environ["CONTENT_TYPE"] = ""
        environ[CLOSE] = self._close_after
        environ[MORE] = partial(_has_more, given)
        return environ

    def _discard(self, rest: Callable[[], None]) -> None:
        """Read what is left of a body that nobody asked for, if it is there; eventlet itself would wait for it."""
        is_read = False
        with eventlet.Timeout(DISCARD_SECONDS, False):
            rest()
            is_read = True
        if not is_read:
            self._close_after()

    def send_error(self, code: int, message: str | None = None, _explain: str | None = None) -> None:
        """An error in the request line or the headers, as a problem document."""
        try:
            status = HTTPStatus(code)
        except ValueError:
            status = HTTPStatus.BAD_REQUEST
        body = problem(HttpError(status, message or status.phrase), "").body
        head = (
            f"HTTP/1.1 {int(status)} {status.phrase}\r\nContent-Type: {MEDIA_TYPE}\r\n"
            f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        )
        self.wfile.write(head.encode("latin-1") + body)
        self.wfile.flush()
        self._close_after()

    def finish(self) -> None:
        """End the connection; what was not read is drained for a moment, so that the answer is not reset away."""
        if self._unread:
            self._drain()
        super().finish()

    def _close_after(self) -> None:
        self.close_connection = True
        self._unread = True

    def _drain(self) -> None:
        deadline = time.monotonic() + LINGER_SECONDS
        left = LINGER_BYTES
        try:
            self.wfile.flush()
            if not isinstance(self.connection, ssl.SSLSocket):
                self.connection.shutdown(socket.SHUT_WR)
            while left > 0 and (seconds := deadline - time.monotonic()) > 0:
                self.connection.settimeout(seconds)
                data = self.connection.recv(65536)
                if not data:
                    return
                left -= len(data)
        except (OSError, ValueError) as error:
            LOG.debug("a connection ended while it was drained: %s", error)


def _has_more(body: Any) -> bool:
    """Whether there is more left of a body, or may be, than is read only to keep the connection."""
    if body.chunked_input:
        return bool(body.chunk_length != 0)
    return bool((body.content_length or 0) - body.position > DISCARD_BYTES)


class ServerError(RuntimeError):
    """The API cannot listen; the message says where and why."""


class ApiServer(wsgi.WSGIServer):
    """Listens where ``api`` says; calling it serves for ever. ``connections`` is how many at a time, at most.

    Raises ServerError.
    """

    def __init__(self, application: Any, api: Api, connections: int = MAX_CONNECTIONS) -> None:
        wsgi.CONF.set_override("wsapi_host", api.host)
        wsgi.CONF.set_override("wsapi_port", api.port)
        self._context = _tls(api)
        self._connections = min(connections, MAX_CONNECTIONS)
        try:
            super().__init__(application)
        except OSError as error:
            raise ServerError(
                f"the API cannot listen on {api.host}:{api.port}: {error.strerror}; "
                "set api.host and api.port to what is free"
            ) from error
        self.address: tuple[str, int] = self.server.getsockname()[:2]

    def serve_forever(self) -> None:
        """Serve until the green thread is killed; no connection's fault ends it.

        This is not ``eventlet.wsgi.server``, which ends for ever where a connection is reset before it is accepted, or
        where the process has no file descriptor left.
        """
        scheme = "https" if self._context is not None else "http"
        LOG.info("the API listens on %s://%s:%d", scheme, *self.address)
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
        acceptor = Acceptor(self.server, "the API")
        pool = eventlet.GreenPool(self._connections)
        while True:
            connection, address = acceptor.accept()
            try:
                pool.spawn_n(self._serve, server, connection, address)
            except Exception:  # whatever it is, the next connection must be taken
                LOG.exception("the API could not serve a connection; it goes on")
                _close(connection)
                eventlet.sleep(PAUSE_SECONDS)

    def _serve(self, server: Any, connection: Any, address: Any) -> None:
        """One connection from its first byte to its end, in a green thread of its own. Raises nothing."""
        state = [address, connection, eventlet.wsgi.STATE_IDLE]
        try:
            connection.settimeout(SOCKET_SECONDS)
            if self._context is not None:
                state[1] = self._secure(connection)
            server.process_request(state)
        except (OSError, eventlet.Timeout) as error:
            LOG.debug("the connection of %s has ended: %s", address, error)
        except Exception:
            LOG.exception("the connection of %s has failed", address)
        finally:
            _close(state[1])

    def _secure(self, connection: Any) -> Any:
        """The connection with TLS on it, its handshake done. Raises OSError, or Timeout where it does not come."""
        secured = self._context.wrap_socket(connection, server_side=True, do_handshake_on_connect=False)
        try:
            with eventlet.Timeout(HANDSHAKE_SECONDS):
                secured.do_handshake()
        except BaseException:
            _close(secured)
            raise
        return secured


def _close(connection: Any) -> None:
    try:
        shutdown_safe(connection)
    except OSError as error:
        LOG.debug("a connection was gone already: %s", error)
    connection.close()


def _tls(api: Api) -> Any:
    if api.tls_certificate is None or api.tls_key is None:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(api.tls_certificate, api.tls_key, password="")
    except (OSError, ValueError) as error:
        raise ServerError(
            f"the certificate {api.tls_certificate} and the key {api.tls_key} cannot be used: {error}"
        ) from error
    return context
