"""What a record says of a thing before and after a change: small, and without secrets. Pure."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Collection, Mapping
from typing import Any

from pydantic import BaseModel, SecretBytes, SecretStr

Facts = Mapping[str, Any]
SECRET = "(secret)"  # noqa: S105 - it stands for a secret, and is none
MOST_TEXT = 200
"""Cut longer texts off after so many characters."""
MOST_ENTRIES = 16
"""Of a larger list or mapping only the number of its entries and the hash of its text are kept."""
MOST_CHARACTERS = 4096
"""Of a side whose JSON is longer, too, only the number of its members and the hash are kept."""
_MOST_DEPTH = 4


def differing(before: Facts | None, after: Facts | None) -> tuple[dict[str, Any] | None, dict[str, Any] | None]:
    """Returns both sides with only the members that differ, as ``plain`` makes them. None: there is no such side."""
    if before is None or after is None:
        return _side(before, before or ()), _side(after, after or ())
    names = {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
    return _side(before, names), _side(after, names)


def _side(facts: Facts | None, names: Collection[str]) -> dict[str, Any] | None:
    if facts is None:
        return None
    side = {name: plain(value) for name, value in facts.items() if name in names}
    return side if len(json.dumps(side)) <= MOST_CHARACTERS else _summary(side)


def plain(value: Any, depth: int = 0) -> Any:
    """Returns a value as JSON of limited size. A secret, known by its type, becomes ``SECRET``."""
    if isinstance(value, SecretStr | SecretBytes | bytes):
        return SECRET
    if isinstance(value, BaseModel):
        return plain({name: getattr(value, name) for name in type(value).model_fields}, depth)
    if isinstance(value, Mapping | list | tuple | set | frozenset):
        return _collection(value, depth)
    if value is None or isinstance(value, bool | int) or (isinstance(value, float) and math.isfinite(value)):
        return value
    text = str(value)
    return text if len(text) <= MOST_TEXT else text[:MOST_TEXT] + "..."


def _collection(value: Any, depth: int) -> Any:
    if isinstance(value, set | frozenset):
        value = sorted(value, key=str)
    if len(value) > MOST_ENTRIES or depth >= _MOST_DEPTH:
        return _summary(value)
    if isinstance(value, Mapping):
        return {str(name)[:MOST_TEXT]: plain(each, depth + 1) for name, each in value.items()}
    return [plain(each, depth + 1) for each in value]


def _summary(value: Any) -> dict[str, Any]:
    text = json.dumps(value, default=_hidden, sort_keys=True)
    return {"entries": len(value), "sha256": hashlib.sha256(text.encode()).hexdigest()}


def _hidden(value: Any) -> Any:
    """Returns what stands in a hash for a value that is no JSON. The hash of a secret could be guessed."""
    return SECRET if isinstance(value, SecretStr | SecretBytes | bytes) else str(value)
