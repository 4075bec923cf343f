"""The lines of a recorded file: those that are right, and those that are left out. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple, NoReturn


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
