"""Composes JSON of texts that are JSON already, so that a large value is written once. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

from controller.pieces import Steps

ENTRIES_A_STEP = 1024
_COMPACT = (",", ":")


def with_members(text: str, **members: str) -> str:
    """Returns the JSON object ``text`` with more members in front. Each member's value is JSON."""
    front = ",".join(f"{json.dumps(name)}:{value}" for name, value in members.items())
    rest = text[1:]
    return f"{{{front}{rest}" if rest == "}" or not front else f"{{{front},{rest}"


def texts_of(**values: Mapping[str, Any] | Sequence[Any]) -> Steps[dict[str, str]]:
    """Returns each value as compact JSON, with non-ASCII text as it is; yields where others may go on."""
    texts = {}
    for name, value in values.items():
        texts[name] = yield from text_of(value)
    return texts


def text_of(value: Mapping[str, Any] | Sequence[Any]) -> Steps[str]:
    """Returns a list or an object of many entries as JSON; yields where others may go on."""
    parts = []
    entries = iter(value.items() if isinstance(value, Mapping) else value)
    while step := list(islice(entries, ENTRIES_A_STEP)):
        part = dict(step) if isinstance(value, Mapping) else step
        parts.append(json.dumps(part, separators=_COMPACT, ensure_ascii=False)[1:-1])
        yield
    return f"{{{','.join(parts)}}}" if isinstance(value, Mapping) else f"[{','.join(parts)}]"
