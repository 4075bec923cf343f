"""The way in and out of the API: who is inside is known, so that a stop can let them finish and let nobody else in."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from http import HTTPStatus
from typing import Any

import eventlet
from eventlet import hubs

from controller.api.dispatch import CLOSE, StartResponse, send
from controller.api.errors import problem
from controller.api.http import HttpError
from controller.steps import Pause

LOOK_SECONDS = 0.002
Application = Callable[[dict[str, Any], StartResponse], Iterable[bytes]]


class _TurnedOutError(BaseException):
    """The controller stops, and this request has taken too long. No handler takes it for a fault of its own."""


class _Answer(list[bytes]):
    """A body that says when it was sent, and lets others go on between its parts.

    It keeps its length, by which the server knows an empty one.
    """

    def __init__(self, body: Iterable[bytes], sent: Callable[[], None]) -> None:
        super().__init__(body)
        self._sent = sent

    def __iter__(self) -> Iterator[bytes]:
        """Its parts, as the server sends them."""
        pause = Pause()
        for part in super().__iter__():
            yield part
            pause()

    def close(self) -> None:
        """The server has sent it, or cannot."""
        self._sent()


class Gate:
    """The WSGI application ``application`` until the gate is closed; from then on every request gets 503.

    A request is inside from its first line in here until its answer was sent. Where the answer ends the connection, it
    is inside until ``left`` is called.
    """

    def __init__(self, application: Application) -> None:
        self._application = application
        self._inside: set[Any] = set()
        self._answering: set[Any] = set()
        self._is_closed = False

    def is_closed(self) -> bool:
        """Whether nobody is let in any more."""
        return self._is_closed

    def __call__(self, environ: dict[str, Any], start_response: StartResponse) -> Iterable[bytes]:
        """Answer one request."""
        me = eventlet.getcurrent()
        self._inside.add(me)
        if self.is_closed():
            return _refuse(environ, start_response)
        self._answering.add(me)
        try:
            body = self._application(environ, start_response)
        except _TurnedOutError:
            return _refuse(environ, start_response)
        finally:
            self._answering.discard(me)
        if self.is_closed():  # by now
            environ.get(CLOSE, lambda: None)()
        return _Answer(body, self._sent)

    def close(self) -> None:
        """Let no request in any more."""
        self._is_closed = True

    def wait(self, seconds: float) -> bool:
        """Wait until nobody is inside. Returns whether that came true within ``seconds``."""
        deadline = time.monotonic() + seconds
        while self._inside and time.monotonic() < deadline:
            eventlet.sleep(LOOK_SECONDS)
        return not self._inside

    def turn_out(self) -> int:
        """Have all who have no answer yet be answered by 503. Returns how many they are."""
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
            greenlet.throw(_TurnedOutError)


def _refuse(environ: dict[str, Any], start_response: StartResponse) -> Iterable[bytes]:
    stopping = HttpError(
        HTTPStatus.SERVICE_UNAVAILABLE,
        "the controller is stopping; ask again when it has started anew",
        headers={"Retry-After": "1"},
        close=True,
    )
    return send(problem(stopping, str(environ.get("PATH_INFO", ""))), environ, start_response)
