"""The lines of a recorded file, read one by one: those that are right, and those that are left out."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO, NamedTuple, NoReturn

Fields = Mapping[str, type | tuple[type, ...]]
"""The fields that each line of a file must have, and their types."""
LONGEST = 1 << 24
"""A longer line, in bytes, is left out: it is no event, and takes the memory of a browser."""


class Line(NamedTuple):
    """A line of a recorded file. ``number`` counts from 1; ``start`` and ``end`` are where it lies, in bytes.

    ``document`` is what it says; None where it is not right.
    """

    number: int
    start: int
    end: int
    document: dict[str, Any] | None


def read_lines(file: BinaryIO, fields: Fields) -> Iterator[Line]:
    """Yields the lines of a file with one JSON object a line, from its start. Each must have ``fields``.

    Empty lines are left out. So is a last line without a line feed that is not right: whoever wrote it was interrupted.
    """
    end = number = 0
    while content := file.readline(LONGEST):
        start, end, number = end, end + len(content), number + 1
        is_whole = content.endswith(b"\n") or len(content) < LONGEST
        while not content.endswith(b"\n") and (more := file.readline(LONGEST)):
            end += len(more)
            content = more
        document = _document(content, fields) if is_whole else None
        if document is not None or (content.endswith(b"\n") and not (is_whole and content.isspace())):
            yield Line(number, start, end, document)


def _document(line: bytes, fields: Fields) -> dict[str, Any] | None:
    document = parsed(line)
    if document is None:
        return None
    for name, kind in fields.items():
        if not _is_right(document.get(name), kind):
            return None
    return document


def _is_right(value: object, kind: type | tuple[type, ...]) -> bool:
    """Returns whether a value has a type, and is no number that JSON does not have: 1e999 is read as infinity."""
    return isinstance(value, kind) and (not isinstance(value, float) or math.isfinite(value))


def parsed(content: bytes) -> dict[str, Any] | None:
    """Returns a JSON object; None for anything else, and for numbers that JSON does not have."""
    try:
        document = _decoder.decode(content.decode())
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None


def _refuse(word: str) -> NoReturn:
    raise ValueError(f"{word} is no number of JSON")


_decoder = json.JSONDecoder(parse_constant=_refuse)


def encoded(document: object) -> bytes:
    """Returns a document as JSON. Numbers that JSON does not have become null."""
    try:
        return json.dumps(document, separators=(",", ":"), allow_nan=False).encode()
    except ValueError:
        return json.dumps(_finite(document), separators=(",", ":"), allow_nan=False).encode()


def _finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _finite(each) for name, each in value.items()}
    if isinstance(value, list | tuple | set):
        return [_finite(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
