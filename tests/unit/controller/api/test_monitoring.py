"""The address for monitoring: three calls without a token, and nothing else."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from evaluation.bench.support.api_client import Controller
from evaluation.bench.support.free_port import free_port
from tests.support.controller.api.cases import assert_problem
from tests.support.controller.api.from_address import ask
from tests.support.controller.api.roles_yard import RolesYard


@pytest.fixture(scope="module")
def yard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RolesYard]:
    controller = RolesYard(tmp_path_factory.mktemp("monitoring"), api={"metrics_port": free_port()})
    controller.start()
    yield controller
    controller.stop()


def at(yard: RolesYard, path: str) -> str:
    return f"http://127.0.0.1:{yard.settings['api']['metrics_port']}{path}"


def test_metrics_and_health_need_no_token_there(yard: RolesYard) -> None:
    assert "trainyard_plans_total" in ask("127.0.0.1", at(yard, "/metrics")).text
    assert ask("127.0.0.1", at(yard, "/healthz")).json()["status"] == "alive"
    assert_problem(ask("127.0.0.1", at(yard, "/readyz")), 503, "no switch has connected")


def test_at_the_apis_own_address_metrics_need_one(yard: RolesYard) -> None:
    assert_problem(ask("127.0.0.1", yard.url + "/metrics"), 401, "a bearer token is required")
    assert "trainyard_plans_total" in yard.by("board", "GET", "/metrics").text


@pytest.mark.parametrize("path", ["/v1/jobs", "/v1/status", "/v1/settings", "/openapi.json", "/v1/hosts/h1/plan"])
def test_nothing_else_is_there_with_a_token_or_without(yard: RolesYard, path: str) -> None:
    answers = [ask("127.0.0.1", at(yard, path), token) for token in (None, "wrong", yard.tokens["night"])]
    assert [answer.status_code for answer in answers] == [404, 404, 404]
    assert len({answer.text for answer in answers}) == 1, "it does not say whether a token is right"


def test_a_port_that_is_taken_is_said_at_the_start(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        controller = Controller(tmp_path, api={"metrics_port": port})
        with pytest.raises(AssertionError, match="status 1"):
            controller.start()
    assert f"the address for monitoring cannot listen on 127.0.0.1:{port}: Address already in use" in controller.log()
