"""A part of a configuration, with the pages of its maker that it was checked against, as text. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import NamedTuple

WIDTH = 118
"""Breaks the lines of a comment at this many characters."""

UNCHECKED = "not checked"
"""Stands in the place of the pages where there is none."""


class Source(NamedTuple):
    """A page of a system's maker."""

    title: str
    address: str


@dataclass(frozen=True, slots=True)
class Stanza:
    """Lines of a configuration. ``sources`` are the pages in which all of its commands were found.

    ``remarks`` say what an operator must know; one may name a page of its own. The lines of a check are comments:
    an operator gives these commands afterwards.
    """

    title: str
    lines: tuple[str, ...] = ()
    sources: tuple[Source, ...] = ()
    remarks: tuple[str, ...] = ()
    is_check: bool = False


NO_LOSSLESS = Stanza(
    "PFC and ECN",
    remarks=("none, since the settings name no lossless class; the preset dcb does (dscp: dcb)",),
)


def check(lines: Iterable[str], *sources: Source) -> Stanza:
    """Returns the stanza with the commands that show whether a switch does what it was told."""
    return Stanza("Check it: the counters of a queue rise where its DSCPs lead", tuple(lines), sources, is_check=True)


def cited(source: Source) -> str:
    """Returns a page as text."""
    return f"{source.title}, {source.address}"


def render(head: Sequence[str], stanzas: Iterable[Stanza], mark: str) -> Iterator[str]:
    """Yields the lines of a configuration, whose comments begin with ``mark``."""
    yield from _comment(head, mark)
    for stanza in stanzas:
        yield ""
        yield from _comment([f"{stanza.title}."], mark)
        checked = [f"checked against: {cited(source)}" for source in stanza.sources] or [UNCHECKED]
        remarks = [_sentence(remark) for remark in stanza.remarks]
        yield from _comment([*(checked if stanza.lines else ()), *remarks], mark)
        yield from (f"{mark}   {line}" for line in stanza.lines) if stanza.is_check else stanza.lines


def _sentence(text: str) -> str:
    """Returns a remark as a sentence; an address at its end stays as it is, so that it can be copied."""
    ends_in_address = text.rpartition(" ")[2].startswith("http")
    return text[:1].upper() + text[1:] + ("" if ends_in_address else ".")


def _comment(texts: Iterable[str], mark: str) -> Iterator[str]:
    for text in texts:
        pieces = wrap(text, WIDTH - len(mark) - 1, break_long_words=False, break_on_hyphens=False)
        yield from (f"{mark} {piece}" for piece in pieces)
