"""DSCPs that jobs have for their life, as users see them: jobs, explanations, plans, problems, restarts and reloads."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from controller.cli.main import main
from controller.wire import EVERY_ADDRESS, JOB_DSCP
from evaluation.bench.support.api_client import HOST, OPERATOR, Controller
from evaluation.bench.support.waiting import wait_until
from tests.support.controller.api.cases import batch, spec


@pytest.fixture(scope="module")
def controller(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Controller]:
    folder = tmp_path_factory.mktemp("dscps")
    made = Controller(
        folder, journal=str(folder / "journal.db"), identity="dscp", dscp={"jobs": [3, "7-8"]}, probe=False
    )
    made.settings["hosts"] = [{"name": f"h{i}", "address": f"10.0.0.{i}", "switch": 1, "port": i} for i in (1, 2, 3)]
    made.write()
    made.start()
    yield made
    made.stop()


def dscp_of(controller: Controller, job: str) -> int | None:
    answer = controller.call("GET", f"/v1/jobs/{job}").json()
    return None if answer["dscp"] is None else int(answer["dscp"])


def test_jobs_from_their_registration_on(
    controller: Controller, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for number, expected in enumerate((3, 7, 8, 8)):
        answer = controller.call("PUT", f"/v1/jobs/job{number}", spec(5000 + number))
        assert answer.status_code == 201
        assert (answer.json()["dscp"], answer.json()["acknowledgement_dscp"]) == (expected, 63)
    wait_until(lambda: "job3" in controller.call("GET", "/v1/plan").json()["classes"])
    plan = controller.call("GET", "/v1/plan").json()
    assert plan["mode"] == controller.call("GET", "/v1/status").json()["mode"] == "dscp"
    assert plan["classes"]["job2"] == plan["classes"]["job3"]
    shared = (
        "it shares DSCP 8 with 1 other job: no other one of dscp.jobs was free, and all have the best of their classes"
    )
    listed = {job["id"]: job for job in controller.call("GET", "/v1/jobs").json()["jobs"]}
    assert {name: job["problems"] for name, job in listed.items()} == {
        "job0": [], "job1": [], "job2": [shared], "job3": [shared],
    }  # fmt: skip
    explained = controller.call("GET", "/v1/jobs/job3/explain").json()
    assert (explained["dscp"], explained["problems"]) == (8, [shared])
    monkeypatch.setenv("TRAINYARD_TOKEN", OPERATOR)
    assert main(["explain", "job3", "--url", controller.url]) == 0
    assert "share" in (said := capsys.readouterr().out) and "DSCP" in said
    problems = controller.call("GET", "/v1/status").json()["problems"]
    assert any(
        problem.startswith("2 jobs share DSCP 8, because no other one of dscp.jobs was free") for problem in problems
    )


def test_an_agent_of_an_earlier_version_is_in_problems(controller: Controller) -> None:
    def problems() -> str:
        return "\n".join(controller.call("GET", "/v1/status").json()["problems"])

    assert controller.call("POST", "/v1/hosts/h1/reports", batch(), token=HOST).ok
    said = "agents of an earlier version do not mark the DSCPs of jobs, so update them: h1"
    path = "/v1/hosts/h1/plan"
    assert controller.call("GET", path, token=HOST, headers={"Prefer": EVERY_ADDRESS}).json()["mode"] == "dscp"
    assert said in problems()
    today = {"Prefer": f"{EVERY_ADDRESS}, {JOB_DSCP}"}
    plan = controller.call("GET", path, token=HOST, headers=today).json()
    assert [(job["job"], job["dscp"]) for job in plan["jobs"]] == [("job0", 3), ("job1", 7), ("job2", 8), ("job3", 8)]
    assert said not in problems()


def test_a_restart_and_a_reload_move_no_job_that_runs(controller: Controller) -> None:
    controller.stop(kill=True)
    controller.start()
    assert [dscp_of(controller, f"job{number}") for number in range(4)] == [3, 7, 8, 8]
    controller.settings["dscp"] = {"jobs": [12]}
    controller.write()
    answer = controller.call("POST", "/v1/reload").json()
    assert [change["field"] for change in answer["changed"]] == ["dscp.jobs"]
    assert not answer["waiting"]
    assert controller.call("PUT", "/v1/jobs/later", spec(6000)).json()["dscp"] == 12
    assert [dscp_of(controller, f"job{number}") for number in range(4)] == [3, 7, 8, 8]
    controller.settings["dscp"] = {"jobs": [12], "other": 1}
    controller.write()
    assert [change["field"] for change in controller.call("POST", "/v1/reload").json()["waiting"]] == ["dscp.other"]


def test_a_job_that_is_over_has_none(controller: Controller) -> None:
    assert controller.call("DELETE", "/v1/jobs/job0").status_code == 204
    assert controller.call("GET", "/v1/jobs/job0").status_code == 404
