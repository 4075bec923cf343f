"""A request, a reply and an error, as the handlers see them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from http import HTTPStatus
from typing import Any

from pydantic import BaseModel

JSON = "application/json"


@dataclass(frozen=True, slots=True)
class Reply:
    """What goes back. ``close`` ends the connection after it, because something was left unread. ``waited``: seconds
    that it was held back because the client asked for that. A body that may be large can come as ``parts``, which
    follow ``body``: they are neither joined nor sent in one go.
    """

    status: int
    body: bytes = b""
    content_type: str = JSON
    headers: Mapping[str, str] = field(default_factory=dict)
    close: bool = False
    waited: float = 0.0
    parts: Sequence[bytes] = ()

    @classmethod
    def of(
        cls, message: BaseModel, status: HTTPStatus = HTTPStatus.OK, *, waited: float = 0.0, **headers: str
    ) -> Reply:
        """A message as JSON; headers by name, with underscores for dashes."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return cls(int(status), message.model_dump_json().encode(), headers=named, waited=waited)


class HttpError(Exception):
    """An answer other than success. ``errors`` has (field, what is wrong); ``close`` as in ``Reply``."""

    def __init__(
        self,
        status: HTTPStatus,
        detail: str,
        *,
        errors: Sequence[tuple[str, str]] = (),
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
        # Raised in another process too.
        made = partial(HttpError, errors=self.errors, headers=self.headers, close=self.close)
        return made, (self.status, self.detail)


@dataclass(frozen=True, slots=True)
class Identity:
    """Who asks: ``host`` is None for an operator, who may do everything."""

    host: str | None = None


@dataclass(frozen=True, slots=True)
class Call:
    """A request. ``received_at`` is by ``time.monotonic``, taken before anything of the body was read."""

    environ: dict[str, Any]
    path: Mapping[str, str]
    query: Mapping[str, str]
    identity: Identity
    received_at: float

    def header(self, name: str) -> str | None:
        """A header's value."""
        value: str | None = self.environ.get(f"HTTP_{name.upper().replace('-', '_')}")
        return value
