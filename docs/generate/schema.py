"""The fields of a message or of a section of settings, from its JSON Schema: default, range and meaning."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from controller.wire import NAME_PATTERN
from controller.wire.addresses import MAX_DPID
from docs.generate.markdown import code, prose, table

Schema = Mapping[str, Any]
Link = Callable[[str], str]
"""Returns the Markdown that names another model."""


@dataclass(frozen=True)
class Field:
    """A field. ``default`` of None: the field must be given. ``model``: the model of its value, or of the items."""

    name: str
    allowed: str
    default: str | None
    meaning: str
    model: str | None


def fields(name: str, schema: Schema, link: Link) -> Iterator[Field]:
    """Yields the fields of the model ``name``. Raises MissingTextError for one without a description."""
    required = schema.get("required", ())
    for field, value in schema.get("properties", {}).items():
        yield Field(
            name=field,
            allowed=allowed(value, link),
            default=None if field in required else _default(value),
            meaning=prose(value.get("description"), f"the field {field} of {name}"),
            model=model_of(value),
        )


def field_table(name: str, schema: Schema, link: Link, *, word: str, has_defaults: bool = True) -> str:
    """Returns the table of the fields of the model ``name``; ``word`` is what a field is called there."""
    rows = []
    for field in fields(name, schema, link):
        default = [field.default if field.default is not None else "required"] if has_defaults else []
        rows.append([code(field.name), *default, field.allowed, field.meaning])
    return table([word, *(["default"] if has_defaults else []), "values", "meaning"], rows)


def allowed(value: Schema, link: Link) -> str:
    """Returns in words what a value may be."""
    if alternatives := value.get("anyOf", value.get("oneOf")):
        return " or ".join(allowed(one, link) for one in alternatives)
    if "$ref" in value:
        return link(_model_name(value["$ref"]))
    if "const" in value:
        return code(value["const"])
    if "enum" in value:
        return ", ".join(map(code, value["enum"]))
    words: Mapping[str, Callable[[Schema], str]] = {
        "boolean": lambda _: "true or false",
        "null": lambda _: "null",
        "integer": lambda one: _number("whole number", one),
        "number": lambda one: _number("number", one),
        "string": _text,
        "array": lambda one: _list(one, link),
        "object": lambda one: _map(one, link),
    }
    return words[value["type"]](value) if "type" in value else "any value"


def model_of(value: Schema) -> str | None:
    """Returns the name of the model that a value or its parts have; None where they have none."""
    if "$ref" in value:
        return _model_name(value["$ref"])
    parts = [
        *value.get("anyOf", ()),
        *value.get("oneOf", ()),
        value.get("items", {}),
        value.get("additionalProperties", {}),
    ]
    return next((name for part in parts if isinstance(part, Mapping) and part and (name := model_of(part))), None)


def number_text(value: float) -> str:
    """Returns a number as people write it."""
    if value == MAX_DPID:
        return "2^64 - 1"
    if isinstance(value, int) or (value.is_integer() and abs(value) < 1e6):
        return str(int(value))
    return short_exponents(f"{value:g}")


def short_exponents(text: str) -> str:
    """Returns a text with numbers such as 1e+09 and 1e-06 written as 1e9 and 1e-6."""
    return re.sub(r"(?<=\de)(\+|-)0?(?=\d)", lambda sign: sign[1].strip("+"), text)


def _default(value: Schema) -> str:
    if "default" not in value:
        return "of its fields" if "$ref" in value else code("{}")
    default = value["default"]
    if default is None:
        return "none"
    if isinstance(default, dict):
        return "of its fields"
    if isinstance(default, list):
        return "none" if not default else code(", ".join(map(str, default)))
    if isinstance(default, bool):
        return code(str(default).lower())
    return code(number_text(default) if isinstance(default, int | float) else default)


def _number(kind: str, value: Schema) -> str:
    low, high = value.get("minimum", value.get("ge")), value.get("maximum", value.get("le"))
    above, below = value.get("exclusiveMinimum"), value.get("exclusiveMaximum")
    if low is not None and high is not None:
        return f"{kind} from {number_text(low)} to {number_text(high)}"
    limits = [("at least", low), ("above", above), ("at most", high), ("below", below)]
    texts = [f"{word} {number_text(limit)}" for word, limit in limits if limit is not None]
    return f"{kind} {' and '.join(texts)}" if texts else kind


def _text(value: Schema) -> str:
    if value.get("pattern") == NAME_PATTERN:
        return "name"
    if value.get("format") == "path":
        return "path"
    least = "not empty" if value.get("minLength") else ""
    most = f"at most {value['maxLength']} characters" if "maxLength" in value else ""
    return ", ".join(part for part in ("text", least, most) if part)


def _list(value: Schema, link: Link) -> str:
    most = f", at most {value['maxItems']}" if "maxItems" in value else ""
    return f"list of {allowed(value.get('items', {}), link)}{most}"


def _map(value: Schema, link: Link) -> str:
    patterns = value.get("patternProperties", {})
    inner = next(iter(patterns.values()), value.get("additionalProperties"))
    if not isinstance(inner, Mapping):
        return "map"
    key = "name" if NAME_PATTERN in patterns or value.get("propertyNames", {}).get("pattern") == NAME_PATTERN else "key"
    return f"map from {key} to {allowed(inner, link)}"


def _model_name(reference: str) -> str:
    return reference.rpartition("/")[2]
