"""Families over HTTP, from a real controller with its journal on disk: read, planned with, deleted, and restarted."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from controller.cli.main import main
from evaluation.bench.support.api_client import HOST, OPERATOR, Controller
from evaluation.bench.support.waiting import wait_until
from tests.support.controller.api.cases import assert_problem, batch, spec
from tests.support.controller.registry.family_runs import rising

NAME = "resnet50/cifar10 é"
PATH = f"/v1/families/{quote(NAME, safe='')}"
SAYS = "3 earlier runs of resnet50/cifar10 é: 0.9399 to 0.9498, 90 % at 25 to 27 % of the run"


@pytest.fixture(scope="module")
def yard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Controller]:
    folder = tmp_path_factory.mktemp("families")
    controller = Controller(folder, journal=str(folder / "j.db"), policy="jpas").start()
    for i in range(3):
        train(controller, f"run{i}", rising(end=0.94 + 0.005 * i, scale=10.0 + i / 2))
    train(controller, "stopped", rising(20))
    train(controller, "bobs", rising(), user="bob")
    controller.call("PUT", "/v1/jobs/next", spec(5000, family=NAME, user="ann"))
    yield controller
    controller.stop()


def train(controller: Controller, job: str, curve: list[float], **parts: Any) -> None:
    wanted = spec(5000, iterations=len(curve) if len(curve) > 100 else 100, **{"model": NAME, "user": "ann"} | parts)
    assert controller.call("PUT", f"/v1/jobs/{job}", wanted).status_code == 201
    now = time.time()
    points = [{"iteration": k, "time": now, "metric": metric} for k, metric in enumerate(curve, start=1)]
    report = batch({"job": job, "points": points, "ended": True})
    assert not controller.call("POST", "/v1/hosts/h1/reports", report).json()["refused"]


def explained(controller: Controller) -> Any:
    """The explanation of job ``next``, once a plan was made with its family."""

    def answer() -> Any:
        reply = controller.call("GET", "/v1/jobs/next/explain")
        return reply.json() if reply.ok else None

    return wait_until(answer, what="a plan")


def test_the_list_says_what_each_family_says(yard: Controller) -> None:
    families = yard.call("GET", "/v1/families").json()["families"]
    anns, bobs = [family for family in families if family["name"] == NAME]
    assert anns == {
        "name": NAME,
        "user": "ann",
        "host": None,
        "kept": 4,
        "counted": 3,
        "reliable": True,
        "summary": SAYS + "; not counted: 1 aborted",
    }
    assert (bobs["user"], bobs["kept"], bobs["reliable"]) == ("bob", 1, False)
    assert "ignored: one run does not show how much they differ" in bobs["summary"]


def test_a_family_shows_its_runs(yard: Controller) -> None:
    (family,) = yard.call("GET", PATH + "?user=ann").json()["families"]
    assert [run["job"] for run in family["runs"]] == ["run0", "run1", "run2", "stopped"]
    first, *_, stopped = family["runs"]
    assert first["ending"] == "finished"
    assert first["t90_share"] == pytest.approx(first["t90_iteration"] / first["iterations"])
    assert len(first["curve"]) == 64
    assert (stopped["ending"], stopped["reason"]) == (
        "aborted",
        "it stopped after 20 of 100 iterations, before it had converged",
    )
    assert len(yard.call("GET", PATH).json()["families"]) == 2, "of all owners"
    plain = yard.call("GET", f"/v1/families/{quote(NAME)}")  # a slash need not be encoded
    assert len(plain.json()["families"]) == 2


def test_explain_says_what_the_family_says(yard: Controller) -> None:
    why = explained(yard)
    assert (why["family"], why["earlier_runs"]) == (NAME, SAYS + "; not counted: 1 aborted")


def test_what_is_no_family_is_refused(yard: Controller) -> None:
    assert_problem(yard.call("GET", "/v1/families/bert"), 404, "there is no family bert: no job of it has ended")
    assert_problem(yard.call("DELETE", PATH + "?user=eve"), 404, "of user eve")
    assert_problem(yard.call("GET", "/v1/families/%ff"), 422, "it is not UTF-8", "name")
    assert_problem(yard.call("GET", "/v1/families/a%0Ab"), 422, "no control characters", "name")
    assert_problem(yard.call("GET", "/v1/families/" + 128 * "a"), 422, "at most 127 characters", "name")
    assert_problem(yard.call("GET", "/v1/families/"), 404, "there is nothing at")


@pytest.mark.parametrize(("method", "path"), [("GET", "/v1/families"), ("GET", PATH), ("DELETE", PATH)])
def test_families_are_for_operators(yard: Controller, method: str, path: str) -> None:
    assert_problem(yard.call(method, path, token=HOST), 403, "the token of host h1 is for its reports")


@pytest.mark.parametrize(
    ("parts", "field"), [({"family": 128 * "a"}, "family"), ({"family": "a\nb"}, "family"), ({"user": ""}, "user")]
)
def test_wrong_names_are_refused_with_their_field(yard: Controller, parts: Any, field: str) -> None:
    assert_problem(yard.call("PUT", "/v1/jobs/wrong", spec(5001, **parts)), 422, field, field)


def test_the_command_shows_families(
    yard: Controller, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TRAINYARD_URL", yard.url)
    monkeypatch.setenv("TRAINYARD_TOKEN", OPERATOR)
    assert main(["families"]) == 0
    listed = capsys.readouterr().out.splitlines()
    assert listed[0].split() == ["family", "owner", "runs", "summary"]
    assert any(SAYS in line and " ann " in line for line in listed)
    assert main(["families", NAME, "--user", "ann"]) == 0
    shown = capsys.readouterr().out
    assert f"summary  {SAYS}" in shown
    assert "aborted" in shown
    assert main(["families", NAME, "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["families"]) == 2
    assert main(["families", "bert"]) == 2
    assert "there is no family bert" in capsys.readouterr().err
    assert main(["families", "--delete"]) == 2
    assert "need the NAME of a family" in capsys.readouterr().err
    assert main(["explain", "next"]) == 0
    assert f"family      {SAYS}" in capsys.readouterr().out


def test_a_restart_plans_the_same_and_a_deleted_family_stays_away(
    yard: Controller, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, why = yard.call("GET", PATH).json(), explained(yard)
    yard.stop(kill=True)
    yard.start()
    assert yard.call("GET", PATH).json() == before
    assert explained(yard)["earlier_runs"] == why["earlier_runs"]
    monkeypatch.setenv("TRAINYARD_URL", yard.url)
    monkeypatch.setenv("TRAINYARD_TOKEN", OPERATOR)
    assert main(["families", NAME, "--user", "ann", "--delete"]) == 0
    yard.stop(kill=True)
    yard.start()
    assert [family["user"] for family in yard.call("GET", PATH).json()["families"]] == ["bob"]
    wait_until(lambda: explained(yard)["earlier_runs"] == f"no earlier run of {NAME} is known", what="a new plan")


def test_the_journal_is_small(tmp_path: Path) -> None:
    """A run's record has less than 2 kB, for which SQLite needs two pages of 4 kB at most."""
    controller = Controller(tmp_path, journal=str(tmp_path / "j.db")).start()
    train(controller, "long", rising(1000, scale=100.0))
    controller.stop()
    with sqlite3.connect(tmp_path / "j.db") as connection:
        ((size,),) = connection.execute("SELECT length(body) FROM record WHERE kind = 'run'").fetchall()
    connection.close()
    assert 500 < size < 2000
