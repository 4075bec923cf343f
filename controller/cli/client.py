"""The command's client of the REST API: one request, one message, and errors in one line."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from http import HTTPStatus
from pathlib import Path
from typing import TypeVar

import requests
import urllib3
from pydantic import ValidationError

from controller.cli.output import CommandError
from controller.wire import Message, Problem
from controller.wire.event_stream import Sent, lines, sent_events

TIMEOUT_SECONDS = 30.0
"""A stream that is silent for so long has ended: twice as long as between two signs of life."""
WRONG_INPUT = (HTTPStatus.BAD_REQUEST, HTTPStatus.NOT_FOUND, HTTPStatus.UNPROCESSABLE_ENTITY)
NOT_NOW = (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.BAD_GATEWAY, HTTPStatus.SERVICE_UNAVAILABLE)
Answer = TypeVar("Answer", bound=Message)


class UnreachableError(CommandError):
    """The controller does not answer now; it may later."""


class ForbiddenError(CommandError):
    """The caller's role may not make the call."""


class NotFoundError(CommandError):
    """There is no such thing, at least not now."""


class Client:
    """A client of the controller at ``url``. Raises CommandError for all errors."""

    def __init__(
        self,
        url: str,
        token: str | None = None,
        ca: Path | None = None,
        certificate: Path | None = None,
        key: Path | None = None,
    ) -> None:
        if "@" in url.partition("://")[2].partition("/")[0]:
            raise CommandError("the URL of a controller holds no user and no password; use --token-file", 2)
        if not url.startswith(("http://", "https://")):
            raise CommandError(f"{url!r} is not the URL of a controller; it is written like http://127.0.0.1:8080", 2)
        for file in (ca, certificate, key):
            if file is not None and not file.is_file():
                raise CommandError(f"{file}: there is no such file", 2)
        if (certificate is None) != (key is None):
            raise CommandError("a client certificate needs its key: --certificate and --key", 2)
        self._url = url.rstrip("/")
        self._session = requests.Session()
        # Given with each request: requests lets REQUESTS_CA_BUNDLE take the place of what a session has.
        self._verify = str(ca) if ca is not None else True
        if certificate is not None and key is not None:
            self._session.cert = (str(certificate), str(key))
        if token:
            if not (token.isascii() and token.isprintable()):
                raise CommandError("the token has characters that a token cannot have", 2)
            self._session.headers["Authorization"] = f"Bearer {token}"

    def get(self, path: str, model: type[Answer], query: Mapping[str, str] | None = None) -> Answer:
        """Returns the message at ``path``, which is percent-encoded where it has to be."""
        return self._understood(self._ask("GET", path, query), model)

    def post(self, path: str, model: type[Answer]) -> Answer:
        """Returns the message that answers an empty POST."""
        return self._understood(self._ask("POST", path, None), model)

    def patch(self, path: str, change: Message, model: type[Answer]) -> Answer:
        """Change what is at ``path``; fields of ``change`` that are None stay. Returns the answer."""
        body = change.model_dump_json(exclude_none=True)
        return self._understood(self._ask("PATCH", path, None, body), model)

    def put(self, path: str, body: Message, model: type[Answer]) -> Answer:
        """Put a message at ``path``, without its fields that are None. Returns the answer."""
        return self._understood(self._ask("PUT", path, None, body.model_dump_json(exclude_none=True)), model)

    def delete(self, path: str, query: Mapping[str, str] | None = None) -> None:
        """Remove what is at ``path``."""
        self._ask("DELETE", path, query)

    def follow(self, path: str, last: str) -> Iterator[Sent]:
        """Yields the server-sent events at ``path`` after the id ``last``, which may be empty, until the stream ends.

        Raises UnreachableError where no stream can be had now, and CommandError where it never will.
        """
        headers = {"Accept": "text/event-stream"} | ({"Last-Event-ID": last} if last else {})
        reply = self._ask("GET", path, None, headers=headers, stream=True)
        with reply, contextlib.suppress(urllib3.exceptions.HTTPError, OSError):
            yield from sent_events(lines(reply.raw.read1))

    def _understood(self, reply: requests.Response, model: type[Answer]) -> Answer:
        try:
            return model.model_validate_json(reply.content)
        except ValidationError:
            raise CommandError(f"{self._url} answers, but not as a Trainyard controller does") from None

    def _ask(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None,
        body: str | None = None,
        *,
        headers: Mapping[str, str] | None = None,
        stream: bool = False,
    ) -> requests.Response:
        if body is not None:
            headers = {"Content-Type": "application/json"}
        try:
            with self._session as session:
                reply = session.request(
                    method,
                    self._url + path,
                    params=query,
                    data=body,
                    headers=headers,
                    timeout=TIMEOUT_SECONDS,
                    verify=self._verify,
                    stream=stream,
                )
        except requests.exceptions.SSLError as error:
            raise CommandError(
                f"{self._url}: its certificate is not trusted; name its authority by --ca ({_root(error)})"
            ) from None
        except requests.exceptions.ConnectionError as error:
            raise UnreachableError(f"no controller answers at {self._url}: {_root(error)}") from None
        except requests.exceptions.Timeout:
            raise UnreachableError(f"{self._url} did not answer within {TIMEOUT_SECONDS:g} s") from None
        except (requests.exceptions.RequestException, ValueError) as error:
            raise CommandError(f"{self._url}: {error}", 2) from None
        if not reply.ok:
            status = 2 if reply.status_code in WRONG_INPUT else 1
            raise _kind(reply.status_code)(f"{self._url}: {_detail(reply)}", status)
        return reply


_KINDS: dict[int, type[CommandError]] = {HTTPStatus.FORBIDDEN: ForbiddenError, HTTPStatus.NOT_FOUND: NotFoundError}


def _kind(status: int) -> type[CommandError]:
    """Returns the error that an HTTP status stands for."""
    if status in _KINDS:
        return _KINDS[status]
    return UnreachableError if status in NOT_NOW else CommandError


def _detail(reply: requests.Response) -> str:
    try:
        return Problem.model_validate_json(reply.content).detail
    except ValidationError:
        return f"answered {reply.status_code} {reply.reason}"


def _root(error: BaseException) -> str:
    """Returns the operating system's message inside the exceptions of ``requests``."""
    seen: BaseException = error
    while True:
        reason = getattr(seen, "reason", None)
        inner = reason if isinstance(reason, BaseException) else seen.__cause__ or seen.__context__
        if inner is None or inner is seen:
            break
        seen = inner
    return getattr(seen, "strerror", None) or str(seen) or type(seen).__name__
