"""Names and values in a line: ``lm loss: 2.5``, ``val_loss=0.4``, ``{'loss': '0.5'}``. Pure, in linear time."""

from __future__ import annotations

import re
from collections.abc import Mapping

from host_reporter.formats.names import VALIDATION_WORDS, is_validation
from host_reporter.formats.numbers import NUMBER, NUMBER_ENDS, number

MAX_PAIRS = 200
"""Read at most so many pairs of one line."""

_WORD = r"[A-Za-z_][\w./@-]*+"
_PAIR = re.compile(
    rf"(?<![\w./@%-])(?P<name>{_WORD}(?>(?: [A-Za-z_(][\w./@()-]*+){{0,3}}))[\"']?\s{{0,8}}+[:=]\s{{0,8}}+"
    rf"(?P<value>{NUMBER}){NUMBER_ENDS}"
)
_QUOTED = re.compile(
    r"[\"'](?P<name>[^\"'\n]{1,100}+)[\"']\s{0,4}+:\s{0,4}+"
    r"(?:[\"'](?P<text>[^\"'\n]{0,100}+)[\"']|(?P<value>[^\s,{}\[\]\"'()]{1,60}+(?:\([^()\n]{0,100}+\))?))"
)
_WORDS_BEFORE = re.compile(r"[A-Za-z_][\w./@-]*")
_QUALIFIERS = VALIDATION_WORDS | {"train", "training", "lm"}


def pairs(text: str) -> dict[str, float]:
    """Returns the numbers of the text by their names, the first of each name, in their order."""
    found: dict[str, float] = {}
    for match in _PAIR.finditer(text):
        value = number(match["value"])
        if value is not None:
            found.setdefault(match["name"].strip(), value)
        if len(found) >= MAX_PAIRS:
            break
    return found


def quoted_pairs(text: str) -> dict[str, str]:
    """Returns the values of a dict or an object that stands in the text, by their keys, inner ones too."""
    found: dict[str, str] = {}
    for match in _QUOTED.finditer(text):
        value = match["text"] if match["text"] is not None else match["value"]
        found.setdefault(match["name"], value)
        if len(found) >= MAX_PAIRS:
            break
    return found


def validated(metrics: Mapping[str, float]) -> dict[str, float]:
    """Returns the metrics of a validation: ``validation`` stands before each name that does not say it."""
    return {name if is_validation(name) else f"validation {name}": value for name, value in metrics.items()}


def name_before(text: str, place: int) -> str | None:
    """Returns the name of the value at ``place``: the word before it, with ``val`` or the like before that."""
    before = text[max(0, place - 60) : place]
    found = list(_WORDS_BEFORE.finditer(before))
    if not found or len(before) - found[-1].end() > 12:
        return None
    last = found[-1].group()
    if len(found) > 1 and found[-2].group().lower() in _QUALIFIERS and found[-1].start() - found[-2].end() <= 2:
        return f"{found[-2].group()} {last}"
    return last
