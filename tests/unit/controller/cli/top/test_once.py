"""``trainyard top --once`` of a real controller, for each role, and without one."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator

import pytest

from controller.cli.main import main
from evaluation.bench.support.free_port import free_port
from evaluation.bench.support.waiting import wait_until
from tests.support.controller.api.cases import batch, spec
from tests.support.controller.api.roles_yard import RolesYard


@pytest.fixture(scope="module")
def yard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RolesYard]:
    controller = RolesYard(tmp_path_factory.mktemp("top"), policy="jpas")
    controller.start()
    for name, port, parts in (
        ("vision-1", 5000, {"user": "ann"}),
        ("vision-2", 5001, {"user": "ann"}),
        ("other", 5002, {}),
    ):
        assert controller.call("PUT", f"/v1/jobs/{name}", spec(port, iterations=400, **parts)).ok
    points = [{"iteration": i, "time": 100.0 + i, "metric": 1 - 0.9**i} for i in range(1, 21)]
    news = [{"job": name, "points": points, "sent_bytes": 5e6} for name in ("vision-1", "vision-2")]
    assert controller.by("h1", "POST", "/v1/hosts/h1/reports", batch(*news)).json()["refused"] == []
    wait_until(lambda: controller.call("GET", "/v1/jobs/vision-1").json()["targets"], what="a prediction")
    yield controller
    controller.stop()


def top(
    yard: RolesYard, name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *more: str
) -> str:
    """Returns what the command prints for a caller."""
    monkeypatch.setenv("TRAINYARD_TOKEN", yard.tokens[name])
    monkeypatch.setenv("COLUMNS", "130")
    assert main(["top", "--url", yard.url, *more]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    return out


@pytest.mark.parametrize("name", ["night", "board"])
def test_operators_and_viewers_see_all(
    name: str, yard: RolesYard, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = top(yard, name, monkeypatch, capsys, "--once")
    lines = out.splitlines()
    assert lines[0] == "policy jpas, a plan each 0.5 s, enforced at switches and hosts"
    assert "2 of 3 hosts silent: h2, h3" in lines
    rows = {line.split()[1]: line for line in lines if line[:1].isdigit() and len(line.split()) > 4}
    assert set(rows) >= {"vision-1", "vision-2", "other"}
    assert "accuracy 0.8784" in rows["vision-1"] and re.search(r"t9[05] ", rows["vision-1"])
    waiting = [line for job, line in rows.items() if line.endswith((" at h1 in", " at h2 out"))]
    assert len(waiting) == 1, "one of the two that run is before the other at the port that both need"
    assert "\x1b" not in out and max(map(len, lines)) <= 130


def test_a_tenant_sees_its_jobs_and_the_rest_is_left_out(
    yard: RolesYard, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = top(yard, "vision", monkeypatch, capsys, "--once")
    assert "vision-1" in out and "vision-2" in out
    assert "other" not in out and "policy" not in out and "silent" not in out
    document = json.loads(top(yard, "vision", monkeypatch, capsys, "--json"))
    assert [job["id"] for job in document["jobs"]] == ["vision-1", "vision-2"]
    assert document["ports"] is document["silent_hosts"] is document["policy"] is None


def test_the_document_is_one_and_whole(
    yard: RolesYard, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    document = json.loads(top(yard, "night", monkeypatch, capsys, "--json", "--once"))
    assert (document["policy"], document["silent_hosts"]) == ("jpas", ["h2", "h3"])
    first = document["jobs"][1]
    assert (first["id"], first["iterations_done"], first["state"]) == ("vision-1", 20.0, "running")
    assert first["targets"]["t90"]["low"] <= first["targets"]["t90"]["iteration"] <= first["targets"]["t90"]["high"]


def test_without_a_controller_it_fails_as_other_commands_do(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["top", "--once", "--url", f"http://127.0.0.1:{free_port()}"]) == 1
    out, err = capsys.readouterr()
    assert (out, err[:31]) == ("", "trainyard: no controller answer")


def test_a_wrong_token_is_refused(
    yard: RolesYard, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TRAINYARD_TOKEN", "wrong")
    assert main(["top", "--once", "--url", yard.url]) == 1
    assert "the token is not known here" in capsys.readouterr().err


def test_without_a_terminal_it_says_what_to_do(yard: RolesYard, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["top", "--url", yard.url]) == 2
    assert "--once prints one picture" in capsys.readouterr().err


def test_the_command_loads_neither_rich_nor_requests_before_it_runs() -> None:
    code = (
        "import sys; from controller.cli.main import parser; parser(['top']);"
        "print([name for name in ('rich', 'requests', 'pydantic', 'numpy') if name in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
