"""Words the faults of values that a model refused: a sentence says what the value is, and what would be right.

This module is pure: it turns pydantic's faults into words. All readers of files, options and requests use it, so none
shows the words of a library.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

from controller.documents.document import Document, FieldPath

_SHOULD = re.compile(r"\A[^,:']*? should ")
_WORDS = (
    ("a valid dictionary", "a mapping"),
    ("a dictionary", "a mapping"),
    ("a valid frozenset", "a valid list"),
    ("a valid set", "a valid list"),
    ("a valid tuple", "a valid list"),
    ("a valid deque", "a valid list"),
    ("a tuple", "a list"),
    # What JSON's own texts are refused with.
    ("a valid array", "a valid list"),
    ("an object", "a mapping"),
)
_KEY = "[key]"
"""Pydantic writes this in a location when the key of a mapping is at fault, and not its value."""

MOST_SHOWN = 10**20
_LONGEST_KEY = 80
"""Look for keys that are like no more than so many characters of an unknown key."""
_NAMES = "1 to 63 letters, digits, dots, dashes and underscores, and begin with a letter or a digit"
_PATTERNS: Mapping[str, str] = {
    r"^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$": f"be {_NAMES}",
    r"^[^\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]*$": (
        "hold no control characters and none that turn the direction of the text"
    ),
    r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,14}$": (
        "be the name of an interface: up to 15 letters, digits, dots, dashes and underscores"
    ),
    r"^[A-Za-z0-9][A-Za-z0-9._-]{0,62}(/[A-Za-z0-9][A-Za-z0-9_.-]{0,14})?$": (
        "be the name of a server, or SERVER/INTERFACE for one of its interfaces"
    ),
    r"^[0-9a-f]{64}$": "be 64 hexadecimal digits, with small letters",
    r"^[a-z][a-z0-9_]{0,30}$": ("be up to 31 small letters, digits and underscores, and begin with a letter"),
    r"^/[^/\x00-\x1f][^\x00-\x1f]*$": "begin with one slash, have more behind it, and hold no control characters",
    r"^[A-Za-z_][A-Za-z0-9_]*$": "be letters, digits and underscores, and not begin with a digit",
}
"""The regular expressions of our models in words that follow "it should"."""


def described(
    error: ValidationError, data: Any, model: type[BaseModel] | None, most: int | None = None
) -> list[tuple[FieldPath, str]]:
    """Returns each fault of a refusal: its path, and a sentence such as "is the number 8; it should be at most 7".

    ``data`` is what the model refused; with None the paths are pydantic's own. ``model`` has the keys that exist, so
    that a mistyped key is answered with the nearest. The faults of several alternatives at one path become one fault. A
    value whose path has "token" in it is never shown. ``most``: describe no more of pydantic's faults; None: all.
    """
    groups: dict[tuple[FieldPath, int], list[Mapping[str, Any]]] = {}
    for number, fault in enumerate(error.errors(include_url=False)[:most]):
        path, is_alternative = (
            (fault["loc"], False) if data is None else placed(fault["loc"], data, fault["type"], model)
        )
        groups.setdefault((path, -1 if is_alternative else number), []).append(fault)
    return [(path, sentence(faults, path, model)) for (path, _), faults in groups.items()]


def described_with_lines(
    error: ValidationError, document: Document, model: type[BaseModel]
) -> list[tuple[FieldPath, int, str]]:
    """Returns the faults of a document's values as ``described`` gives them, each with its line after its path."""
    faults = described(error, document.data, model)
    lines = document.lines([path for path, _ in faults])
    return [(path, line, said) for (path, said), line in zip(faults, lines, strict=True)]


def in_lines(faults: Iterable[tuple[FieldPath, str]]) -> list[str]:
    """Returns faults, as ``described`` gives them, as texts such as ``spec.tasks.0.role: what is wrong``."""
    return [f"{'.'.join(map(str, path))}: {said}" if path else said for path, said in faults]


def placed(
    loc: Sequence[str | int], data: Any, kind: str, model: type[BaseModel] | None = None
) -> tuple[FieldPath, bool]:
    """Returns the path in ``data`` of a fault without pydantic's names of alternatives, and whether it had any."""
    path: list[str | int] = []
    is_alternative = False
    value = data
    for number, part in enumerate(loc):
        if _holds(value, part):
            value = value[part]
        elif (kind == "missing" and number == len(loc) - 1) or part in _keys_at(model, tuple(path)):
            # A key that is not given: it is missing, or its default does not fit.
            value = None
        else:
            is_alternative = is_alternative or part != _KEY
            continue
        path.append(part)
    return tuple(path), is_alternative


def sentence(faults: Sequence[Mapping[str, Any]], path: FieldPath, model: type[BaseModel] | None = None) -> str:
    """Returns what is wrong with the value at a path. There are several faults where the value has alternatives.

    The sentence names the value where the faults hold it ("input") and its path does not have "token" in it.
    """
    first = faults[0]
    if (whole := _whole_sentence(first, path, model)) is not None:
        return whole
    should = f"it should {' or '.join(dict.fromkeys(wanted(fault) for fault in faults))}"
    if "input" not in first:
        return should
    if any("token" in str(part) for part in path):
        return f"is not usable; {should} (in quotes)"
    return f"is {kind_of(first['input'])}; {should}"


def wanted(fault: Mapping[str, Any]) -> str:
    """Returns what would be right, to follow "it should": "be a valid number", "have at least 1 item"."""
    if (words := _WANTED.get(fault["type"])) is not None:
        return words(fault.get("ctx", {}))
    message = str(fault["msg"])
    if _SHOULD.match(message) is None:
        # A library's own sentence, such as on a cycle in the values.
        return f"be right: {message[:1].lower()}{message[1:]}"
    text = _SHOULD.sub("", message, count=1)
    for theirs, ours in _WORDS:
        text = text.replace(theirs, ours)
    # What follows a comma is how the library came to it.
    return text if fault["type"] in ("literal_error", "enum") else text.partition(", ")[0]


_WANTED: Mapping[str, Callable[[Mapping[str, Any]], str]] = {
    "too_short": lambda context: f"have at least {_items(context['min_length'])}",
    "too_long": lambda context: f"have at most {_items(context['max_length'])}",
    "string_pattern_mismatch": lambda context: _PATTERNS.get(
        context["pattern"], f"match the regular expression {context['pattern']}"
    ),
    "int_parsing_size": lambda _: "be a whole number of fewer digits",
    "path_type": lambda _: "be a path",
    "invalid_key": lambda _: "have keys that are texts",
    "union_tag_invalid": lambda context: f"have as {context['discriminator']} one of {context['expected_tags']}",
    "union_tag_not_found": lambda context: f"have {context['discriminator']}, which says what it is",
    **dict.fromkeys(("model_type", "model_attributes_type", "dataclass_type"), lambda _: "be a mapping"),
}


def kind_of(value: object) -> str:
    """Returns what people call a value, never a whole document."""
    if isinstance(value, bool):
        return f"the truth value {str(value).lower()}"
    if isinstance(value, int):
        return f"the number {value}" if abs(value) < MOST_SHOWN else "a number of more than 20 digits"
    if isinstance(value, float):
        return f"the number {value:g}"
    if isinstance(value, str):
        return f"the text {value[:40]!r}"
    if isinstance(value, Collection):
        what = "mapping" if isinstance(value, Mapping) else "list"
        return f"a {what}" if value else f"an empty {what}"
    return "empty" if value is None else f"a {type(value).__name__}"


def unknown_key(key: object, known: Iterable[str]) -> str:
    """Returns the sentence for a key that does not exist."""
    names = sorted(known)
    near = difflib.get_close_matches(str(key)[:_LONGEST_KEY], names, n=1)
    return f"unknown key; did you mean {near[0]}?" if near else f"unknown key; there are: {', '.join(names)}"


def _whole_sentence(fault: Mapping[str, Any], path: FieldPath, model: type[BaseModel] | None) -> str | None:
    """Returns the sentence of a fault that needs no description of its value, or None."""
    kind = fault["type"]
    if kind == "extra_forbidden":
        known = _keys_at(model, path[:-1])
        return unknown_key(path[-1], known) if known else "unknown key; leave it out"
    if kind == "missing":
        return "is missing; it must be given"
    if kind in ("value_error", "assertion_error"):
        return str(fault["msg"]).removeprefix("Value error, ").removeprefix("Assertion failed, ")
    if kind == "json_invalid":
        return f"is not valid JSON: {fault['ctx']['error']}"
    return None


def _holds(value: Any, part: str | int) -> bool:
    if isinstance(value, Mapping):
        return part in value
    return isinstance(value, list | tuple) and isinstance(part, int) and part < len(value)


def _items(count: int) -> str:
    return f"{count} item{'' if count == 1 else 's'}"


def _keys_at(model: type[BaseModel] | None, path: FieldPath) -> list[str]:
    """Returns the keys of the section at ``path``."""
    if model is None:
        return []
    current: type[BaseModel] = model
    for part in path:
        if isinstance(part, int) or part not in current.model_fields:
            continue
        nested = _section(current.model_fields[part].annotation)
        if nested is not None:
            current = nested
    return sorted(current.model_fields)


def _section(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    for inner in get_args(annotation):
        if (section := _section(inner)) is not None:
            return section
    return None
