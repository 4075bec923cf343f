"""The reference of the REST API, from its OpenAPI document and its table of calls."""

from __future__ import annotations

import json
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from controller.access.caller import Role
from controller.api.access import Access
from controller.api.openapi import document
from controller.api.routes import ROUTES
from controller.config.config import Api
from docs.generate.markdown import code, heading, prose, sentence, table
from docs.generate.schema import Schema, allowed, field_table

_WHOSE = {Role.TENANT: "a tenant (for its own jobs)", Role.HOST: "a host (for what is its own)"}
_OIDC = {"issuer": "i", "audience": "a", "keys": "https://i/keys", "roles": {"v": "viewer", "t": "tenant"}}
_EVERY_KIND = Api.model_validate(
    {"token": "token-of-operators", "host_tokens": {"host": "token-of-host"}, "oidc": _OIDC}
)
"""Settings with which callers of every role may come."""


def reference() -> str:
    """Returns the Markdown."""
    described: dict[str, Any] = json.loads(document(ROUTES, _EVERY_KIND))
    text = "## Calls\n\n"
    for route in ROUTES:
        operation = described["paths"][route.path][route.method.lower()]
        call = f"{route.method} {route.path}"
        text += heading(3, code(call), operation["operationId"].replace("_", "-"))
        text += f"{sentence(operation['summary'], call)} {_who(route.access)}\n\n"
        text += _parameters(call, operation) + _answers(operation)
    text += heading(2, "Refusals", "refusals") + "The body of each is a [Problem](#problem).\n\n"
    text += _refusals(described["components"]["responses"]) + "## Bodies\n\n"
    for name, schema in described["components"]["schemas"].items():
        if "properties" in schema:
            text += heading(3, code(name), name.lower()) + prose(schema.get("description"), name) + "\n\n"
            text += field_table(name, schema, lambda other: _link(other, described), word="field")
    return text


def _who(access: Access) -> str:
    """Returns which roles may make a call, as a sentence."""
    if access is Access.OPEN:
        return "Anybody may use it."
    named = [_WHOSE.get(role, f"{'an' if role is Role.OPERATOR else 'a'} {role}") for role in access.roles]
    listed = ", ".join(named[:-1]) + (" and " if named[:-1] else "") + named[-1]
    return f"{listed[0].upper()}{listed[1:]} may use it."


def _link(model: str, described: Mapping[str, Any]) -> str:
    schema = described["components"]["schemas"][model]
    return ", ".join(map(code, schema["enum"])) if "enum" in schema else f"[{model}](#{model.lower()})"


def _parameters(call: str, operation: Mapping[str, Any]) -> str:
    rows = []
    for parameter in operation["parameters"]:
        schema: Schema = parameter["schema"]
        meaning = sentence(parameter.get("description"), f"the parameter {parameter['name']} of {call}")
        rows.append([code(parameter["name"]), parameter["in"], allowed(schema, str), meaning])
    if "requestBody" in operation:
        rows.append(["body", "body", _body(operation["requestBody"]), "Required."])
    return table(["parameter", "place", "values", "meaning"], rows) if rows else ""


def _answers(operation: Mapping[str, Any]) -> str:
    answers = [(status, answer) for status, answer in operation["responses"].items() if "$ref" not in answer]
    rows = [
        [status, sentence(answer["description"], f"the status {status}"), _body(answer)] for status, answer in answers
    ]
    refusals = ", ".join(
        status for status in operation["responses"] if status.isdigit() and status not in dict(answers)
    )
    return table(["status", "meaning", "body"], rows) + f"[Refusals](#refusals): {refusals}.\n\n"


def _refusals(responses: Mapping[str, Any]) -> str:
    statuses = {status.phrase.title().replace(" ", ""): status for status in HTTPStatus}
    rows = [
        [str(int(statuses[name])), sentence(answer["description"], f"the status {name}")]
        for name, answer in responses.items()
        if name in statuses
    ]
    return table(["status", "meaning"], rows)


def _body(part: Mapping[str, Any]) -> str:
    for media_type, content in part.get("content", {}).items():
        reference = content["schema"].get("$ref")
        if reference is None:
            return code(media_type)
        model = reference.rpartition("/")[2]
        return f"[{model}](#{model.lower()})"
    return "none"
