"""Values as bytes for another process of ours, in frames that are small enough to be read without a pause. Pure."""

from __future__ import annotations

import marshal
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from controller.pieces import Steps

ENTRIES = 2048
"""Entries of a frame beyond which no further row is put into it."""


def pack(value: Any) -> bytes:
    """A value of Python's plain types as a frame."""
    return marshal.dumps(value)


def unpack(frame: bytes) -> Any:
    """The value of a frame that this very program has packed: nobody else's bytes are safe to be read so."""
    return marshal.loads(frame)  # noqa: S302 - see above


def pack_rows(rows: Iterable[Any], entries: Callable[[Any], int] = lambda _row: 1) -> Iterator[bytes]:
    """Rows as frames, and an empty one at the end. ``entries``: how much there is in a row."""
    some: list[Any] = []
    held = 0
    for row in rows:
        some.append(row)
        held += entries(row)
        if held >= ENTRIES:
            yield pack(some)
            some, held = [], 0
    if some:
        yield pack(some)
    yield pack([])


def unpack_rows(frames: Iterator[bytes], make: Callable[[Any], Any]) -> Steps[list[Any]]:
    """The rows of ``pack_rows``, made into something else one by one; yields after each frame."""
    rows: list[Any] = []
    while some := unpack(next(frames)):
        rows.extend(map(make, some))
        yield
    return rows
