"""Pieces of Markdown: tables, headings with an id of their own, and text without accidental markup."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence


class MissingTextError(Exception):
    """Something has no description; the message names it."""


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Returns a table, with an empty line behind it."""
    lines = [header, ["---"] * len(header), *rows]
    return "".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |\n" for line in lines) + "\n"


def heading(level: int, text: str, anchor: str) -> str:
    """Returns a heading that links find by ``anchor``."""
    return f"{'#' * level} {text} {{ #{anchor} }}\n\n"


def code(text: str) -> str:
    """Returns ``text`` as code."""
    return f"`{text}`"


def prose(text: str | None, subject: str) -> str:
    """Returns a description with double backticks as single ones. Raises MissingTextError where there is none."""
    if text is None or not text.strip():
        raise MissingTextError(f"{subject} has no description")
    return re.sub(r"(?<!`)([<*])", r"\\\1", text.strip().replace("``", "`"))


def sentence(text: str | None, subject: str) -> str:
    """Returns a description that begins with a capital letter and ends with a period. Raises MissingTextError."""
    shown = prose(text, subject)
    shown = shown[0].upper() + shown[1:] if shown[0].islower() and shown.split()[0].strip(":,;").isalpha() else shown
    return shown if shown.endswith((".", ":")) else shown + "."
