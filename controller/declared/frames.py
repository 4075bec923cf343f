"""Values as bytes for another of the controller's processes, in frames that are read without a pause. Pure."""

from __future__ import annotations

import marshal
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from controller.pieces import Steps

ENTRIES = 2048
"""Begin a new frame when the last one has this many entries."""


def pack(value: Any) -> bytes:
    """Returns a value of Python's plain types as a frame."""
    return marshal.dumps(value)


def unpack(frame: bytes) -> Any:
    """Returns the value of a frame that this program has packed. It is unsafe for bytes from anywhere else."""
    return marshal.loads(frame)  # noqa: S302 - only this program's own frames come here


def pack_rows(rows: Iterable[Any], entries: Callable[[Any], int] = lambda _row: 1) -> Iterator[bytes]:
    """Yields rows as frames, and an empty frame at the end. ``entries`` counts the entries of a row."""
    pending: list[Any] = []
    held = 0
    for row in rows:
        pending.append(row)
        held += entries(row)
        if held >= ENTRIES:
            yield pack(pending)
            pending, held = [], 0
    if pending:
        yield pack(pending)
    yield pack([])


def unpack_rows(frames: Iterator[bytes], make: Callable[[Any], Any]) -> Steps[list[Any]]:
    """Returns the rows of ``pack_rows``, each converted by ``make``; yields after each frame."""
    rows: list[Any] = []
    while frame_rows := unpack(next(frames)):
        rows.extend(map(make, frame_rows))
        yield
    return rows
