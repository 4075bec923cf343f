"""Hands a WSGI request to the handler of its call, and sends the reply. Every error becomes a problem document."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from http import HTTPStatus
from typing import Any

import eventlet.wsgi

from controller.access.caller import ANYBODY
from controller.access.requests_in_progress import MOST, RequestsInProgress
from controller.api.access import Access
from controller.api.audited import Auditor, Observed
from controller.api.auth import Guard
from controller.api.bodies.query import check_known, parse
from controller.api.errors import from_refusal, problem
from controller.api.http import Call, HttpError, Reply, in_words
from controller.api.openapi import document
from controller.api.routes import CONSOLE, ROUTES, Route, check_names, pattern
from controller.api.services import Services
from controller.refusals import Refused

LOG = logging.getLogger("trainyard.api")
MAX_PATH = 2048
CLOSE = "trainyard.close"
"""Key of the WSGI environment for a callable that ends the connection after the answer."""
MORE = "trainyard.more"
"""Key of the WSGI environment for a callable that returns whether too much of the body is unread to keep the
connection.
"""

CONNECTION = "trainyard.connection"
"""Key of the WSGI environment for the client's connection, which a stream writes to by itself."""

StartResponse = Callable[[str, list[tuple[str, str]]], object]


class Api:
    """The WSGI application. ``is_public``: nobody is asked for a token, so all routes must be open."""

    def __init__(self, services: Services, routes: tuple[Route, ...] = ROUTES, *, is_public: bool = False) -> None:
        self._services = services
        self._is_public = is_public
        self._guard = Guard(services.config.api.host, lambda: services.callers, services.metrics)
        self._auditor = Auditor(services)
        self._in_progress = RequestsInProgress()
        self._by_path: dict[str, dict[str, Route]] = {}
        own = () if is_public else (Route("GET", "/openapi.json", self.openapi, Access.READ_JOB, {200: None}),)
        described = (*routes, *own)
        for route in (*described, *(() if is_public else CONSOLE)):
            self._by_path.setdefault(route.path, {})[route.method] = route
        self._patterns = [(pattern(path), path) for path in self._by_path]
        self._described = described
        self._document = (services.config.api, document(described, services.config.api))

    def __call__(self, environ: dict[str, Any], start_response: StartResponse) -> Iterable[bytes]:
        """Answer one request."""
        received_at = time.monotonic()
        path = str(environ.get("PATH_INFO", ""))
        observed = Observed(environ, path)
        name, reply = self._answer(environ, path, received_at, observed)
        self._auditor.note(observed, name, reply)
        self._services.metrics.answered(name, reply.status, time.monotonic() - received_at - reply.waited)
        return send(reply, environ, start_response)

    def _answer(self, environ: dict[str, Any], path: str, received_at: float, observed: Observed) -> tuple[str, Reply]:
        name = "unknown"
        try:
            try:
                if len(path) > MAX_PATH:
                    raise HttpError(HTTPStatus.REQUEST_URI_TOO_LONG, f"the path is longer than {MAX_PATH}", close=True)
                routes, parts = self._find(path)
                method = _method(environ)
                route = routes.get(method)
                if route is not None:
                    name = route.name
                call = self._authorise(environ, route, parts, received_at, observed)
                if not routes:
                    shown = in_words(path)[:200]
                    raise HttpError(HTTPStatus.NOT_FOUND, f"there is nothing at {shown!r}; see /openapi.json")
                if route is None:
                    allowed = ", ".join(sorted(routes))
                    raise HttpError(
                        HTTPStatus.METHOD_NOT_ALLOWED, f"{method[:20]} does not apply here", headers={"Allow": allowed}
                    )
                check_names(call.path)
                self._auditor.look(observed, route, call)
                with self._in_progress.of(call.caller):
                    return name, route.handler(self._services, call)
            except Refused as refused:
                raise from_refusal(refused) from refused
        except HttpError as error:
            observed.detail = error.detail
            return name, problem(error, path)
        except Exception:
            LOG.exception("a request to %r failed", path[:200])
            internal = HttpError(
                HTTPStatus.INTERNAL_SERVER_ERROR, "the controller failed on this request; its log says how", close=True
            )
            observed.detail = internal.detail
            return name, problem(internal, path)

    def _find(self, path: str) -> tuple[Mapping[str, Route], Mapping[str, str]]:
        """Returns the routes at a path, by method, and the parts that its template names.

        No routes: an unknown path.
        """
        for regex, template in self._patterns:
            match = regex.fullmatch(path)
            if match is not None:
                return self._by_path[template], match.groupdict()
        return {}, {}

    def _authorise(
        self,
        environ: dict[str, Any],
        route: Route | None,
        parts: Mapping[str, str],
        received_at: float,
        observed: Observed,
    ) -> Call:
        if self._is_public or (route is not None and route.access is Access.OPEN):  # these calls take no parameters
            return Call(environ, parts, {}, caller=ANYBODY, received_at=received_at)
        caller = self._guard.identify(environ)
        observed.caller = caller
        if self._in_progress.is_full(caller):
            raise HttpError(
                HTTPStatus.TOO_MANY_REQUESTS,
                f"{caller.name} has {MOST} requests in progress, which is the most; wait for their answers",
                headers={"Retry-After": "1"},
                close=True,
            )
        query = parse(environ.get("QUERY_STRING", ""))
        call = Call(environ, parts, query, caller, received_at, partial(self._auditor.read, observed))
        if route is not None:
            route.access.require(caller, f"{route.method} {route.path}")
            check_known(query, route.query)
        return call

    def openapi(self, _services: Services, _call: Call) -> Reply:
        """Describe the API in OpenAPI 3.1."""
        api = self._services.config.api
        if self._document[0] is not api:  # a reload may have changed who may call
            self._document = (api, document(self._described, api))
        return Reply(HTTPStatus.OK, self._document[1])


class Streamed:
    """A body that is written while the server iterates over it, in the place of the server.

    The server would collect small parts, put each into a chunk of its own, and try again to write to a client that has
    not taken the last part. ``on_close`` is called when the server is done with it.
    """

    def __init__(
        self, connection: Any, status: HTTPStatus, headers: Mapping[str, str], write: Callable[[Any], None]
    ) -> None:
        self._connection = connection
        lines = (f"HTTP/1.1 {int(status)} {status.phrase}", *(f"{name}: {value}" for name, value in headers.items()))
        self._head = "".join(f"{line}\r\n" for line in (*lines, "")).encode("latin-1")
        self._write = write
        self.on_close: Callable[[], None] = lambda: None

    def __iter__(self) -> Iterator[bytes]:
        """Write all, and yield nothing. Raises nothing: the server would write a second head into the stream."""
        try:
            self._connection.sendall(self._head)
            self._write(self._connection)
        except OSError as error:
            LOG.debug("a stream has ended: %s", error)
        except Exception:
            LOG.exception("a stream has failed")
        # Without this the server would add a head and a body of its own.
        eventlet.wsgi.WSGI_LOCAL.already_handled = True
        return iter(())

    def close(self) -> None:
        """The server is done with it."""
        self.on_close()


def send(reply: Reply, environ: dict[str, Any], start_response: StartResponse) -> Iterable[bytes]:
    """Start the WSGI response. Returns the parts of the body."""
    if CLOSE in environ and (reply.close or environ[MORE]()):
        environ[CLOSE]()
    status = HTTPStatus(reply.status)
    headers = {"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store", **reply.headers}
    if reply.stream is not None and environ.get("REQUEST_METHOD") != "HEAD":
        headers |= {"Content-Type": reply.content_type, "Connection": "close"}
        return Streamed(environ[CONNECTION], status, headers, reply.stream)
    body = [reply.body, *reply.parts]
    if status not in (HTTPStatus.NO_CONTENT, HTTPStatus.NOT_MODIFIED):
        headers |= {"Content-Type": reply.content_type, "Content-Length": str(sum(map(len, body)))}
    start_response(f"{int(status)} {status.phrase}", list(headers.items()))
    return [b""] if environ.get("REQUEST_METHOD") == "HEAD" else body


def _method(environ: dict[str, Any]) -> str:
    method = str(environ.get("REQUEST_METHOD", ""))
    return "GET" if method == "HEAD" else method
