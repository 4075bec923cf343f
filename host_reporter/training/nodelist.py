"""Slurm's short form of many host names: ``gpu[01-03,7],login1`` is gpu01, gpu02, gpu03, gpu7 and login1. Pure."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from itertools import product

MAX_HOSTS = 4096
"""Refuse lists of more hosts than a job may have tasks, before they are expanded."""

MAX_CHARACTERS = 64 * 1024

MAX_NAME = 253
"""A host's full name has at most so many characters (RFC 1035)."""

_PART = re.compile(r"([^\[\],\s]*)\[([0-9,-]+)\]|([^\[\],\s]+)")
_RANGE = re.compile(r"([0-9]{1,18})(?:-([0-9]{1,18}))?")

_Range = tuple[int, int, int]
"""First, last and the width that its zeros give it."""


def expand(text: str) -> tuple[str, ...]:
    """The names, in the list's order. Raises ValueError for what is no such list, or has more than MAX_HOSTS names."""
    if len(text) > MAX_CHARACTERS:
        raise ValueError(f"a list of nodes has at most {MAX_CHARACTERS} characters")
    names: list[str] = []
    for item in _items(text):
        names += _names(item, MAX_HOSTS - len(names))
    return tuple(names)


def _items(text: str) -> Iterator[str]:
    """The parts between the commas that stand outside of brackets."""
    begin = depth = 0
    for position, sign in enumerate(text):
        depth += (sign == "[") - (sign == "]")
        if depth not in (0, 1):
            raise ValueError(f"{text[:80]!r}: a bracket too many at character {position + 1}")
        if sign == "," and depth == 0:
            yield text[begin:position]
            begin = position + 1
    if depth:
        raise ValueError(f"{text[:80]!r}: a bracket is not closed")
    if text:
        yield text[begin:]


def _names(item: str, most: int) -> Iterator[str]:
    """The names of one part: plain text and ranges by turns, as in rack[0-1]n[01-16]. None is made if there are more.

    Raises ValueError.
    """
    pieces = list(_pieces(item))
    if not pieces:
        raise ValueError(f"{item[:80]!r}: a name is missing")
    if _longest(pieces) > MAX_NAME:
        raise ValueError(f"{item[:80]!r}: a host's name has at most {MAX_NAME} characters")
    if math.prod(1 if isinstance(piece, str) else _count(piece) for piece in pieces) > most:
        raise ValueError(f"the list names more than {MAX_HOSTS} nodes")
    texts = [[piece] if isinstance(piece, str) else list(_numbers(piece)) for piece in pieces]
    return map("".join, product(*texts))


def _pieces(item: str) -> Iterator[str | list[_Range]]:
    position = 0
    while position < len(item):
        match = _PART.match(item, position)
        if match is None or match.end() == position:
            raise ValueError(f"{item[:80]!r} is no name of nodes, such as gpu[01-16]")
        position = match.end()
        prefix, ranges, plain = match.groups()
        if plain is not None:
            yield plain
            continue
        if prefix:
            yield prefix
        yield [_range(part, item) for part in ranges.split(",")]


def _range(part: str, item: str) -> _Range:
    match = _RANGE.fullmatch(part)
    if match is None:
        raise ValueError(f"{item[:80]!r}: {part!r} is no number and no range, such as 01-16")
    first, last = match[1], match[2] or match[1]
    if int(last) < int(first):
        raise ValueError(f"{item[:80]!r}: the range {part} runs backwards")
    return int(first), int(last), len(first)


def _longest(pieces: list[str | list[_Range]]) -> int:
    """Characters of the longest name."""
    return sum(
        len(piece) if isinstance(piece, str) else max(max(width, len(str(last))) for _, last, width in piece)
        for piece in pieces
    )


def _count(ranges: list[_Range]) -> int:
    return sum(last - first + 1 for first, last, _ in ranges)


def _numbers(ranges: list[_Range]) -> Iterator[str]:
    for first, last, width in ranges:
        for number in range(first, last + 1):
            yield f"{number:0{width}}"
