"""``host-reporter check`` on this machine: against a real controller, and where something is wrong."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from email.utils import formatdate
from pathlib import Path
from typing import Any

import pytest

from controller.wire import CallerView
from evaluation.bench.support.free_port import free_port
from host_reporter.agent import main
from host_reporter.check import command
from host_reporter.check.controller import caller_verdict, clock_offset, clock_verdict
from host_reporter.options import Options
from host_reporter.uplink.connection import Answer
from tests.support.controller.api.roles_yard import RolesYard

PATTERN = r"iteration (?P<iteration>\d+)"


@pytest.fixture(scope="module")
def yard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RolesYard]:
    yard = RolesYard(tmp_path_factory.mktemp("check"), enrolment={})
    try:
        yield yard.start()
    finally:
        yard.stop()


@pytest.fixture
def check(yard: RolesYard, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    jobs = tmp_path / "jobs.d"
    jobs.mkdir()

    def run(*arguments: str, token: str | None = "h1", url: str = yard.url) -> tuple[int, dict[str, list[str]]]:
        given = ["check", "--json", "--no-marking", "--jobs-dir", str(jobs), "--controller", url, *arguments]
        if token is not None:
            file = tmp_path / "token"
            file.write_text(yard.tokens.get(token, token))
            file.chmod(0o600)
            given += ["--token-file", str(file)]
        status = main(given)
        document = json.loads(capsys.readouterr().out)
        found: dict[str, list[str]] = {}
        for each in document["checks"]:
            found.setdefault(each["check"], []).append(f"{each['state']}: {each['text']}")
        return status, found

    return run


def test_a_host_that_has_all_it_needs(check: Any) -> None:
    status, found = check("--host", "h1")
    assert status == 0, found
    assert "ok: it answers, and knows this host as h1 (host)" in found["controller"]
    assert "ok: host h1 is known there" in found["controller"]
    assert found["clock"] == ["ok: it agrees with the controller's, as far as whole seconds show"]
    assert {"rights", "kernel", "interface", "job files"} <= found.keys()


@pytest.mark.parametrize(
    ("arguments", "token", "said"),
    [
        (("--host", "h1"), "a-token-that-nobody-knows", "missing: it refuses this host: the token is not known here"),
        (("--host", "h1"), "board", "missing: it answers, and knows this host as board (viewer)"),
        (("--host", "h1"), "night", "note: it answers, and knows this host as night (operator)"),
        (("--host", "h9"), "night", "missing: host h9 has no plan: there is no host h9"),
    ],
)
def test_what_the_controller_says_of_the_token(check: Any, arguments: Any, token: str, said: str) -> None:
    status, found = check(*arguments, token=token)
    assert [line for line in found["controller"] if line.startswith(said)], found
    assert status == int(any(line.startswith("missing") for line in found["controller"]))


def test_a_host_that_enrols_needs_no_plan_yet(check: Any, yard: RolesYard, tmp_path: Path) -> None:
    token = tmp_path / "enrol"
    token.write_text(yard.tokens["rack"])
    status, found = check("--host", "h9", "--enrol-token-file", str(token), token=None)
    assert status == 0, found
    assert "ok: it answers, and knows this host as rack (enrol)" in found["controller"]


def test_a_controller_that_does_not_answer(check: Any) -> None:
    status, found = check(url=f"http://127.0.0.1:{free_port()}")
    assert status == 1
    assert "does not answer: Connection refused" in found["controller"][0]
    assert "clock" not in found


def test_each_job_file_is_read_as_the_agent_reads_it(check: Any, tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_text("")
    right = {"id": "a", "progress": {"log": str(log), "pattern": PATTERN}}
    (tmp_path / "jobs.d/a.json").write_text(json.dumps(right))
    (tmp_path / "jobs.d/b.json").write_text(json.dumps(right | {"id": "b", "progress": {"jsonl": "nowhere.jsonl"}}))
    status, found = check("--host", "h1")
    assert status == 0, found
    assert found["job files"][0] == f"ok: a.json is understood: job a follows {log}"
    assert found["job files"][1].endswith("nowhere.jsonl, which is not there yet")
    (tmp_path / "jobs.d/c.json").write_text('{\n  "id": "c",\n  "progres": 3\n}\n')
    (tmp_path / "jobs.d/d.json").write_text(json.dumps(right))
    status, found = check("--host", "h1")
    assert status == 1
    wrong = [line for line in found["job files"] if line.startswith("missing")]
    assert [f"{tmp_path}/jobs.d/c.json:3: progres" in wrong[0], "a is the job of" in wrong[1]] == [True, True]


def test_a_named_interface_is_looked_at(check: Any) -> None:
    status, found = check("--host", "h1", "--interface", "no-such-if")
    assert status == 1
    assert found["interface"] == ["missing: there is no interface no-such-if"]


def test_wrong_options_are_said_and_nothing_is_checked(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "--rate-bps", "1e9"]) == 2
    assert main(["check", "--controller", "nowhere"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "--rate-bps: give --interface too" in captured.err


def test_a_check_that_fails_ends_no_other() -> None:
    def broken(_options: Options) -> Any:
        raise ZeroDivisionError("it is broken")

    found = list(command.run(Options(), [broken, *command.CHECKS]))
    assert found[0].text == "it could not be looked at: ZeroDivisionError: it is broken"
    assert len(found) > 4


def test_the_clocks_are_compared_by_the_date_of_an_answer() -> None:
    now = time.time()
    assert clock_offset(formatdate(now + 60, usegmt=True), now, now) == pytest.approx(60, abs=1)
    assert clock_offset(None, now, now) is None
    assert clock_offset("yesterday", now, now) is None
    assert [clock_verdict(offset).state for offset in (0.9, -1.9, 30.0, -30.0)] == ["ok", "ok", "note", "note"]
    assert "30 s behind the controller's" in clock_verdict(30.0).text


@pytest.mark.parametrize("answer", [Answer(404, None, b""), Answer(200, None, b"<html>")])
def test_what_is_no_controller_is_said_to_be_none(answer: Answer) -> None:
    assert "is no controller of this version" in caller_verdict(answer, Options()).text


def test_the_right_of_a_caller_is_shown() -> None:
    body = CallerView(name="h1", role="host", calls=()).model_dump_json().encode()
    assert caller_verdict(Answer(200, None, body), Options()).state == "ok"
