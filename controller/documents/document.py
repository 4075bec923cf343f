"""A text that people write, JSON or YAML: its values, and the line of each for who has to be told what is wrong."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from controller.documents import json_lines
from controller.documents.faults import Place, field_name


class TextError(ValueError):
    """A text that is not understood. The message is one line; ``line`` is where, if that is known."""

    def __init__(self, problem: str, line: int | None = None) -> None:
        super().__init__(problem)
        self.line = line


@dataclass(frozen=True)
class Document:
    """Values, and ``line``: that of the value at a path of keys and indices, or of the nearest around it."""

    data: Any
    line: Callable[[Place], int | None]


def read_yaml(text: str) -> Document:
    """Raises TextError."""
    from controller.documents.yaml_text import YamlText  # noqa: PLC0415 - only who writes YAML pays for its import

    parsed = YamlText(text)
    return Document(parsed.data, parsed.line)


def read_json(text: str) -> Document:
    """Raises TextError."""
    try:
        data = json_lines.parse(text)
    except json_lines.JsonError as error:
        field = f"{field_name(error.place)}: " if error.place else ""
        raise TextError(f"{field}{error}", error.line) from error
    return Document(data, lambda place: _line(text, place))


def _line(text: str, place: Place) -> int | None:
    """The line of a place, or of the nearest around it."""
    around = [place[:depth] for depth in range(len(place), -1, -1)]
    lines = json_lines.Scan(text, set(around)).lines
    return next((lines[one] for one in around if one in lines), None)
