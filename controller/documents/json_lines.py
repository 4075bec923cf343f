"""JSON with line numbers: strict parsing, and where in a text each value stands.

Only what goes wrong needs a line, so a text is first read by the standard library's fast parser and scanned by this
slower one when there is something to say about it.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Collection, Mapping
from typing import Any

Place = tuple[str | int, ...]

MAX_DEPTH = 64
_SPACE = re.compile(r"[ \t\n\r]*")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")
_CONSTANTS: Mapping[str, Any] = {"true": True, "false": False, "null": None}
_NOT_JSON = ("NaN", "Infinity", "-Infinity")
_LONG_NUMBER = 20
_DECODER = json.JSONDecoder()


class JsonError(ValueError):
    """Text that is no strict JSON: ``place`` and ``line`` of the fault; the message says what is wrong."""

    def __init__(self, problem: str, place: Place, line: int) -> None:
        super().__init__(problem)
        self.place = place
        self.line = line


def parse(text: str) -> Any:
    """The value of a text. Raises JsonError, also for a key that is given twice, NaN, or what is nested too deep."""
    try:
        return json.loads(
            text, object_pairs_hook=_object, parse_constant=_refuse, parse_int=_whole, parse_float=_finite
        )
    except (ValueError, RecursionError) as error:
        # The slow scan knows the place of what the fast parser stumbled over.
        Scan(text, ())
        raise JsonError(f"this is no valid JSON: {error}", (), 1) from None


class Scan:
    """The line of values of a text, by their path of keys and indices. Raises JsonError at the first fault.

    ``wanted``: only of these, where they are there (None: of all).
    """

    def __init__(self, text: str, wanted: Collection[Place] | None = None) -> None:
        self._text = text
        self._wanted = wanted
        self._seen, self._line = 0, 1
        self.lines: dict[Place, int] = {}
        end = self._space(self._value(self._space(0), ()))
        if end < len(text):
            raise self._error("there is more after the end of the document", (), end)

    def _value(self, at: int, place: Place) -> int:
        """Scan the value that begins at ``at``; where it ends."""
        text = self._text
        if self._wanted is None or place in self._wanted:
            self.lines[place] = self._line_of(at)
        if len(place) > MAX_DEPTH:
            raise self._error(f"is nested more than {MAX_DEPTH} deep", place[:3], at)
        first = text[at : at + 1]
        if first == "{":
            return self._members(at + 1, place)
        if first == "[":
            return self._items(at + 1, place)
        if first == '"':
            return self._string(at, place)[1]
        for constant in _CONSTANTS:
            if text.startswith(constant, at):
                return at + len(constant)
        for constant in _NOT_JSON:
            if text.startswith(constant, at):
                raise self._error(f"is {constant}; it must be a finite number", place, at)
        number = _NUMBER.match(text, at)
        if number is None:
            found = repr(first) if first else "the end of the text"
            raise self._error(f"there is {found} where a value should be; this is no valid JSON", place, at)
        if math.isinf(float(number.group())):
            raise self._error("is too large a number", place, at)
        return number.end()

    def _members(self, at: int, place: Place) -> int:
        at = self._space(at)
        if self._text.startswith("}", at):
            return at + 1
        known: dict[str, int] = {}
        while True:
            if not self._text.startswith('"', at):
                raise self._error("a key in quotes should be here; this is no valid JSON", place, at)
            key, end = self._string(at, place)
            inner = (*place, key)
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

    def _items(self, at: int, place: Place) -> int:
        at = self._space(at)
        if self._text.startswith("]", at):
            return at + 1
        index = 0
        while True:
            at = self._space(self._value(at, (*place, index)))
            if self._text.startswith("]", at):
                return at + 1
            at = self._comma(at, (*place, index), "]")
            index += 1

    def _comma(self, at: int, place: Place, close: str) -> int:
        if not self._text.startswith(",", at):
            raise self._error(f"a ',' or '{close}' should follow; this is no valid JSON", place, at)
        return self._space(at + 1)

    def _string(self, at: int, place: Place) -> tuple[str, int]:
        try:
            text, end = _DECODER.raw_decode(self._text, at)
        except json.JSONDecodeError as error:
            raise self._error(f"{error.msg.lower()}; this is no valid JSON", place, at) from None
        return str(text), end

    def _space(self, at: int) -> int:
        found = _SPACE.match(self._text, at)
        return found.end() if found is not None else at

    def _line_of(self, at: int) -> int:
        """The line of a position, which only ever grows but for a key's own."""
        if at < self._seen:
            return self._line - self._text.count("\n", at, self._seen)
        self._line += self._text.count("\n", self._seen, at)
        self._seen = at
        return self._line

    def _error(self, problem: str, place: Place, at: int) -> JsonError:
        return JsonError(problem, place, self._line_of(at))


class _RefusedError(ValueError):
    """A key that is given twice, or a number that is none or too large."""


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise _RefusedError
    return found


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
