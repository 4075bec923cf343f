"""An event as a value. Its JSON and its form in a stream of server-sent events are encoded once, when it is made.

The form of the stream is the "event stream" of the HTML standard, section 9.2 (server-sent events).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

Kind = Literal["plan", "job", "stage", "host", "switch", "settings", "problem", "audit"]


Users = Mapping[str, str | None]
"""Jobs, with the user of each at a moment."""


class Event(NamedTuple):
    """An event. ``sent`` is its form in the stream. ``users`` has the jobs that it tells of."""

    id: int
    kind: Kind
    time: float
    sent: bytes
    users: Users = MappingProxyType({})

    @property
    def line(self) -> bytes:
        """The event as one JSON document, without a line feed."""
        return self.sent[self.sent.index(b"\ndata: ") + 7 : -2]

    @property
    def data(self) -> dict[str, Any]:
        """What it tells, decoded anew at each call."""
        decoded: dict[str, Any] = json.loads(self.line)["data"]
        return decoded


def event(number: int, kind: Kind, time: float, data: Mapping[str, Any], users: Users = MappingProxyType({})) -> Event:
    """Returns an event. ``data`` is what becomes JSON; ``time`` is in seconds since the Unix epoch.

    Raises ValueError for numbers that JSON does not have.
    """
    return Event(number, kind, time, encoded(number, kind, time, data), users)


def encoded(number: int, kind: str, time: float, data: Mapping[str, Any]) -> bytes:
    """Returns an event of any kind in the form of the stream. Raises ValueError as ``event``."""
    document = {"id": number, "event": kind, "time": round(time, 3), "data": data}
    text = json.dumps(document, separators=(",", ":"), allow_nan=False)
    return f"id: {number}\nevent: {kind}\ndata: {text}\n\n".encode("ascii")


class Gap(NamedTuple):
    """The ids of events that a reader has missed, from ``first`` to ``last``."""

    first: int
    last: int

    def sent(self, time: float) -> bytes:
        """Returns the gap in the form of the stream. Its id is ``last``, so a reader that resumes goes on behind it."""
        return encoded(self.last, "gap", time, self._asdict())


def alive(last: int) -> bytes:
    """Returns a comment that shows a reader that the stream lives. ``last`` becomes the last id that it has."""
    return f": alive\nid: {last}\n\n".encode("ascii")
