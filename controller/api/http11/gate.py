"""Counts the requests in progress, so that a stop can let them finish and refuse all others."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from http import HTTPStatus
from typing import Any

import eventlet
from eventlet import hubs

from controller.api.dispatch import CLOSE, StartResponse, Streamed, send
from controller.api.errors import problem
from controller.api.http import HttpError
from controller.steps import Pause

POLL_SECONDS = 0.002
Application = Callable[[dict[str, Any], StartResponse], Iterable[bytes]]


class _CancelledError(BaseException):
    """The controller stops, and this request has taken too long. A BaseException, so that no handler catches it."""


class _Answer(list[bytes]):
    """A body that calls ``sent`` after it was sent, and lets other green threads run between its parts.

    It is a list because the server asks for its length.
    """

    def __init__(self, body: Iterable[bytes], sent: Callable[[], None]) -> None:
        super().__init__(body)
        self._sent = sent

    def __iter__(self) -> Iterator[bytes]:
        """Yields its parts, as the server sends them."""
        pause = Pause()
        for part in super().__iter__():
            yield part
            pause()

    def close(self) -> None:
        """The server has sent it, or has failed to."""
        self._sent()


class Gate:
    """Wraps a WSGI application. After ``close``, every request gets 503.

    A request is inside from its call until its answer was sent. If the answer ends the connection, it is inside until
    ``left`` is called.
    """

    def __init__(self, application: Application) -> None:
        self._application = application
        self._inside: set[Any] = set()
        self._answering: set[Any] = set()
        self._is_closed = False

    def is_closed(self) -> bool:
        """Returns whether new requests are refused."""
        return self._is_closed

    def __call__(self, environ: dict[str, Any], start_response: StartResponse) -> Iterable[bytes]:
        """Answer one request."""
        thread = eventlet.getcurrent()
        self._inside.add(thread)
        if self.is_closed():
            return _refuse(environ, start_response)
        self._answering.add(thread)
        try:
            body = self._application(environ, start_response)
        except _CancelledError:
            return _refuse(environ, start_response)
        finally:
            self._answering.discard(thread)
        if self.is_closed():  # it was closed during the request
            environ.get(CLOSE, lambda: None)()
        if isinstance(body, Streamed):
            body.on_close = self._sent
            return body
        return _Answer(body, self._sent)

    def close(self) -> None:
        """Refuse all new requests."""
        self._is_closed = True

    def wait(self, seconds: float) -> bool:
        """Wait until no request is inside. Returns whether that happened within ``seconds``."""
        deadline = time.monotonic() + seconds
        while self._inside and time.monotonic() < deadline:
            eventlet.sleep(POLL_SECONDS)
        return not self._inside

    def cancel(self) -> int:
        """Answer all requests that have no answer yet by 503. Returns how many they are."""
        for greenlet in self._answering:
            hubs.get_hub().schedule_call_global(0, self._throw, greenlet)
        return len(self._answering)

    def left(self) -> None:
        """The connection of the green thread that calls this has ended."""
        self._inside.discard(eventlet.getcurrent())

    def _sent(self) -> None:
        if not self.is_closed():
            self.left()

    def _throw(self, greenlet: Any) -> None:
        if greenlet in self._answering:
            greenlet.throw(_CancelledError)


def _refuse(environ: dict[str, Any], start_response: StartResponse) -> Iterable[bytes]:
    stopping = HttpError(
        HTTPStatus.SERVICE_UNAVAILABLE,
        "the controller is stopping; ask again when it has started anew",
        headers={"Retry-After": "1"},
        close=True,
    )
    return send(problem(stopping, str(environ.get("PATH_INFO", ""))), environ, start_response)
