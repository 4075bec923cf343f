"""Models whose fields are explained: the docstring below a field is its description in the JSON Schema.

Pydantic reads such docstrings too, but whenever a class is made; every start of an agent would wait for that. Here they
are read when a schema is.
"""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Mapping
from functools import cache
from typing import Any

from pydantic import BaseModel, GetJsonSchemaHandler


class ExplainedModel(BaseModel):
    """Base of models whose JSON Schema has the docstring of each field as its description."""

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: Any, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        reference = handler(core_schema)
        properties = handler.resolve_ref_schema(reference).get("properties", {})
        for name, text in field_texts(cls).items():
            if name in properties:
                properties[name]["description"] = text
        return reference


def field_texts(model: type[BaseModel]) -> Mapping[str, str]:
    """Returns the docstring of each field that has one, in one line. It is empty where the source is not installed."""
    texts: dict[str, str] = {}
    for base in reversed(model.__mro__):
        if issubclass(base, BaseModel) and not base.__module__.startswith("pydantic."):
            texts |= _texts_of_module(base.__module__).get(base.__qualname__, {})
    return texts


@cache
def _texts_of_module(module: str) -> Mapping[str, Mapping[str, str]]:
    try:
        tree = ast.parse(inspect.getsource(sys.modules[module]))
    except OSError:
        return {}
    classes = (node for node in tree.body if isinstance(node, ast.ClassDef))
    return {node.name: _texts_of_class(node) for node in classes}


def _texts_of_class(node: ast.ClassDef) -> Mapping[str, str]:
    texts = {}
    for field, below in zip(node.body, node.body[1:], strict=False):
        match field, below:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                texts[name] = " ".join(text.split())
    return texts
