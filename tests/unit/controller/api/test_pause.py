"""The off switch as a user sees it: settings, status, readiness, metrics, hosts' plans, the audit and the commands."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from controller.cli.main import main
from evaluation.bench.support.api_client import HOST, OPERATOR, Controller
from evaluation.bench.support.waiting import wait_until
from tests.support.controller.api.cases import spec


@pytest.fixture(scope="module")
def yard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Controller]:
    folder = tmp_path_factory.mktemp("pause")
    controller = Controller(folder, journal=str(folder / "journal.db")).start()
    yield controller
    controller.stop()


def test_pause_and_resume(
    yard: Controller, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TRAINYARD_TOKEN", OPERATOR)
    remote = ["--url", yard.url]
    wait_until(lambda: "paused" not in yard.call("GET", "/v1/hosts/h1/plan").json())
    assert main(["pause", *remote]) == 0
    assert "trainyard resume" in capsys.readouterr().out
    assert "paused: nothing is enforced; by operator" in yard.log()
    record = yard.call("GET", "/v1/audit?limit=1").json()["records"][0]
    assert (record["before"], record["after"]) == ({"pause": False}, {"pause": True})
    assert yard.call("GET", "/v1/hosts/h1/plan", token=HOST).json()["paused"] is True
    assert yard.call("GET", "/v1/settings").json()["pause"] is True
    status = yard.call("GET", "/v1/status").json()
    assert status["paused"] is True
    assert "an operator has paused, so nothing is enforced" in status["problems"]
    assert "trainyard_paused 1.0" in yard.call("GET", "/metrics").text
    yard.call("PUT", "/v1/jobs/meanwhile", spec(5000))
    wait_until(lambda: "meanwhile" in yard.call("GET", "/v1/plan").json()["classes"])
    assert yard.call("GET", "/v1/jobs/meanwhile/explain").ok
    yard.stop(kill=True)
    yard.start()
    assert yard.call("GET", "/v1/status").json()["paused"] is True
    assert main(["resume", "--json", *remote]) == 0
    assert json.loads(capsys.readouterr().out)["pause"] is False
    assert "paused" not in yard.call("GET", "/v1/hosts/h1/plan").json()


def test_hosts_may_not(yard: Controller) -> None:
    assert yard.call("PATCH", "/v1/settings", {"pause": True}, token=HOST).status_code == 403
    assert yard.call("GET", "/v1/settings").json()["pause"] is False
