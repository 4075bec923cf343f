"""The OpenAPI 3.1 document, generated from the table of calls and the wire's models."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from http import HTTPStatus
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from pydantic.json_schema import models_json_schema

from controller.access.caller import Role
from controller.api.access import Access
from controller.api.errors import MEDIA_TYPE
from controller.api.http import JSON
from controller.api.routes import Route
from controller.config.config import Api
from controller.wire import NAME_PATTERN, Message, Problem

_REF = "#/components/schemas/{model}"
_TITLES = {200: "Done", 201: "Created", 204: "Done; no body", 304: "Not changed since the given entity tag"}
_PROBLEMS = {
    400: "The request is not HTTP, or its body is not JSON",
    401: "A bearer token is required, or the given one is unknown",
    403: "The caller's role does not allow this, or not for this job; without tokens: the request is addressed to a "
    "name that is not this machine's",
    404: "The path names nothing that exists, or something that does not belong to the caller",
    408: "The request did not come in time",
    409: "The request contradicts the present state",
    413: "The body is too large",
    415: "The body is not application/json",
    429: "Too many wrong tokens have come from this address, or too many requests of this caller are in progress; "
    "Retry-After says when to ask again",
    422: "A field of the path, the query or the body is wrong; errors names each",
    503: "The controller cannot answer now; Retry-After says when to ask again",
}


_NAME = {"type": "string", "pattern": NAME_PATTERN}
_NAMED = {
    "jobs": ("job", _NAME),
    "stages": ("stage", _NAME),
    "hosts": ("host", _NAME),
    "parts": ("host", _NAME),
    "families": ("family; slashes are percent-encoded or not", {"type": "string", "minLength": 1, "maxLength": 127}),
}
"""What the part of a path behind each of these names, and its schema."""


def document(routes: Sequence[Route], api: Api) -> bytes:
    """Returns the document as JSON, for an API with these settings."""
    used: set[type[Message]] = {Problem}
    for route in routes:
        used |= {model for model in (*route.answers.values(), route.body) if model is not None}
    ordered = sorted(used, key=lambda model: model.__name__)
    _, schemas = models_json_schema([(model, "validation") for model in ordered], ref_template=_REF)
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, api)
    components: dict[str, Any] = {
        "schemas": schemas["$defs"],
        "responses": {_name(status): _problem(text) for status, text in _PROBLEMS.items()}
        | {"Problem": _problem("The error, and the fields at fault (RFC 9457)")},
    }
    if schemes := _schemes(api):
        components["securitySchemes"] = schemes
    return json.dumps(
        {
            "openapi": "3.1.0",
            "info": {
                "title": "Trainyard",
                "version": _version(),
                "description": "Network scheduling for distributed deep learning: jobs, reports, plans.",
            },
            "paths": paths,
            "components": components,
        }
    ).encode()


def _operation(route: Route, api: Api) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "operationId": route.handler.__name__,
        "summary": route.summary,
        "parameters": _parameters(route),
        "responses": {str(status): _answer(route, status) for status in route.answers}
        | {str(status): _refusal(_name(status)) for status in _refusals(route, api)}
        | {"default": _refusal("Problem")},
    }
    if api.is_guarded:
        operation["security"] = [] if route.access is Access.OPEN else [{name: []} for name in _schemes(api)]
        operation["x-roles"] = list(map(str, route.access.roles))
    if route.body is not None:
        operation["requestBody"] = {"required": True, "content": _content(JSON, route.body)}
    return operation


def _refusals(route: Route, api: Api) -> list[int]:
    """Returns the error statuses of a call, for an API with these settings."""
    statuses = {400, 408, 503} | set(route.refusals)
    if route.body is not None:
        statuses |= {413, 415}
    if route.access is Access.OPEN:
        return sorted(statuses)
    statuses.add(422)
    if not api.is_guarded:
        return sorted(statuses | {403})
    statuses |= {401, 429}
    others = _roles(api) - {Role.OPERATOR}
    if not others:  # an operator's token allows every call
        statuses.discard(403)
    elif not others <= set(route.access.roles):
        statuses.add(403)
    return sorted(statuses)


def _roles(api: Api) -> set[Role]:
    """Returns the roles that callers can have. A tokens file may have all, now or when it has changed."""
    if api.tokens_file is not None:
        return set(Role)
    roles = {Role.OPERATOR} | ({Role.HOST} if api.host_tokens or api.client_authority is not None else set())
    return roles | (set(map(Role, api.oidc.roles.values())) if api.oidc is not None else set())


def _schemes(api: Api) -> dict[str, Any]:
    """Returns how callers may prove who they are; nothing where they need not."""
    schemes: dict[str, Any] = {}
    if any((api.token, api.tokens_file, api.oidc)):
        schemes["bearer"] = {"type": "http", "scheme": "bearer"}
    if api.client_authority is not None:
        schemes["certificate"] = {"type": "mutualTLS"}
    return schemes


def _refusal(name: str) -> dict[str, Any]:
    return {"$ref": f"#/components/responses/{name}"}


def _name(status: int) -> str:
    """Returns the component name of a status, such as NotFound for 404."""
    return HTTPStatus(status).phrase.title().replace(" ", "")


def _problem(description: str) -> dict[str, Any]:
    return {
        "description": description,
        "content": {MEDIA_TYPE: {"schema": {"$ref": _REF.format(model="Problem")}}},
    }


def _parameters(route: Route) -> list[dict[str, Any]]:
    places = re.findall(r"/(\w+)/\{(\w+)\}", route.path)
    parameters: list[dict[str, Any]] = [
        {"name": name, "in": "path", "required": True, "description": f"The name of the {kind}", "schema": schema}
        for folder, name in places
        for kind, schema in (_NAMED[folder],)
    ]
    optional = [(name, "query", parameter.text, parameter.schema) for name, parameter in route.query.items()]
    if HTTPStatus.NOT_MODIFIED in route.answers:
        text = "The known entity tag; the answer is 304 as long as it is still valid"
        optional.append(("If-None-Match", "header", text, {"type": "string"}))
    if route.header is not None:
        optional.append((route.header[0], "header", route.header[1], {"type": "string"}))
    for name, location, text, schema in optional:
        parameters.append({"name": name, "in": location, "required": False, "description": text, "schema": schema})
    return parameters


def _answer(route: Route, status: int) -> dict[str, Any]:
    answer: dict[str, Any] = {"description": _TITLES[status]}
    model = route.answers[status]
    if model is not None:
        answer["content"] = _content(route.media_type, model)
    elif status == HTTPStatus.OK:
        answer["content"] = {route.media_type: {"schema": {"type": "object" if route.media_type == JSON else "string"}}}
    if HTTPStatus.NOT_MODIFIED in route.answers:
        answer["headers"] = {"ETag": {"description": "The entity tag, for If-None-Match", "schema": {"type": "string"}}}
    return answer


def _content(media_type: str, model: type[Message]) -> dict[str, Any]:
    return {media_type: {"schema": {"$ref": _REF.format(model=model.__name__)}}}


def _version() -> str:
    try:
        return version("trainyard")
    except PackageNotFoundError:
        return "0"
