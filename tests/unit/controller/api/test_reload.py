"""A reload as an operator sees it: what changes at once, what is refused, what waits, and who learns of it."""

from __future__ import annotations

import copy
import json
import os
import signal
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
import requests

from controller.cli.main import main
from evaluation.bench.support.api_client import HOST, OPERATOR, Controller
from evaluation.bench.support.waiting import wait_until
from tests.support.controller.api.cases import assert_problem, batch, spec


class ReloadYard(Controller):
    """A controller whose settings file is changed while it runs."""

    def change(self, **settings: Any) -> Any:
        """Put other settings into the file; returns the answer to the reload."""
        self.settings |= settings
        self.write()
        return self.call("POST", "/v1/reload")

    def problems(self) -> list[str]:
        return list(self.call("GET", "/v1/status").json()["problems"])


@pytest.fixture(name="yard")
def a_yard(tmp_path: Path) -> Iterator[ReloadYard]:
    """A controller of the test's own."""
    yard = ReloadYard(tmp_path, journal=str(tmp_path / "journal"))
    yard.start()
    yield yard
    yard.stop()


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ReloadYard]:
    yard = ReloadYard(tmp_path_factory.mktemp("running"))
    yard.start()
    yield yard
    yard.stop()


@pytest.fixture
def shared(running: ReloadYard) -> Iterator[ReloadYard]:
    """A controller that tests share which do not stop it. Its file is as it was when a test has ended, and in force."""
    settings = copy.deepcopy(running.settings)
    yield running
    running.settings = settings
    running.write()
    assert running.call("POST", "/v1/reload").ok
    assert not any("settings" in problem for problem in running.problems())


def host(name: str, **parts: Any) -> dict[str, Any]:
    return {"name": name, "address": f"10.0.0.{name[1:]}"} | parts


def fields(changes: list[dict[str, Any]]) -> list[str]:
    return [change["field"] for change in changes]


def test_hosts_come_and_go(yard: ReloadYard) -> None:
    on_h4 = spec(5000) | {"tasks": [{"role": "ps", "host": "h4", "port": 1}, {"role": "worker", "host": "h2"}]}
    on_h4 |= {"demand": [{"src": "h2", "dst": "h4", "bytes": 1e6}]}
    assert_problem(yard.call("PUT", "/v1/jobs/a", on_h4), 422, "h4")
    answer = yard.change(hosts=[host("h1"), host("h2"), host("h4")])
    assert answer.status_code == 200, answer.text
    changed = answer.json()["changed"]
    assert fields(changed) == ["hosts.h3", "hosts.h4"]
    assert (changed[0]["after"], changed[1]["before"]) == (None, None)
    assert changed[1]["after"]["address"] == "10.0.0.4"
    assert_problem(yard.call("GET", "/v1/hosts/h3/plan"), 404, "there is no host h3")
    assert yard.call("PUT", "/v1/jobs/a", on_h4).status_code == 201
    wait_until(lambda: "a" in yard.call("GET", "/v1/plan").json()["classes"])
    assert yard.call("GET", "/v1/hosts/h4/plan").json()["marks"]
    assert yard.call("POST", "/v1/hosts/h4/reports", batch()).status_code == 200

    refused = yard.change(hosts=[host("h1"), host("h2")])
    assert_problem(refused, 422, "hosts: h4 is gone, but job a runs on it", "hosts")
    (error,) = refused.json()["errors"]
    line = yard.config.read_text().splitlines().index("hosts:") + 1
    assert (error["file"], error["line"]) == (str(yard.config), str(line))
    assert yard.call("GET", "/v1/hosts/h4/plan").status_code == 200
    yard.call("DELETE", "/v1/jobs/a")
    assert yard.change().status_code == 200
    assert [each["name"] for each in yard.call("GET", "/v1/status").json()["hosts"]] == ["h1", "h2"]


def test_a_job_that_waits_for_its_host_runs_again_when_the_host_is_back(yard: ReloadYard) -> None:
    assert yard.call("PUT", "/v1/jobs/a", spec(5000)).status_code == 201
    yard.stop()
    yard.settings["hosts"] = [host("h1"), host("h3")]
    yard.write()
    yard.start()
    assert yard.call("GET", "/v1/jobs").json()["jobs"] == []
    assert yard.change(hosts=[host("h1"), host("h2"), host("h3")]).status_code == 200
    wait_until(lambda: "a" in yard.call("GET", "/v1/plan").json()["classes"])


def test_what_hosts_are_told_changes_with_rates_and_floors(shared: ReloadYard) -> None:
    before = shared.call("GET", "/v1/hosts/h1/plan")
    other = shared.call("GET", "/v1/hosts/h2/plan")
    answer = shared.change(hosts=[host("h1", egress_bps=2e9), host("h2"), host("h3")])
    assert fields(answer.json()["changed"]) == ["hosts.h1.egress_bps"]
    tag = {"If-None-Match": before.headers["ETag"]}
    changed = shared.call("GET", "/v1/hosts/h1/plan?wait=10", headers=tag)
    assert (changed.status_code, changed.json()["egress_bps"]) == (200, 2e9)
    same = {"If-None-Match": other.headers["ETag"]}
    assert shared.call("GET", "/v1/hosts/h2/plan", headers=same).status_code == 304, "nothing of it has changed"
    assert fields(shared.change(floors={"other": 0.2}).json()["changed"]) == ["floors.other"]
    wait_until(lambda: shared.call("GET", "/v1/hosts/h2/plan").json()["other_floor"] == 0.2)


def test_policy_and_period_of_the_file_replace_those_set_at_run_time_only_when_they_change(yard: ReloadYard) -> None:
    assert yard.call("PATCH", "/v1/settings", {"policy": "las"}).ok
    assert yard.change(floors={"other": 0.2}).ok
    assert yard.call("GET", "/v1/settings").json()["policy"] == "las", "the file says of the policy what it said before"
    assert yard.change(policy="sebf").ok
    assert yard.call("GET", "/v1/settings").json()["policy"] == "sebf"
    yard.stop()
    yard.start()
    assert yard.call("GET", "/v1/settings").json()["policy"] == "sebf"
    assert yard.call("PATCH", "/v1/settings", {"period_seconds": 5}).ok
    assert_problem(yard.change(gate_seconds=6), 422, "period_seconds: 5 s; the switches' gate of 6 s")


def test_a_wrong_file_changes_nothing_and_says_file_line_and_field(shared: ReloadYard) -> None:
    before = shared.call("GET", "/v1/status").json()
    shared.config.write_text(shared.config.read_text() + "floors:\n  other: 3\nclases: 2\n")
    refused = shared.call("POST", "/v1/reload")
    assert_problem(refused, 422, "nothing has changed: ")
    lines = shared.config.read_text().splitlines()
    assert [(each["file"], each["line"], each["field"]) for each in refused.json()["errors"]] == [
        (str(shared.config), str(lines.index("  other: 3") + 1), "floors.other"),
        (str(shared.config), str(lines.index("clases: 2") + 1), "clases"),
    ]
    after = shared.call("GET", "/v1/status").json()
    assert after["settings_sha256"] == before["settings_sha256"]
    assert any(problem.startswith("the changed settings are refused") for problem in after["problems"])
    assert not any(
        str(shared.config) in problem for problem in shared.call("GET", "/readyz").json().get("problems", ())
    )
    shared.write()
    assert shared.call("POST", "/v1/reload").json()["changed"] == []
    assert not any("settings" in problem for problem in shared.problems())


@pytest.mark.parametrize("what", ["pipe", "device", "folder", "large"])
def test_what_is_no_file_in_the_place_of_one_is_refused_and_holds_up_nothing(shared: ReloadYard, what: str) -> None:
    """Neither the API nor the next reload waits for a writer that never comes, or for the end of a device."""
    folder = shared.config.parent
    tokens, keys = folder / "tokens.yaml", folder / "keys.json"
    tokens.write_text("")
    keys.write_text("{}")
    oidc = {"issuer": "i", "audience": "a", "keys": str(keys), "roles": {"r": "viewer"}}
    assert shared.change(api=shared.settings["api"] | {"tokens_file": str(tokens), "oidc": oidc}).ok
    for file in (shared.config, tokens, keys):
        kept = file.rename(folder / "kept")
        match what:
            case "pipe":
                os.mkfifo(file)
            case "device":
                file.symlink_to("/dev/zero")
            case "folder":
                file.mkdir()
            case _:
                file.touch()
                os.truncate(file, 2**30)
        refused = shared.call("POST", "/v1/reload")
        assert_problem(refused, 422, "nothing has changed: ")
        assert str(file) in refused.text
        file.rmdir() if what == "folder" else file.unlink()
        kept.rename(file)
        assert shared.call("POST", "/v1/reload").ok, "and the file that is back is read"


@pytest.mark.parametrize("is_emptied", [True, False])
def test_a_file_without_tokens_does_not_open_a_guarded_api(yard: ReloadYard, is_emptied: bool) -> None:
    lines = yard.config.read_text().splitlines(keepends=True)
    kept = (line for line in lines if "token" not in line and HOST not in line)
    yard.config.write_text("" if is_emptied else "".join(kept))
    refused = yard.call("POST", "/v1/reload")
    assert_problem(refused, 422, "no token is set any more, and everybody at this machine would be an operator", "api")
    assert requests.get(yard.url + "/v1/jobs", timeout=15).status_code == 401
    assert yard.call("GET", "/v1/jobs").status_code == 200
    yard.stop()
    del yard.settings["api"]["token"], yard.settings["api"]["host_tokens"]
    yard.write()
    yard.start()
    assert yard.call("POST", "/v1/reload").ok, "one that asks nobody is reloaded as before"
    yard.settings["api"]["token"] = OPERATOR
    assert yard.change().ok, "and a reload guards it"
    assert requests.get(yard.url + "/v1/jobs", timeout=15).status_code == 401


def test_what_needs_a_restart_is_said_and_waits(yard: ReloadYard) -> None:
    answer = yard.change(classes=3, table_budget=100).json()
    assert fields(answer["changed"]) == ["table_budget"]
    assert fields(answer["waiting"]) == ["classes"]
    assert "settings wait for a restart: classes" in yard.problems()
    assert yard.call("GET", "/v1/status").json()["table_budget"] == 100
    yard.stop()
    yard.start()
    assert not any("restart" in problem for problem in yard.problems())


def test_tokens_in_the_settings_change_at_once_also_on_open_connections(shared: ReloadYard) -> None:
    assert shared.call("GET", "/v1/hosts/h1/plan", token=HOST).status_code == 200
    shared.settings["api"]["host_tokens"] = {"h1": "another-token-of-h1"}
    answer = shared.change()
    assert answer.json()["changed"] == [{"field": "api.host_tokens.h1", "before": "(set)", "after": "(changed)"}]
    assert shared.call("GET", "/v1/hosts/h1/plan", token=HOST).status_code == 401
    assert shared.call("GET", "/v1/hosts/h1/plan", token="another-token-of-h1").status_code == 200
    assert "another-token-of-h1" not in shared.log() + shared.call("GET", "/v1/audit").text


def test_who_and_what_is_in_the_audit_and_a_hash_in_the_metrics(yard: ReloadYard) -> None:
    assert yard.change(policy="las").ok
    record = yard.call("GET", "/v1/audit?limit=1").json()["records"][0]
    assert (record["who"], record["action"], record["outcome"]) == ("operator", "POST /v1/reload", "done")
    assert (record["before"], record["after"]) == ({"policy": "fifo"}, {"policy": "las"})
    digest = sha256(yard.config.read_bytes()).hexdigest()
    text = yard.call("GET", "/metrics").text
    assert f'trainyard_settings_info{{sha256="{digest}"}} 1.0' in text
    assert 'trainyard_reloads_total{outcome="done"} 1.0' in text
    assert yard.process is not None
    yard.settings["policy"] = "sebf"
    yard.write()
    yard.process.send_signal(signal.SIGHUP)
    wait_until(lambda: yard.call("GET", "/v1/settings").json()["policy"] == "sebf")
    record = yard.call("GET", "/v1/audit?limit=1").json()["records"][0]
    assert (record["who"], record["role"], record["action"]) == ("signal", "machine", "reload")
    assert yard.call("POST", "/v1/reload", token=HOST).status_code == 403


def test_a_changed_file_is_said_and_put_in_force_only_where_the_settings_say_so(yard: ReloadYard) -> None:
    yard.settings["policy"] = "las"
    yard.write()
    said = "the settings have changed on the disk and are not in force"
    wait_until(lambda: said in yard.log(), 15, what="the line in the log")
    assert any(said in problem for problem in yard.problems())
    assert yard.call("GET", "/v1/settings").json()["policy"] == "fifo"
    assert yard.change(reload="automatic").ok
    yard.settings["policy"] = "sebf"
    yard.write()
    wait_until(lambda: yard.call("GET", "/v1/settings").json()["policy"] == "sebf", 15, what="the change")
    record = yard.call("GET", "/v1/audit?limit=1").json()["records"][0]
    assert (record["who"], record["role"]) == ("file", "machine")


def test_the_command(yard: ReloadYard, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("TRAINYARD_TOKEN", OPERATOR)
    remote = ["reload", "--url", yard.url]
    assert main(remote) == 0
    assert "nothing" in capsys.readouterr().out
    yard.settings |= {"policy": "las", "classes": 3}
    yard.write()
    assert main([*remote, "--json"]) == 0
    assert fields(json.loads(capsys.readouterr().out)["changed"]) == ["policy"]
    yard.settings["policy"] = "sebf"
    yard.write()
    assert main(remote) == 0
    shown = capsys.readouterr().out
    assert "policy: las -> sebf" in shown
    assert "classes: 7 -> 3" in shown
    assert "needs a restart" in shown
    yard.config.write_text("policy: none-such\n")
    assert main(remote) == 2
    assert f"{yard.config}:1: policy: unknown policy" in capsys.readouterr().err
