"""Every call by every role, against what the table of calls, the description and this page say."""

from __future__ import annotations

import contextlib
import functools
import socket
import time
from pathlib import Path
from typing import Any

import pytest

from controller.access.requests_in_progress import MOST
from controller.api.routes import CONSOLE, ROUTES
from controller.console import PAGE
from evaluation.bench.support.waiting import wait_until
from tests.support.controller.api.cases import assert_problem, batch, spec
from tests.support.controller.api.roles_yard import ROLES, RolesYard
from tests.support.controller.api.served import served

MATRIX = """
GET    /v1/caller                   operator viewer tenant host enrol
GET    /v1/jobs                     operator viewer tenant
GET    /v1/jobs/{id}                operator viewer tenant
PUT    /v1/jobs/{id}                operator        tenant host
DELETE /v1/jobs/{id}                operator        tenant host
PUT    /v1/jobs/{id}/parts/{host}   operator        tenant host
DELETE /v1/jobs/{id}/parts/{host}   operator        tenant host
GET    /v1/jobs/{id}/explain        operator viewer tenant
PUT    /v1/stages/{id}              operator
DELETE /v1/stages/{id}              operator
GET    /v1/hosts                    operator viewer
PUT    /v1/hosts/{host}             operator                    enrol
DELETE /v1/hosts/{host}             operator
POST   /v1/hosts/{host}/reports     operator               host
GET    /v1/hosts/{host}/plan        operator viewer        host
GET    /v1/hosts/{host}/peers       operator viewer        host
GET    /v1/plan                     operator viewer
GET    /v1/families                 operator viewer
GET    /v1/families/{name}          operator viewer
DELETE /v1/families/{name}          operator
GET    /v1/settings                 operator viewer
PATCH  /v1/settings                 operator
POST   /v1/reload                   operator
GET    /v1/audit                    operator
GET    /v1/events                   operator viewer tenant
GET    /v1/history                  operator viewer tenant
GET    /v1/network                  operator viewer
GET    /v1/status                   operator viewer
GET    /metrics                     operator viewer
GET    /healthz                     operator viewer tenant host enrol
GET    /readyz                      operator viewer tenant host enrol
GET    /openapi.json                operator viewer tenant
GET    /                            operator viewer tenant host enrol
GET    /console/{path}              operator viewer tenant host enrol
"""
CALLS = {tuple(line.split()[:2]): set(line.split()[2:]) for line in MATRIX.strip().splitlines()}
OPEN = ("/healthz", "/readyz", "/", "/console/{path}")
FOR_BROWSERS = ("/", "/console/{path}")
"""The description of the API leaves out what has no data."""


def place(path: str) -> str:
    names = {"{id}": "vision-1", "{host}": "h1", "{name}": "f", "{path}": PAGE}
    return functools.reduce(lambda at, name: at.replace(name, names[name]), names, path)


def body_of(method: str, path: str) -> Any:
    if path.endswith("/reports"):
        return batch()
    if path == "/v1/hosts/{host}":
        return {"request": {"addresses": ["10.0.0.9"], "token_sha256": "0" * 64}} if method == "PUT" else None
    if method != "PUT":
        return {} if method == "PATCH" else None
    if "/parts/" in path:
        return {"launcher": "slurm", "user": "ann", "arrival": time.time()}
    return {"jobs": []} if "stages" in path else spec(5000, user="ann")


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize(("method", "path"), CALLS)
def test_each_role_may_make_its_calls_and_no_other(yard: RolesYard, role: str, method: str, path: str) -> None:
    at = place(path)
    # Events have no end, and nothing of them is read here.
    reply = yard.by(ROLES[role], method, at, body_of(method, path), stream=path == "/v1/events")
    if role in CALLS[method, path]:
        assert reply.status_code not in (401, 403, 405, 429, 500), reply.text
    else:
        assert_problem(reply, 403, f"{method} {path} is for: operator")
        assert yard.tokens[ROLES[role]] not in reply.text
    reply.close()
    yard.by("night", "DELETE", "/v1/jobs/vision-1")
    yard.by("night", "DELETE", "/v1/stages/vision-1")


@pytest.mark.parametrize(("method", "path"), CALLS)
def test_without_a_token_nobody_may(yard: RolesYard, method: str, path: str) -> None:
    reply = yard.call(method, place(path), body_of(method, path), headers={"Authorization": None})
    if path in OPEN:
        assert reply.status_code in (200, 503)
    else:
        assert_problem(reply, 401, "a bearer token is required")
        assert reply.headers["WWW-Authenticate"].startswith("Bearer")


def test_the_table_and_the_description_say_the_same(yard: RolesYard) -> None:
    table = {(route.method, route.path): set(route.access.roles) for route in (*ROUTES, *CONSOLE)}
    assert table == {call: roles for call, roles in CALLS.items() if call[1] != "/openapi.json"}
    described = yard.call("GET", "/openapi.json").json()["paths"]
    told = {call: roles for call, roles in CALLS.items() if call[1] not in FOR_BROWSERS}
    for (method, path), allowed in told.items():
        refusals = described[path][method.lower()]["responses"]
        assert allowed == set(ROLES) or "403" in refusals
        assert ("429" in refusals) is (path not in OPEN)
    roles = {
        (method.upper(), path): set(operation["x-roles"])
        for path, methods in described.items()
        for method, operation in methods.items()
    }
    assert roles == told


@pytest.mark.parametrize("role", ROLES)
def test_each_caller_is_told_who_it_is_and_what_it_may(yard: RolesYard, role: str) -> None:
    said = yard.by(ROLES[role], "GET", "/v1/caller").json()
    assert (said["name"], said["role"]) == (ROLES[role], role)
    untold = {"GET /openapi.json", *(f"GET {path}" for path in FOR_BROWSERS)}
    assert set(said["calls"]) == {" ".join(call) for call, roles in CALLS.items() if role in roles} - untold


def test_where_no_token_is_set_everybody_is_an_operator() -> None:
    with served(is_planning=False) as api:
        said = api.call("GET", "/v1/caller").json()
    assert (said["name"], said["role"]) == ("anybody", "operator")
    assert "POST /v1/reload" in said["calls"]


def test_a_wrong_tokens_file_is_refused_at_the_start(tmp_path: Path) -> None:
    yard = RolesYard(tmp_path)
    yard.tokens_file.write_text(f"night: {yard.tokens['night']}\n")
    with pytest.raises(AssertionError, match="status 2"):
        yard.start()
    assert f"{yard.tokens_file}:1: night: it must be a mapping with a role and a hash" in yard.log()
    assert yard.tokens["night"] not in yard.log()


def test_a_viewer_sees_no_secret_in_the_settings(yard: RolesYard) -> None:
    shown = yard.by("board", "GET", "/v1/settings").json()
    assert set(shown) == {"policy", "policy_options", "period_seconds", "pause"}


def test_a_token_ends_with_its_line_also_on_an_open_connection(yard: RolesYard) -> None:
    assert yard.by("board", "GET", "/v1/jobs").status_code == 200
    yard.write_tokens("night", "vision", "speech", "h1")
    assert yard.by("board", "GET", "/v1/jobs").status_code == 200, "a reload puts the file in force"
    yard.keep("night", "vision", "speech", "h1")
    try:
        assert_problem(yard.by("board", "GET", "/v1/jobs"), 401, "the token is not known here")
        assert yard.by("night", "GET", "/v1/jobs").status_code == 200
    finally:
        yard.keep("night", "board", "vision", "speech", "h1")
    assert yard.by("board", "GET", "/v1/jobs").status_code == 200


def test_one_token_cannot_have_all_connections_wait_for_it(yard: RolesYard) -> None:
    tag = yard.by("h1", "GET", "/v1/hosts/h1/plan").headers["ETag"]
    head = f"Host: x\r\nAuthorization: Bearer {yard.tokens['h1']}\r\n"
    waits = f"GET /v1/hosts/h1/plan?wait=20 HTTP/1.1\r\nIf-None-Match: {tag}\r\n{head}\r\n"
    sends = f"POST /v1/hosts/h1/reports HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: 9\r\n{head}\r\n"
    with contextlib.ExitStack() as stack:
        for request in (waits, sends) * (MOST // 2):
            connection = stack.enter_context(socket.create_connection(("127.0.0.1", yard.port), 10))
            connection.sendall(request.encode())
        wait_until(lambda: yard.by("h1", "GET", "/v1/hosts/h1/peers").status_code == 429, what="the limit")
        refused = yard.by("h1", "GET", "/v1/hosts/h1/peers")
        assert_problem(refused, 429, f"h1 has {MOST} requests in progress, which is the most")
        assert refused.headers["Retry-After"] == "1"
        assert yard.by("board", "GET", "/v1/jobs").ok
    wait_until(lambda: yard.by("h1", "GET", "/v1/hosts/h1/peers").ok, seconds=40)
