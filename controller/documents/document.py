"""A text that people wrote, as values with the line of each, and the error of a text that cannot be read.

Only the standard library is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

FieldPath = tuple[str | int, ...]
"""The path to a value: the keys of mappings and the indices of lists, from the outermost inwards."""


def field_name(path: FieldPath) -> str:
    """Returns a path as people write it: ``hosts[2].address``."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else str(part)
    return text or "(whole file)"


class DocumentError(ValueError):
    """A text that is no valid document.

    ``problem`` says in one line what is wrong, ``path`` is the value at fault, and ``line`` is its line, counted from
    1; it is None where the line is unknown. The message is the problem, after the name of the field if there is one.
    """

    def __init__(self, problem: str, line: int | None, path: FieldPath = ()) -> None:
        super().__init__(f"{field_name(path)}: {problem}" if path else problem)
        self.problem = problem
        self.line = line
        self.path = path


@dataclass(frozen=True)
class Document:
    """The values of a text in ``data``, and the lines on which they stand.

    ``lines`` takes paths and returns the line of each, counted from 1: that of the value, or of the nearest value
    around it where the text does not hold it. All lines that are wanted cost one pass over a JSON text.
    """

    data: Any
    lines: Callable[[Sequence[FieldPath]], list[int]]

    def line(self, path: FieldPath) -> int:
        """Returns the line of one path."""
        return self.lines([path])[0]
