"""Each change and each refused try has a record, which says who, from where, what, before and after."""

from __future__ import annotations

import json
import resource
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests

from controller.cli.main import main
from evaluation.bench.support.api_client import HOST, OPERATOR, Controller
from evaluation.bench.support.waiting import wait_until
from tests.support.controller.api.cases import assert_problem, batch, spec


@pytest.fixture(scope="module")
def yard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Controller]:
    folder = tmp_path_factory.mktemp("audit")
    controller = Controller(folder, audit={"file": str(folder / "audit.jsonl")}).start()
    yield controller
    controller.stop()


def file_of(yard: Controller) -> Path:
    return Path(yard.settings["audit"]["file"])


def newest(yard: Controller, since: int) -> list[dict[str, Any]]:
    return list(yard.call("GET", f"/v1/audit?since={since}").json()["records"])


def head(yard: Controller) -> int:
    return int(yard.call("GET", "/v1/audit").json()["newest"])


def test_it_begins_with_the_start(yard: Controller) -> None:
    first, second = newest(yard, 0)[:2]
    assert (first["action"], first["role"], first["number"]) == ("file", "controller", 1)
    assert second["action"] == "start"


def test_the_life_of_a_job(yard: Controller) -> None:
    since = head(yard)
    yard.call("PUT", "/v1/jobs/seen", spec(5000))
    yard.call("PUT", "/v1/jobs/seen", spec(5000))  # changes nothing
    yard.call("PUT", "/v1/jobs/seen", spec(5000, weight=2.0))
    yard.call("POST", "/v1/hosts/h1/reports", batch({"job": "seen", "ended": True}), token=HOST)
    yard.call("PUT", "/v1/jobs/seen", spec(5000, weight=2.0))
    yard.call("DELETE", "/v1/jobs/seen")
    created, heavier, again, deleted = newest(yard, since)
    assert (created["who"], created["role"], created["address"]) == ("operator", "operator", "127.0.0.1")
    assert (created["action"], created["path"]) == ("PUT /v1/jobs/{id}", "/v1/jobs/seen")
    assert (created["status"], created["outcome"], created["before"]) == (201, "done", None)
    assert created["after"]["tasks"][0] == {"role": "ps", "host": "h1", "port": 5000, "protocol": "tcp"}
    assert (heavier["before"], heavier["after"]) == ({"weight": 1.0}, {"weight": 2.0})
    assert again["before"] == {"state": "ended"}
    assert (deleted["after"], deleted["status"], deleted["before"]["weight"]) == (None, 204, 2.0)
    assert time.time() - 60 < created["time"] <= deleted["time"] <= time.time()
    assert heavier["previous"] == created["hash"]


def test_stages_settings_and_families(yard: Controller) -> None:
    yard.call("PUT", "/v1/jobs/staged", spec(5001))
    since = head(yard)
    yard.call("PUT", "/v1/stages/rung", {"jobs": ["staged"]})
    yard.call("PUT", "/v1/stages/rung", {"jobs": ["staged"]})
    yard.call("DELETE", "/v1/stages/rung")
    yard.call("PATCH", "/v1/settings", {"period_seconds": 0.6})
    yard.call("PATCH", "/v1/settings", {"period_seconds": 0.6})
    yard.call("PATCH", "/v1/settings", {"period_seconds": 0.5})
    assert yard.call("DELETE", "/v1/families/none").status_code == 404
    made, ended, changed, back, family = newest(yard, since)
    assert (made["before"], made["after"]) == (None, {"jobs": ["staged"]})
    assert (ended["before"], ended["after"]) == ({"jobs": ["staged"]}, None)
    assert (changed["before"], changed["after"]) == ({"period_seconds": 0.5}, {"period_seconds": 0.6})
    assert back["after"] == {"period_seconds": 0.5}
    assert (family["outcome"], family["status"], family["action"]) == ("refused", 404, "DELETE /v1/families/{name}")
    yard.call("DELETE", "/v1/jobs/staged")


def test_refused_tries(yard: Controller) -> None:
    since = head(yard)
    wrong = "a-guessed-token-of-nobody"
    yard.call("GET", "/v1/jobs", token=wrong)
    yard.call("GET", "/v1/status", token=HOST)
    yard.call("GET", "/v1/nothing", token=wrong)
    yard.call("PUT", "/v1/jobs/bad", spec(5002, weight=-1.0))
    yard.call("PUT", "/v1/jobs/heavy", spec(5003, weight=5.0), token=HOST)
    yard.call("POST", "/v1/hosts/h2/reports", batch(), token=HOST)
    yard.call("GET", "/v1/jobs/nobody")  # reading what is not there is no try to change
    yard.call("POST", "/v1/hosts/h1/reports", batch(), token=HOST)
    guessed, host, unknown, bad, heavy, report = newest(yard, since)
    assert (guessed["who"], guessed["role"], guessed["status"]) == ("unknown", "none", 401)
    assert guessed["detail"] == "the token is not known here"
    assert (host["who"], host["role"], host["status"]) == ("h1", "host", 403)
    assert (unknown["action"], unknown["path"]) == ("unknown", "/v1/nothing")
    assert (bad["status"], bad["after"]) == (422, None)
    assert bad["detail"].startswith("weight: ")
    assert (heavy["status"], heavy["who"]) == (403, "h1")
    assert (report["action"], report["status"]) == ("POST /v1/hosts/{host}/reports", 404)
    wait_until(lambda: report["hash"] in file_of(yard).read_text())
    for secret in (wrong, OPERATOR, HOST):
        assert secret not in file_of(yard).read_text()


def test_who_shows_nothing_and_asks_who_it_is_has_no_record(yard: Controller) -> None:
    """The console asks so, each time that its page is opened."""
    since = head(yard)
    assert requests.get(f"{yard.url}/v1/caller", timeout=15).status_code == 401
    assert yard.call("GET", "/v1/caller", token="a-guessed-token-of-nobody").status_code == 401
    assert requests.get(f"{yard.url}/v1/jobs", timeout=15).status_code == 401
    guessed, jobs = newest(yard, since)
    assert (guessed["action"], guessed["detail"]) == ("GET /v1/caller", "the token is not known here")
    assert jobs["action"] == "GET /v1/jobs"


def test_pages(yard: Controller) -> None:
    answer = yard.call("GET", "/v1/audit?since=0&limit=2").json()
    assert [record["number"] for record in answer["records"]] == [1, 2]
    assert [record["number"] for record in yard.call("GET", "/v1/audit?since=1&limit=2").json()["records"]] == [2, 3]
    assert yard.call("GET", f"/v1/audit?since={answer['newest']}").json()["records"] == []
    last = yard.call("GET", "/v1/audit?limit=1").json()
    assert last["records"][0]["hash"] == last["newest_hash"]
    assert_problem(yard.call("GET", "/v1/audit?since=-1"), 422, "no whole number", "since")
    assert_problem(yard.call("GET", "/v1/audit?limit=0"), 422, "no whole number", "limit")
    assert yard.call("GET", "/v1/audit", token=HOST).status_code == 403


def test_the_command_shows_and_verifies(
    yard: Controller, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TRAINYARD_TOKEN", OPERATOR)
    yard.call("PUT", "/v1/jobs/shown", spec(5005))
    yard.call("DELETE", "/v1/jobs/shown")
    remote = ["--url", yard.url]
    assert main(["audit", *remote, "--limit", "2"]) == 0
    text = capsys.readouterr().out
    assert "DELETE /v1/jobs/shown" in text
    assert "weight: - -> 1.0" in text
    assert main(["audit", *remote, "--json"]) == 0
    trail = json.loads(capsys.readouterr().out)
    wait_until(lambda: trail["newest_hash"] in file_of(yard).read_text())
    verify = ["audit", "--verify", str(file_of(yard))]
    assert main([*verify, "--expect", trail["newest_hash"]]) == 0
    assert "chain      whole" in capsys.readouterr().out
    assert main([*verify, "--expect", "0" * 64]) == 1
    assert "records at the end were removed" in capsys.readouterr().err


def test_the_command_finds_what_was_changed(
    yard: Controller, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = tmp_path / "copy.jsonl"
    copy.write_bytes(file_of(yard).read_bytes().replace(b'"weight":2.0', b'"weight":1.0', 1))
    assert main(["audit", "--verify", str(copy), "--json"]) == 1
    verdict = json.loads(capsys.readouterr().out)
    assert f"{copy}:" in verdict["breaks"][0]
    assert "the line is not as it was written" in verdict["breaks"][0]
    assert main(["audit", "--verify", str(tmp_path / "none")]) == 2
    assert main(["audit", "--expect", "0" * 64]) == 2
    (tmp_path / "empty").write_text("")
    assert main(["audit", "--verify", str(tmp_path / "empty")]) == 1


def test_a_restart_goes_on_and_a_full_disk_stops_nothing(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    controller = Controller(tmp_path, audit={"file": str(path), "max_bytes": 4096, "keep": 50}).start()
    try:
        assert controller.process is not None
        controller.call("PUT", "/v1/jobs/one", spec(5000))
        controller.stop(kill=True)
        controller.start()
        assert controller.process is not None
        # As on a full disk: no file of the process can grow.
        resource.prlimit(controller.process.pid, resource.RLIMIT_FSIZE, (1, resource.RLIM_INFINITY))
        for n in range(30):
            assert controller.call("PUT", f"/v1/jobs/full-{n}", spec(6000 + n)).status_code == 201
        wait_until(lambda: "the audit file cannot be written" in str(controller.call("GET", "/v1/status").json()))
        assert controller.call("GET", "/v1/audit").json()["problem"] is not None
        assert "trainyard_audit_degraded 1.0" in controller.call("GET", "/metrics").text
        unlimited = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
        resource.prlimit(controller.process.pid, resource.RLIMIT_FSIZE, unlimited)
        wait_until(lambda: controller.call("GET", "/v1/audit").json()["problem"] is None, 40)
    finally:
        controller.stop()
    assert main(["audit", "--verify", str(path)]) == 0
    assert len(list(tmp_path.glob("audit.jsonl.*"))) >= 2


def test_an_audit_file_that_is_something_else_ends_the_start(tmp_path: Path) -> None:
    (tmp_path / "notes").write_text("milk\n")
    controller = Controller(tmp_path, audit={"file": str(tmp_path / "notes")})
    with pytest.raises(AssertionError, match="holds no record of an audit"):
        controller.start()
    assert (tmp_path / "notes").read_text() == "milk\n"
