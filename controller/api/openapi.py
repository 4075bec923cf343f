"""The OpenAPI 3.1 document, made from the table of calls and the wire's models."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from http import HTTPStatus
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from pydantic.json_schema import models_json_schema

from controller.api.errors import MEDIA_TYPE
from controller.api.http import JSON
from controller.api.routes import Access, Route
from controller.wire import NAME_PATTERN, Message, Problem

_REF = "#/components/schemas/{model}"
_TITLES = {200: "Done", 201: "Created", 204: "Done; no body", 304: "Not another one yet"}


def document(routes: Sequence[Route]) -> bytes:
    """The document as JSON."""
    used: set[type[Message]] = {Problem}
    for route in routes:
        used |= {model for model in (*route.answers.values(), route.body) if model is not None}
    ordered = sorted(used, key=lambda model: model.__name__)
    _, schemas = models_json_schema([(model, "validation") for model in ordered], ref_template=_REF)
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route)
    return json.dumps(
        {
            "openapi": "3.1.0",
            "info": {
                "title": "Trainyard",
                "version": _version(),
                "description": "Network scheduling for distributed deep learning: jobs, reports, plans.",
            },
            "paths": paths,
            "components": {
                "schemas": schemas["$defs"],
                "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
                "responses": {
                    "Problem": {
                        "description": "What was wrong, and where (RFC 9457)",
                        "content": {MEDIA_TYPE: {"schema": {"$ref": _REF.format(model="Problem")}}},
                    }
                },
            },
        }
    ).encode()


def _operation(route: Route) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "operationId": route.handler.__name__,
        "summary": route.summary,
        "parameters": _parameters(route),
        "responses": {str(status): _answer(route, status) for status in route.answers}
        | {"default": {"$ref": "#/components/responses/Problem"}},
        "security": [] if route.access is Access.OPEN else [{"bearer": []}],
    }
    if route.body is not None:
        operation["requestBody"] = {"required": True, "content": _content(JSON, route.body)}
    return operation


def _parameters(route: Route) -> list[dict[str, Any]]:
    names = re.findall(r"\{(\w+)\}", route.path)
    pattern = {"type": "string", "pattern": NAME_PATTERN}
    found: list[dict[str, Any]] = [{"name": name, "in": "path", "required": True, "schema": pattern} for name in names]
    asked = [(name, "query", parameter.text, parameter.schema) for name, parameter in route.query.items()]
    if HTTPStatus.NOT_MODIFIED in route.answers:
        text = "The entity tag that is known: answers 304 as long as it is still the one"
        asked.append(("If-None-Match", "header", text, {"type": "string"}))
    for name, place, text, schema in asked:
        found.append({"name": name, "in": place, "required": False, "description": text, "schema": schema})
    return found


def _answer(route: Route, status: int) -> dict[str, Any]:
    answer: dict[str, Any] = {"description": _TITLES[status]}
    model = route.answers[status]
    if model is not None:
        answer["content"] = _content(JSON, model)
    elif status == HTTPStatus.OK:
        answer["content"] = {route.media_type: {"schema": {"type": "object" if route.media_type == JSON else "string"}}}
    if HTTPStatus.NOT_MODIFIED in route.answers:
        answer["headers"] = {"ETag": {"description": "Its entity tag, for If-None-Match", "schema": {"type": "string"}}}
    return answer


def _content(media_type: str, model: type[Message]) -> dict[str, Any]:
    return {media_type: {"schema": {"$ref": _REF.format(model=model.__name__)}}}


def _version() -> str:
    try:
        return version("trainyard")
    except PackageNotFoundError:
        return "0"
