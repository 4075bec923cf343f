"""One connection of the API: deadlines for slow senders, strict parsing, and errors as problem documents.

Eventlet calls the application and writes its answer. Errors of the head are answered here.
"""

from __future__ import annotations

import logging
import socket
import sys
import time
from http import HTTPStatus
from typing import Any
from urllib.parse import unquote

import eventlet
import eventlet.wsgi
from eventlet.green import ssl

from controller.api.auth import CERTIFICATE
from controller.api.dispatch import CLOSE, CONNECTION, MORE
from controller.api.errors import MEDIA_TYPE, problem
from controller.api.http import HttpError
from controller.api.http11 import head as http_head
from controller.api.http11.chunks import ChunkError, Chunks
from controller.api.http11.head import Head, HeadError
from controller.steps import Pause

LOG = logging.getLogger("trainyard.api")
HEAD_SECONDS = 5.0
"""Limits the time from the first byte of a request to the end of its head."""
FIRST_SECONDS = 10.0
"""Limits the time until a new connection's first request, so that silent connections do not keep others out."""
IDLE_SECONDS = 120.0
SOCKET_SECONDS = 30.0
LINGER_SECONDS = 2.0
LINGER_BYTES = 32 * 2**20
DISCARD_SECONDS = 1.0
DISCARD_BYTES = 65536
WRITE_BYTES = 65536
"""Parts of an answer's body are sent together up to this size."""


class Body(eventlet.wsgi.Input):
    """The request body that the application reads."""

    def __init__(self, protocol: Protocol, head: Head) -> None:
        super().__init__(
            protocol.rfile,
            head.length,
            protocol.connection,
            wfile=protocol.wfile if head.awaits else None,
            wfile_line=b"HTTP/1.1 100 Continue\r\n" if head.awaits else None,
            chunked_input=head.length is None,
        )
        self._chunks = Chunks(protocol.rfile, protocol.pause)
        self._close_after = protocol.close_after

    def has_more(self) -> bool:
        """Returns whether too much of it is, or may be, unread to keep the connection."""
        if self.chunked_input:
            return not self._chunks.is_done
        return bool(self.content_length - self.position > DISCARD_BYTES)

    def discard(self, buffer_size: int = 16384, *, seconds: float = DISCARD_SECONDS) -> None:
        """Drop the unread rest of a body that has arrived. Eventlet's own method would wait for all of it."""
        is_read = False
        try:
            with eventlet.Timeout(seconds, False):
                while self.read(buffer_size):
                    pass
                is_read = True
        except ChunkError as error:
            LOG.debug("an unread body is malformed: %s", error)
        if not is_read:
            self._close_after()

    def _chunked_read(self, _stream: Any, length: int | None = None, _by_line: bool = False) -> bytes:
        if self.should_send_hundred_continue:
            self.send_hundred_continue_response()
            self.is_hundred_continue_response_sent = True
        return self._chunks.read(sys.maxsize if length is None or length < 0 else length)


class Protocol(eventlet.wsgi.HttpProtocol):
    """One connection. ``server.refused`` is called with the status of each answer that the application did not give."""

    close_connection: bool | int
    _head: Head
    _unread = False
    _is_new = True

    def setup(self) -> None:
        """Start with the connection."""
        super().setup()
        self.pause = Pause()

    def handle_one_request(self) -> None:
        """Read a request and let the application answer it. Without a request the connection ends."""
        self.close_connection = True
        self.pause()  # requests that have arrived already are read without waiting for the socket
        head = self._next_head()
        if head is None:
            return
        self._head = head
        self.close_connection = not head.keeps
        # Eventlet reads these attributes when it answers.
        self.command, self.path, self.request_version = head.method, head.path, head.version
        self.headers = {"Connection": head.headers.get("connection", "")}
        self.environ = self.get_environ()
        self.application = self.server.app
        self.server.outstanding_requests += 1
        try:
            self.handle_one_response()
        except ConnectionError as error:
            LOG.debug("the connection of %s ended during the answer: %s", self.client_address, error)
        finally:
            self.server.outstanding_requests -= 1

    def _next_head(self) -> Head | None:
        """Returns the next request's head, or None if there is no request or it was refused."""
        is_whole = False
        try:
            if not self._has_arrived():
                return None
            # One deadline for the whole head: slow single bytes do not extend it.
            with eventlet.Timeout(HEAD_SECONDS, False):
                data = http_head.read(self.rfile.readline)
                is_whole = True
            if is_whole:
                if data:
                    self.conn_state[2] = eventlet.wsgi.STATE_REQUEST
                return http_head.parse(data) if data else None
            late = f"the request's head did not come within {HEAD_SECONDS:g} s of its first byte"
            self.send_error(HTTPStatus.REQUEST_TIMEOUT, late)
        except HeadError as error:
            self.send_error(error.status, error.detail)
        except OSError as error:
            LOG.debug("the connection of %s has ended: %s", self.client_address, error)
        return None

    def _has_arrived(self) -> bool:
        """Wait for the first byte of a request. Returns whether it arrived in time."""
        seconds, self._is_new = FIRST_SECONDS if self._is_new else IDLE_SECONDS, False
        has_arrived = False
        self.connection.settimeout(seconds + SOCKET_SECONDS)
        with eventlet.Timeout(seconds, False):
            has_arrived = bool(self.rfile.peek(1))
        self.connection.settimeout(SOCKET_SECONDS)
        return has_arrived

    def get_environ(self) -> dict[str, Any]:
        """Returns the WSGI environment, with callables that end the connection (see ``dispatch``)."""
        head = self._head
        path, _, query = head.path.partition("?")
        body = Body(self, head)
        environ: dict[str, Any] = self.server.get_environ()
        environ |= {
            "REQUEST_METHOD": head.method,
            "SCRIPT_NAME": "",
            "RAW_PATH_INFO": path,
            "PATH_INFO": unquote(path, encoding="latin-1"),
            "QUERY_STRING": query,
            "CONTENT_TYPE": head.headers.get("content-type", ""),
            "SERVER_PROTOCOL": head.version,
            "SERVER_NAME": self.server.address[0],
            "SERVER_PORT": str(self.server.address[1]),
            "REMOTE_ADDR": self.client_address[0],
            "REMOTE_PORT": str(self.client_address[1]),
            "wsgi.input": body,
            "eventlet.input": body,
            "eventlet.posthooks": [],
            "eventlet.minimum_write_chunk_size": WRITE_BYTES,
            CLOSE: self.close_after,
            MORE: body.has_more,
            CONNECTION: self.connection,
        }
        for name, value in head.headers.items():
            if name == "content-length":
                environ["CONTENT_LENGTH"] = value
            elif name != "content-type" and "_" not in name:  # a name with "_" would look the same as one with "-"
                environ["HTTP_" + name.upper().replace("-", "_")] = value
        if isinstance(self.connection, ssl.SSLSocket):
            environ[CERTIFICATE] = self.connection.getpeercert()
        if head.host is not None:
            environ["HTTP_HOST"] = head.host
        return environ

    def send_error(self, code: int, message: str | None = None, _explain: str | None = None) -> None:
        """Answer an error in the head by a problem document, and end the connection."""
        status = HTTPStatus(code)
        body = problem(HttpError(status, message or status.phrase), "").body
        head = (
            f"HTTP/1.1 {int(status)} {status.phrase}\r\nContent-Type: {MEDIA_TYPE}\r\n"
            f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        )
        self.close_after()
        self.server.refused(status)
        self.wfile.write(head.encode("latin-1") + body)
        self.wfile.flush()

    def close_after(self) -> None:
        """End the connection after the answer, although a part of the request may be unread."""
        self.close_connection = True
        self._unread = True

    def finish(self) -> None:
        """End the connection. Unread bytes are drained for a moment, else a reset could discard the answer."""
        if self._unread:
            self._drain()
        super().finish()

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
