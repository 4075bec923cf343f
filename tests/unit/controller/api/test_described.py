"""The OpenAPI document against the API itself: every status that it names for a call is driven, and no other comes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from typing import Any

import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator

from controller.api.openapi import document
from controller.api.routes import ROUTES
from controller.config.config import Api
from evaluation.bench.support.api_client import HOST, Controller
from tests.support.controller.api import from_address
from tests.support.controller.api.cases import spec

OPEN = Api()
GUARDED = Api.model_validate({"token": "operators-own"})
WITH_HOSTS = Api.model_validate({"token": "operators-own", "host_tokens": {"h1": "of-host-h1"}})
OIDC = {"issuer": "i", "audience": "a", "keys": "https://i/keys", "roles": {"v": "viewer", "t": "tenant"}}
WITH_PROVIDER = Api.model_validate({"oidc": OIDC})


@pytest.fixture(scope="module")
def yard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Controller]:
    controller = Controller(tmp_path_factory.mktemp("described")).start()
    yield controller
    controller.stop()


def described(api: Api) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(document(ROUTES, api))
    return found


def operations(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield method.upper(), path, operation


def named(operation: dict[str, Any]) -> set[str]:
    return operation["responses"].keys() - {"default"}


@pytest.mark.parametrize("api", [OPEN, GUARDED, WITH_HOSTS, WITH_PROVIDER])
def test_the_document_is_right_by_the_specification(api: Api) -> None:
    OpenAPIV31SpecValidator(described(api)).validate()


def test_tokens_are_asked_for_only_where_one_is_set() -> None:
    for _, path, operation in operations(described(OPEN)):
        assert "security" not in operation
        assert "401" not in named(operation)
        assert ("403" in named(operation)) is (path not in ("/healthz", "/readyz")), "of a foreign page in a browser"
    assert "securitySchemes" not in described(OPEN)["components"]
    for _, path, operation in operations(described(GUARDED)):
        is_open = path in ("/healthz", "/readyz")
        assert operation["security"] == ([] if is_open else [{"bearer": []}])
        assert ("401" in named(operation)) is not is_open
        assert "403" not in named(operation), "an operator may do everything"
    refused = {f"{method} {path}" for method, path, found in operations(described(WITH_HOSTS)) if "403" in named(found)}
    assert {"GET /v1/jobs", "PUT /v1/jobs/{id}", "PATCH /v1/settings"} <= refused
    assert not refused & {"DELETE /v1/jobs/{id}/parts/{host}", "POST /v1/hosts/{host}/reports", "GET /healthz"}


def every_kind(yard: Controller, method: str, path: str, has_body: bool) -> Iterator[int]:
    """The statuses of requests that are wrong in every way in which any call can be."""

    def ask(name: str = "nobody", query: str = "", body: Any = None, **options: Any) -> int:
        at = path.replace("{id}", name).replace("{host}", name).replace("{name}", name) + query
        sent = body if body is not None else _right(path) if has_body else None
        # Events have no end, and nothing of them is read here.
        with yard.call(method, at, sent, stream=path == "/v1/events", **options) as reply:
            return int(reply.status_code)

    yield _with_a_wrong_token(yard, method, path, _right(path) if has_body else None)
    yield ask(name="h1", token=HOST, body=_forbidden(path) if has_body else None)
    yield ask()
    yield ask(query="?no_such=1")
    if "{" in path:
        yield ask(name="-bad")
    if path == "/v1/history":
        yield ask(query="?jobs=nobody")
    if has_body:
        yield ask(name="h1", body=None, data="{}", headers={"Content-Type": "text/plain"})
        yield ask(name="h1", data=b" " * (4 * 2**20 + 1), headers={"Content-Type": "application/json"})
        yield ask(name="h1", data="{", headers={"Content-Type": "application/json"})


def _with_a_wrong_token(yard: Controller, method: str, path: str, body: Any) -> int:
    """Returns the status; each call comes from another address, since wrong tokens of one address are counted."""
    at = path.replace("{id}", "h1").replace("{host}", "h1").replace("{name}", "h1")
    number = int(hashlib.sha256(f"{method} {path}".encode()).hexdigest()[:4], 16)
    address = f"127.9.{number // 256}.{number % 254 + 1}"
    with from_address.ask(address, yard.url + at, "wrong", method=method, json=body, stream=True) as reply:
        return reply.status_code


def _forbidden(path: str) -> Any:
    if "/parts/" in path:
        return {"launcher": "slurm", "user": "another"}
    return {"weight": 9, "tasks": [{"role": "ps", "host": "h1"}]}


def _right(path: str) -> Any:
    if path.endswith("/reports"):
        return {"session": "s", "seq": 1, "sent_at": 1}
    if "/parts/" in path:
        return {"launcher": "slurm"}
    if path == "/v1/hosts/{host}":
        return {"decision": {"state": "approved"}}
    return {"jobs": []} if "stages" in path else {}


def test_each_call_refuses_with_the_statuses_that_are_named_and_no_other(yard: Controller) -> None:
    yard.call("PUT", "/v1/jobs/a", spec(5000))
    for host in ("h1", "h2"):
        yard.call("PUT", f"/v1/jobs/h1/parts/{host}", {"launcher": "slurm", "user": "alice"})
    for method, path, operation in operations(yard.call("GET", "/openapi.json").json()):
        got = {str(status) for status in every_kind(yard, method, path, "requestBody" in operation)}
        assert got <= named(operation), (method, path)
        everywhere = {
            "400",
            "408",
            "409",
            "429",
            "503",
        }  # these are driven below, 408 in test_api, 429 in test_wrong_tokens
        assert {status for status in named(operation) if status >= "400"} - got <= everywhere, (method, path)
        for verb in ("job", "stage"):
            yard.call("DELETE", f"/v1/{verb}s/nobody")
    assert "Traceback" not in yard.log()


def test_the_statuses_of_single_calls(yard: Controller) -> None:
    document = yard.call("GET", "/openapi.json").json()

    def drive(status: int, method: str, path: str, name: str = "", body: Any = None) -> None:
        reply = yard.call(method, path.replace("{id}", name), body)
        assert reply.status_code == status, reply.text
        assert str(status) in named(document["paths"][path][method.lower()])

    for job, port in (("a", 5000), ("b", 5001)):
        yard.call("PUT", f"/v1/jobs/{job}", spec(port))
    drive(409, "PUT", "/v1/jobs/{id}", "c", spec(5000))
    drive(503, "GET", "/readyz")
    yard.call("PUT", "/v1/stages/s", {"jobs": ["a"]})
    drive(409, "PUT", "/v1/stages/{id}", "t", {"jobs": ["a"]})
    yard.call(
        "POST",
        "/v1/hosts/h1/reports",
        {"session": "z", "seq": 1, "sent_at": 1e12, "jobs": [{"job": "b", "ended": True}]},
    )
    drive(409, "GET", "/v1/jobs/{id}/explain", "b")
    bad = b"GET /healthz HTTP/1.1\r\n\r\n"
    assert yard.raw(bad).startswith(b"HTTP/1.1 400 ")
    assert all("400" in named(operation) for _, _, operation in operations(document))
