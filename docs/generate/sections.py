"""A model and the models inside it, as sections that are named by their place in the file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from docs.generate.markdown import code, heading, prose
from docs.generate.schema import Schema, field_table, fields


def sections(schema: Schema, *, word: str) -> str:
    """Returns the table of the model's own fields, and a section with a table for each model inside it."""
    definitions: Mapping[str, Schema] = schema.get("$defs", {})
    places = dict(_places("", schema, definitions))
    text = ""
    for place, (name, model) in {"": (str(schema["title"]), schema), **places}.items():
        prefix = f"{place}." if place else ""
        children = {
            field.model: f"{prefix}{field.name}"
            for field in fields(name, model, lambda _: "")
            if field.model in definitions and f"{prefix}{field.name}" in places
        }

        def link(target: str, children: Mapping[str | None, str] = children) -> str:
            if target in children:
                return f"[{children[target]}](#{_anchor(children[target])})"
            return _values(definitions[target])

        if place:
            text += heading(2 + place.count("."), code(place), _anchor(place))
            text += prose(model.get("description"), f"the section {place}") + "\n\n"
        text += field_table(name, model, link, word=word)
    return text


def _places(prefix: str, model: Schema, definitions: Mapping[str, Schema]) -> Iterator[tuple[str, tuple[str, Schema]]]:
    for field in fields(str(model["title"]), model, lambda _: ""):
        if field.model is not None and "properties" in definitions[field.model]:
            place = f"{prefix}{field.name}"
            yield place, (field.model, definitions[field.model])
            yield from _places(f"{place}.", definitions[field.model], definitions)


def _anchor(place: str) -> str:
    return place.replace(".", "-")


def _values(definition: Schema) -> str:
    return ", ".join(map(code, definition.get("enum", ())))
