"""Tables of text that fit a width: columns that matter less become narrower, and then go. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

Span = tuple[str, str]
"""A text and its style, by rich's names; without a style it is empty."""
Line = tuple[Span, ...]

GAP = 2
_CUT = "…"


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table. ``cells`` are its texts with their styles, one a row.

    ``least`` is the width to which it may shrink. Of two columns the one with the lower ``rank`` matters more. Where
    there is not room for all, ``enough`` is the width to which it shrinks before any other column does.
    """

    title: str
    cells: Sequence[Span]
    rank: int
    least: int = 4
    is_right: bool = False
    enough: int | None = None

    @property
    def width(self) -> int:
        """The width that all of its texts need."""
        return max([len(self.title), *(len(text) for text, _ in self.cells)])


def table(columns: Sequence[Column], width: int) -> list[Line]:
    """Returns the title and the rows, none of them wider than ``width``."""
    widths = _widths(columns, width)
    kept = [(column, size) for column, size in zip(columns, widths, strict=True) if size]
    rows = max((len(column.cells) for column, _ in kept), default=0)
    lines = [_row([(column, size, (column.title, "bold")) for column, size in kept])]
    lines += [_row([(column, size, column.cells[row]) for column, size in kept]) for row in range(rows)]
    return lines


def cut(text: str, width: int) -> str:
    """Returns a text that is no longer than ``width``."""
    return text if len(text) <= width else text[: max(width - 1, 0)] + _CUT[: max(width, 0)]


def fitted(line: Line, width: int) -> Line:
    """Returns a line that is no longer than ``width``."""
    spans: list[Span] = []
    for text, style in line:
        spans.append((cut(text, width), style))
        width -= len(spans[-1][0])
    return tuple(span for span in spans if span[0])


def _widths(columns: Sequence[Column], width: int) -> list[int]:
    """Returns the width of each column; 0: it is left out."""
    sizes = [column.width for column in columns]
    least = [min(column.least, size) for column, size in zip(columns, sizes, strict=True)]
    by_rank = sorted(range(len(columns)), key=lambda place: -columns[place].rank)

    def excess() -> int:
        shown = [size for size in sizes if size]
        return sum(shown) + GAP * (len(shown) - 1) - width

    for limits in ([column.enough for column in columns], least):
        for place in by_rank:
            limit = limits[place]
            if limit is not None and excess() > 0:
                sizes[place] = min(sizes[place], max(sizes[place] - excess(), limit))
    for place in by_rank[:-1]:
        if excess() > 0:
            sizes[place] = 0
    for place in reversed(by_rank):  # what the columns that went have left
        if sizes[place] and excess() < 0:
            sizes[place] = min(sizes[place] - excess(), columns[place].width)
    if excess() > 0:
        sizes[by_rank[-1]] = max(width, 0)
    return sizes


def _row(cells: Sequence[tuple[Column, int, Span]]) -> Line:
    spans: list[Span] = []
    for number, (column, size, (text, style)) in enumerate(cells):
        shown = cut(text, size)
        room = " " * (size - len(shown))
        gap = " " * GAP if number else ""
        spans.append((gap + room if column.is_right else gap, ""))
        spans.append((shown, style))
        if not column.is_right and number + 1 < len(cells):
            spans.append((room, ""))
    return tuple(span for span in spans if span[0])
