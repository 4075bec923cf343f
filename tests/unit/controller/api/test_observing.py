"""What a controller says that enforces nothing, or only at one of the two kinds of places."""

from __future__ import annotations

from pathlib import Path

import pytest

from evaluation.bench.support.api_client import HOST, Controller
from evaluation.bench.support.waiting import wait_until
from tests.support.controller.api.cases import assert_problem, batch, spec


def test_an_operator_tries_it_without_touching_anything(tmp_path: Path) -> None:
    controller = Controller(tmp_path, enforce=[]).start()
    try:
        assert controller.call("GET", "/readyz").json() == {"status": "observing", "problems": []}
        controller.call("PUT", "/v1/jobs/tried", spec(5000))
        wait_until(lambda: "tried" in controller.call("GET", "/v1/plan").json().get("classes", ()))
        assert controller.call("GET", "/v1/plan").json()["applied"] is False
        explained = controller.call("GET", "/v1/jobs/tried/explain").json()
        assert "arrived" in explained["reason"]
        assert explained["not_enforced"] == "the settings say to observe only (enforce: [])"
        plan = controller.call("GET", "/v1/hosts/h1/plan", token=HOST).json()
        assert plan["paused"] is True
        assert controller.call("POST", "/v1/hosts/h1/reports", batch(), token=HOST).ok
        status = controller.call("GET", "/v1/status").json()
        assert (status["enforce"], status["paused"], status["problems"]) == ([], False, [])
        controller.call("PATCH", "/v1/settings", {"pause": True})
        controller.call("PATCH", "/v1/settings", {"pause": False})
        assert controller.call("GET", "/v1/hosts/h1/plan", token=HOST).json()["paused"] is True
    finally:
        controller.stop()
    assert "the controller only observes" in controller.log()


@pytest.mark.parametrize("word", ["hosts", "host"])
def test_hosts_alone(tmp_path: Path, word: str) -> None:
    controller = Controller(tmp_path, enforce=[word]).start()

    def report(**parts: object) -> None:
        assert controller.call("POST", "/v1/hosts/h1/reports", batch(**parts), token=HOST).ok

    try:
        assert_problem(controller.call("GET", "/readyz"), 503, "no agent reports")
        report(marks=False)
        assert_problem(controller.call("GET", "/readyz"), 503, "no agent marks packets")
        controller.call("PUT", "/v1/jobs/held", spec(5000))
        wait_until(lambda: controller.call("GET", "/v1/jobs/held/explain").ok, what="a plan")
        assert controller.call("GET", "/v1/jobs/held/explain").json()["not_enforced"] == "no agent marks packets"
        report(marks=True)
        assert controller.call("GET", "/readyz").json() == {"status": "ready", "problems": []}
        assert controller.call("GET", "/v1/jobs/held/explain").json()["not_enforced"] is None
        assert controller.call("GET", "/v1/plan").json()["applied"] is True
        assert "paused" not in controller.call("GET", "/v1/hosts/h1/plan", token=HOST).json()
        status = controller.call("GET", "/v1/status").json()
        assert (status["enforce"], status["switches"], status["problems"]) == (["hosts"], [], [])
        assert [host["marks"] for host in status["hosts"]] == [True, None, None]
        # While an operator has paused, no agent marks, and that is no reason to take the controller out of service.
        controller.call("PATCH", "/v1/settings", {"pause": True})
        report(marks=False)
        assert controller.call("GET", "/readyz").json()["status"] == "degraded"
        assert controller.call("GET", "/v1/jobs/held/explain").json()["not_enforced"] == "an operator has paused"
    finally:
        controller.stop()


def test_an_agent_that_does_not_say_whether_it_marks_is_believed(tmp_path: Path) -> None:
    controller = Controller(tmp_path, enforce=["hosts"]).start()
    try:
        controller.call("POST", "/v1/hosts/h1/reports", batch(), token=HOST)
        assert controller.call("GET", "/readyz").json() == {"status": "ready", "problems": []}
    finally:
        controller.stop()


@pytest.mark.parametrize(
    ("settings", "is_problem"),
    [({}, False), ({"identity": "dscp"}, True), ({"identity": "dscp", "enforce": ["switches"]}, False)],
)
def test_an_agent_that_does_not_mark_is_a_problem_where_its_marks_are_needed(
    tmp_path: Path, settings: dict[str, object], is_problem: bool
) -> None:
    controller = Controller(tmp_path, **settings).start()
    try:
        controller.call("POST", "/v1/hosts/h1/reports", batch(marks=False), token=HOST)
        problems = controller.call("GET", "/v1/status").json()["problems"]
        assert any(
            each.endswith("their agents mark no packets (the agent's log says why): h1") for each in problems
        ) is (is_problem)
    finally:
        controller.stop()


def test_switches_alone(tmp_path: Path) -> None:
    controller = Controller(tmp_path, enforce=["switch"]).start()
    try:
        assert_problem(controller.call("GET", "/readyz"), 503, "no switch has connected")
        assert controller.call("GET", "/v1/hosts/h1/plan", token=HOST).json()["paused"] is True
    finally:
        controller.stop()
