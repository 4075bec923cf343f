"""The reader of JSON: the values of a text, read strictly, and the line of each.

A line is needed only for what is wrong. So the standard library's fast parser reads the text, and the slower scanner
of this module finds lines when they are needed.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from controller.documents.document import Document, DocumentError, FieldPath

MAX_DEPTH = 64
_SPACE = re.compile(r"[ \t\n\r]*")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")
_CONSTANTS: Mapping[str, Any] = {"true": True, "false": False, "null": None}
_NOT_JSON = ("NaN", "Infinity", "-Infinity")
_LONG_NUMBER = 20
_DECODER = json.JSONDecoder()


def read_json(text: str) -> Document:
    """Returns the values of a JSON text with their lines. Raises DocumentError as ``parse`` does."""
    return Document(parse(text), lambda paths: _lines(text, paths))


def parse(text: str) -> Any:
    """Returns the value of a JSON text.

    Raises DocumentError for what is no valid JSON, a key that is given twice, NaN or an infinite number, and for
    values that are nested deeper than ``MAX_DEPTH``.
    """
    try:
        return json.loads(
            text, object_pairs_hook=_object, parse_constant=_refuse, parse_int=_whole, parse_float=_finite
        )
    except (ValueError, RecursionError) as error:
        # The scanner finds the path and the line of what the fast parser stumbled over.
        _Scan(text, ())
        raise DocumentError(f"this is no valid JSON: {error}", 1) from None


def _lines(text: str, paths: Sequence[FieldPath]) -> list[int]:
    """Returns the line of each value, or of the nearest value around it, from one scan of the text."""
    found = _Scan(text, {path[:depth] for path in paths for depth in range(len(path) + 1)}).lines
    return [next(found[path[:depth]] for depth in range(len(path), -1, -1) if path[:depth] in found) for path in paths]


class _Scan:
    """Scans a text for the lines of the ``wanted`` paths that it has. Raises DocumentError at the first fault."""

    def __init__(self, text: str, wanted: Collection[FieldPath]) -> None:
        self._text = text
        self._wanted = wanted
        self._seen, self._line = 0, 1
        self.lines: dict[FieldPath, int] = {}
        end = self._space(self._value(self._space(0), ()))
        if end < len(text):
            raise self._error("there is more after the end of the document", (), end)

    def _value(self, at: int, path: FieldPath) -> int:
        """Scans the value that begins at the position ``at``, and returns the position where it ends."""
        text = self._text
        if path in self._wanted:
            self.lines[path] = self._line_of(at)
        if len(path) > MAX_DEPTH:
            raise self._error(f"is nested more than {MAX_DEPTH} deep", path[:3], at)
        first = text[at : at + 1]
        if first == "{":
            return self._members(at + 1, path)
        if first == "[":
            return self._items(at + 1, path)
        if first == '"':
            return self._string(at, path)[1]
        for constant in _CONSTANTS:
            if text.startswith(constant, at):
                return at + len(constant)
        for constant in _NOT_JSON:
            if text.startswith(constant, at):
                raise self._error(f"is {constant}; it must be a finite number", path, at)
        number = _NUMBER.match(text, at)
        if number is None:
            there = repr(first) if first else "the end of the text"
            raise self._error(f"there is {there} where a value should be; this is no valid JSON", path, at)
        if math.isinf(float(number.group())):
            raise self._error("is too large a number", path, at)
        return number.end()

    def _members(self, at: int, path: FieldPath) -> int:
        at = self._space(at)
        if self._text.startswith("}", at):
            return at + 1
        known: dict[str, int] = {}
        while True:
            if not self._text.startswith('"', at):
                raise self._error("a key in quotes should be here; this is no valid JSON", path, at)
            key, end = self._string(at, path)
            inner = (*path, key)
            if key in known:
                raise self._error(f"given twice, first in line {known[key]}; keep one", inner, at)
            known[key] = self._line_of(at)
            at = self._space(end)
            if not self._text.startswith(":", at):
                raise self._error("a ':' should follow the key; this is no valid JSON", inner, at)
            at = self._space(self._value(self._space(at + 1), inner))
            if self._text.startswith("}", at):
                return at + 1
            at = self._comma(at, inner, "}")

    def _items(self, at: int, path: FieldPath) -> int:
        at = self._space(at)
        if self._text.startswith("]", at):
            return at + 1
        index = 0
        while True:
            at = self._space(self._value(at, (*path, index)))
            if self._text.startswith("]", at):
                return at + 1
            at = self._comma(at, (*path, index), "]")
            index += 1

    def _comma(self, at: int, path: FieldPath, close: str) -> int:
        if not self._text.startswith(",", at):
            raise self._error(f"a ',' or '{close}' should follow; this is no valid JSON", path, at)
        return self._space(at + 1)

    def _string(self, at: int, path: FieldPath) -> tuple[str, int]:
        try:
            text, end = _DECODER.raw_decode(self._text, at)
        except json.JSONDecodeError as error:
            raise self._error(f"{error.msg.lower()}; this is no valid JSON", path, at) from None
        return str(text), end

    def _space(self, at: int) -> int:
        space = _SPACE.match(self._text, at)
        return space.end() if space is not None else at

    def _line_of(self, at: int) -> int:
        """Returns the line of a position. Positions only grow, except for the line of a key."""
        if at < self._seen:
            return self._line - self._text.count("\n", at, self._seen)
        self._line += self._text.count("\n", self._seen, at)
        self._seen = at
        return self._line

    def _error(self, problem: str, path: FieldPath, at: int) -> DocumentError:
        return DocumentError(problem, self._line_of(at), path)


class _RefusedError(ValueError):
    """A key that is given twice, a number that is not finite, or one that is too large."""


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise _RefusedError
    return members


def _refuse(constant: str) -> Any:
    raise _RefusedError(constant)


def _whole(digits: str) -> int | float:
    # Python refuses to convert thousands of digits, and nothing here needs a whole number of more than 20.
    return int(digits) if len(digits) < _LONG_NUMBER else _finite(digits)


def _finite(digits: str) -> float:
    value = float(digits)
    if math.isinf(value):
        raise _RefusedError(digits)
    return value
