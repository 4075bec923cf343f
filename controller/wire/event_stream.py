"""Reads a stream of server-sent events, as the HTML standard has them in section 9.2. Pure but for its input."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

_PART_BYTES = 65_536


class Sent(NamedTuple):
    """An event of the stream: the last id so far, and the data; None: the event only says that the stream lives."""

    last: str
    data: str | None


def lines(read: Callable[[int], bytes]) -> Iterator[bytes]:
    """Yields lines as they come, without their LF.

    ``read`` returns the bytes that are there, at most as many as it is asked for, and waits for one; none at the end.
    """
    rest = b""
    while part := read(_PART_BYTES):
        *whole, rest = (rest + part).split(b"\n")
        yield from whole


def sent_events(lines: Iterable[bytes]) -> Iterator[Sent]:
    """Yields the events in lines that end by LF, CR LF or nothing. One that is not finished is left out."""
    last, data = "", list[str]()
    for line in lines:
        text = line.rstrip(b"\r\n").decode(errors="replace")
        if not text:
            yield Sent(last, "\n".join(data) if data else None)
            data = []
            continue
        name, _, value = text.partition(":")
        value = value.removeprefix(" ")
        if name == "id" and "\0" not in value:
            last = value
        elif name == "data":
            data.append(value)
