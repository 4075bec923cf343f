"""Tokens of an identity provider at a running controller, with real keys behind a real HTTP server."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from evaluation.bench.support.api_client import Controller
from tests.support.controller.api.cases import assert_problem, spec
from tests.support.controller.tls.signer import AUDIENCE, ISSUER, by_hand, claims, jwk, key_set, rsa_key, signed

KEY, STRANGERS = rsa_key(), rsa_key()


class Provider(ThreadingHTTPServer):
    keys = key_set(jwk(KEY, "k1"))
    asked = 0


class _Handler(BaseHTTPRequestHandler):
    server: Provider

    def do_GET(self) -> None:
        self.server.asked += 1
        self.send_response(200)
        self.end_headers()
        self.wfile.write(self.server.keys)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def provider() -> Iterator[Provider]:
    server = Provider(("127.0.0.1", 0), _Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(scope="module")
def yard(provider: Provider, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Controller]:
    oidc = {
        "issuer": ISSUER,
        "audience": AUDIENCE,
        "keys": f"http://127.0.0.1:{provider.server_address[1]}/keys",
        "roles": {"trainyard-admin": "operator", "trainyard-read": "viewer", "student": "tenant"},
    }
    controller = Controller(tmp_path_factory.mktemp("oidc"), token=False, api={"oidc": oidc})
    controller.start()
    yield controller
    controller.stop()


def ask(yard: Controller, token: str, method: str = "GET", path: str = "/v1/jobs", body: Any = None) -> Any:
    return yard.call(method, path, body, token)


def test_each_role_may_do_what_it_may(yard: Controller, provider: Provider) -> None:
    operator, viewer, student = (
        signed(KEY, roles=role) for role in ("trainyard-admin", "trainyard-read", ["student", "other"])
    )
    assert ask(yard, operator, "PUT", "/v1/jobs/a", spec(5000)).status_code == 201
    assert ask(yard, viewer).json()["jobs"][0]["id"] == "a"
    assert_problem(ask(yard, viewer, "DELETE", "/v1/jobs/a"), 403, "ann has the role viewer, which may only read")
    assert ask(yard, student).json()["jobs"] == []
    assert ask(yard, student, "PUT", "/v1/jobs/b", spec(5001, user="ann")).status_code == 201
    assert_problem(ask(yard, student, "PUT", "/v1/jobs/c", spec(5002, user="bob")), 403, "says whose it is: ann")
    assert provider.asked == 1, "the keys are kept"


@pytest.mark.parametrize(
    ("token", "said"),
    [
        (signed(KEY, exp=int(time.time()) - 60), "it has expired"),
        (signed(KEY, iss="https://evil.example.org"), "its issuer (iss) is not api.oidc.issuer"),
        (signed(KEY, aud="another"), "it is for another audience (aud) than api.oidc.audience"),
        (by_hand({"alg": "none", "typ": "JWT", "kid": "k1"}, claims(), b""), "its algorithm (alg) is none of"),
        (signed(STRANGERS), "it is not valid"),
        (signed(KEY, roles="nobody"), "no value that api.oidc.roles names"),
        ("no-jwt-at-all", "the token is not known here"),
    ],
)
def test_what_is_wrong_is_refused_and_said(yard: Controller, token: str, said: str) -> None:
    reply = ask(yard, token)
    assert_problem(reply, 401, said)
    assert token not in reply.text
    assert token not in yard.log()


def test_no_token_of_the_provider_is_a_request_without_one(yard: Controller) -> None:
    assert_problem(yard.call("GET", "/v1/jobs"), 401, "a bearer token is required")


def test_made_up_key_ids_do_not_have_the_provider_asked(yard: Controller, provider: Provider) -> None:
    before = provider.asked
    for number in range(5):
        assert ask(yard, signed(STRANGERS, kid=f"k{number + 10}")).status_code == 401
    assert provider.asked <= before + 1
