"""A text that people write, JSON or YAML: its values, and the line of each for who has to be told what is wrong."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Place = tuple[str | int, ...]


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
    from host_reporter.yaml_text import YamlText  # noqa: PLC0415 - only who writes YAML pays for its import

    parsed = YamlText(text)
    return Document(parsed.data, parsed.line)


def read_json(text: str) -> Document:
    """Raises TextError."""
    try:
        data = json.loads(text)
    except json.JSONDecodeError as error:
        raise TextError(f"no JSON: {error.msg}", error.lineno) from error
    except RecursionError as error:
        raise TextError("no JSON that is understood: it is nested too deep") from error
    except ValueError as error:
        raise TextError(f"no JSON: {error}") from error
    return Document(data, lambda place: _json_line(text, place))


def _json_line(text: str, place: Place) -> int | None:
    """JSON is YAML too, but for its tabs; so the lines are there for the one who needs them."""
    try:
        return read_yaml(text.replace("\t", " ")).line(place)
    except TextError:
        return None
