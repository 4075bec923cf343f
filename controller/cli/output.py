"""Prints what commands show: rich tables on a terminal, plain columns elsewhere, errors on stderr."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pydantic import BaseModel


class CommandError(Exception):
    """A command that cannot go on; ``status`` is its exit status."""

    def __init__(self, message: str, status: int = 1) -> None:
        super().__init__(message)
        self.status = status


def fail(message: str, status: int, prefix: str = "trainyard: ") -> int:
    """Writes what went wrong to stderr, and returns the exit status."""
    sys.stderr.write("".join(f"{prefix}{line}\n" for line in clean(message, keep_lines=True).splitlines()))
    return status


def show_document(message: BaseModel) -> int:
    """Prints one JSON document, and returns the exit status 0."""
    sys.stdout.write(message.model_dump_json(indent=2) + "\n")
    return 0


def show_json(document: dict[str, object]) -> int:
    """Prints one JSON document that is no message of the API, at once, and returns the exit status 0."""
    sys.stdout.write(json.dumps(document, indent=2) + "\n")
    sys.stdout.flush()
    return 0


def value_text(value: Any) -> str:
    """Returns a value of a setting or a job, as it is shown: a text as it is, None as not set, and all else as JSON."""
    return "not set" if value is None else value if isinstance(value, str) else json.dumps(value)


def show_table(titles: Sequence[str], rows: Iterable[Sequence[object]]) -> int:
    """Prints columns with titles, and returns the exit status 0."""
    cells = [[clean(str(cell)) for cell in row] for row in rows]
    if sys.stdout.isatty():
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text

        table = Table(*titles)
        for row in cells:
            table.add_row(*map(Text, row))
        Console().print(table)
        return 0
    widths = [max(len(row[i]) for row in (titles, *cells)) for i in range(len(titles))]
    for row in (list(titles), *cells):
        line = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        sys.stdout.write(line.rstrip() + "\n")
    return 0


def show_lines(lines: Iterable[str]) -> int:
    """Prints lines as they are, and returns the exit status 0."""
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    return 0


def show_line(line: str) -> None:
    """Prints a line at once: whoever reads it may wait for it."""
    sys.stdout.write(clean(line) + "\n")
    sys.stdout.flush()


def show_beside(line: str) -> None:
    """Prints a line on stderr, where it does not mix with what is kept of stdout."""
    sys.stderr.write(f"{line}\n")


def show_facts(facts: Sequence[tuple[str, str]]) -> int:
    """Prints names and values, one pair on a line, and returns the exit status 0."""
    width = max(len(name) for name, _ in facts)
    for name, value in facts:
        sys.stdout.write(f"{clean(name).ljust(width)}  {clean(value)}\n")
    return 0


def clean(text: str, *, keep_lines: bool = False) -> str:
    """Returns the text with ? for each character that is not printable: text from the network must not control the
    terminal.
    """
    return "".join(char if char.isprintable() or (keep_lines and char == "\n") else "?" for char in text)
