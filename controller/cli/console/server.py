"""Serves recorded runs to browsers of this machine, and to nobody else."""

from __future__ import annotations

import sys
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from controller.cli.console.site import Site
from controller.console.static import HEADERS, Answer

ADDRESS = "127.0.0.1"
_SILENT_SECONDS = 60.0


class SiteServer(ThreadingHTTPServer):
    """Answers GET and HEAD by ``site``, at a port of the loopback address; 0: any free one.

    Raises OSError where it cannot listen there.
    """

    daemon_threads = True

    def __init__(self, site: Site, port: int) -> None:
        super().__init__((ADDRESS, port), _Handler)
        self.site = site

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of a browser that leaves amid an answer."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)

    @property
    def url(self) -> str:
        """The address of the page."""
        return f"http://{ADDRESS}:{self.server_port}/"

    @property
    def names(self) -> tuple[str, ...]:
        """The names under which it may be asked. A web page elsewhere may give its own name to this address."""
        return f"{ADDRESS}:{self.server_port}", f"localhost:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    server: SiteServer
    protocol_version = "HTTP/1.1"
    timeout = _SILENT_SECONDS

    def do_GET(self) -> None:
        """Answer by a file."""
        if self.headers.get("Host", "").lower() not in self.server.names:
            self._refuse(HTTPStatus.FORBIDDEN, f"ask for it as {self.server.names[0]}")
            return
        try:
            file = self.server.site.find(self.path)
        except (OSError, ValueError):
            file = None  # its file is gone, or the path is none
        if file is None:
            self._refuse(HTTPStatus.NOT_FOUND, "there is nothing here")
            return
        packs = None if self.path.startswith("/recordings") else self.headers.get("Accept-Encoding")
        answer = file.answer(self.headers.get("If-None-Match"), packs)
        self._send(answer, file.media_type)

    def do_HEAD(self) -> None:
        """Answer as GET does, without the body."""
        self.do_GET()

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Refuse what is no GET or HEAD, or no HTTP, and end the connection, whose rest is unread."""
        self.close_connection = True
        if code == HTTPStatus.NOT_IMPLEMENTED:
            self._refuse(HTTPStatus.METHOD_NOT_ALLOWED, "only GET and HEAD apply here", Allow="GET, HEAD")
        else:
            self._refuse(HTTPStatus(code), explain or message or HTTPStatus(code).phrase)

    def _refuse(self, status: HTTPStatus, why: str, **headers: str) -> None:
        self._send(Answer(status, {**HEADERS, **headers}, f"{why}\n".encode()), "text/plain; charset=utf-8")

    def _send(self, answer: Answer, media_type: str) -> None:
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        if answer.status != HTTPStatus.NOT_MODIFIED:
            self.send_header("Content-Type", media_type)
            self.send_header("Content-Length", str(len(answer.body)))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer.body)

    def log_message(self, *_arguments: object) -> None:
        """Say nothing: the terminal is for what went wrong."""
