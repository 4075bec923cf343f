"""A request, a reply and an error, as the handlers see them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from http import HTTPStatus
from typing import Any

from pydantic import BaseModel

from controller.access.caller import Caller

JSON = "application/json"


@dataclass(frozen=True, slots=True)
class Reply:
    """A reply. ``close`` ends the connection after it, because a part of the request is unread.

    ``waited`` is how many seconds the reply was held back because the client asked for that. A large body comes as
    ``parts``, which follow ``body`` and are neither joined nor sent at once. ``stream`` writes a body of any length to
    the client's connection by itself, and returns when the connection is to be ended.
    """

    status: int
    body: bytes = b""
    content_type: str = JSON
    headers: Mapping[str, str] = field(default_factory=dict)
    close: bool = False
    waited: float = 0.0
    parts: Sequence[bytes] = ()
    stream: Callable[[Any], None] | None = None

    @classmethod
    def of(
        cls, message: BaseModel, status: HTTPStatus = HTTPStatus.OK, *, waited: float = 0.0, **headers: str
    ) -> Reply:
        """Returns a message as a JSON reply. Header names have underscores for dashes."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return cls(int(status), message.model_dump_json().encode(), headers=named, waited=waited)


def in_words(path: str) -> str:
    """Returns a path, or a part of one, as its writer sees it: in WSGI each of its bytes is a Latin-1 character."""
    return path.encode("latin-1", "replace").decode(errors="replace")


class HttpError(Exception):
    """An answer other than success. ``errors`` are pairs (field, problem), or mappings that have both as ``field`` and
    ``detail`` among others; ``close`` is as in ``Reply``."""

    def __init__(
        self,
        status: HTTPStatus,
        detail: str,
        *,
        errors: Sequence[tuple[str, str] | Mapping[str, str]] = (),
        headers: Mapping[str, str] | None = None,
        close: bool = False,
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.errors = tuple(errors)
        self.headers = dict(headers or {})
        self.close = close

    def __reduce__(self) -> tuple[Any, ...]:
        # It is pickled, because the process that parses bodies raises it too.
        rebuild = partial(HttpError, errors=self.errors, headers=self.headers, close=self.close)
        return rebuild, (self.status, self.detail)


@dataclass(frozen=True, slots=True)
class Call:
    """A request. ``received_at`` is by ``time.monotonic``, taken before the body was read.

    ``on_body`` is called with the body's value once it is read, right before the handler changes anything.
    """

    environ: dict[str, Any]
    path: Mapping[str, str]
    query: Mapping[str, str]
    caller: Caller
    received_at: float
    on_body: Callable[[Any], None] = lambda _body: None

    def header(self, name: str) -> str | None:
        """Returns a header's value, or None."""
        value: str | None = self.environ.get(f"HTTP_{name.upper().replace('-', '_')}")
        return value
