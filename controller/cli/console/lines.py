"""The lines of a recorded file: those that are right, and those that are left out. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple, NoReturn

_A_DAY_LONG_AGO = 1e9
"""No run is as long, in seconds, and each time of today is later."""


class Lines(NamedTuple):
    """The lines of a recorded file. ``kept`` has those that are right, each with its line feed, and ``documents`` what
    they say. ``wrong`` has the numbers of the others, from 1."""

    kept: bytes
    documents: tuple[Mapping[str, Any], ...]
    wrong: tuple[int, ...]


def read_lines(content: bytes, fields: Mapping[str, type | tuple[type, ...]]) -> Lines:
    """Returns the lines of a file with one JSON object a line. Each must have ``fields`` of these types.

    A last line without a line feed counts as not there if it is not right: whoever wrote it was interrupted.
    """
    *lines, rest = content.split(b"\n")
    kept, documents, wrong = [], [], []
    for number, line in enumerate([*lines, rest], start=1):
        document = _document(line, fields)
        if document is not None:
            kept.append(line + b"\n")
            documents.append(document)
        elif line.strip() and number <= len(lines):
            wrong.append(number)
    return Lines(b"".join(kept), tuple(documents), tuple(wrong))


def from_the_first(lines: Lines) -> Lines:
    """Returns the lines with their times in seconds since the first, where they are in seconds since the Unix epoch.

    So are they in what ``trainyard events`` prints. A recorded run of the lab counts from its start already.
    """
    zero = min((each["time"] for each in lines.documents), default=0.0)
    if zero < _A_DAY_LONG_AGO:
        return lines
    documents = tuple({**each, "time": round(each["time"] - zero, 3)} for each in lines.documents)
    kept = b"".join(json.dumps(each).encode() + b"\n" for each in documents)
    return Lines(kept, documents, lines.wrong)


def _document(line: bytes, fields: Mapping[str, type | tuple[type, ...]]) -> Mapping[str, Any] | None:
    document = parsed(line)
    if document is None or not all(isinstance(document.get(name), kind) for name, kind in fields.items()):
        return None
    return document


def parsed(content: bytes) -> dict[str, Any] | None:
    """Returns a JSON object; None for anything else, and for numbers that JSON does not have."""
    try:
        document = json.loads(content, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None


def _refuse(word: str) -> NoReturn:
    raise ValueError(f"{word} is no number of JSON")
