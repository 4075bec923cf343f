"""What a controller says that enforces nothing, or only at one of the two kinds of places."""

from __future__ import annotations

from pathlib import Path

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
        assert "arrived" in controller.call("GET", "/v1/jobs/tried/explain").json()["reason"]
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


def test_hosts_alone(tmp_path: Path) -> None:
    controller = Controller(tmp_path, enforce=["host"]).start()
    try:
        assert_problem(controller.call("GET", "/readyz"), 503, "no agent reports")
        controller.call("POST", "/v1/hosts/h1/reports", batch(), token=HOST)
        assert controller.call("GET", "/readyz").json() == {"status": "ready", "problems": []}
        assert "paused" not in controller.call("GET", "/v1/hosts/h1/plan", token=HOST).json()
    finally:
        controller.stop()


def test_switches_alone(tmp_path: Path) -> None:
    controller = Controller(tmp_path, enforce=["switch"]).start()
    try:
        assert_problem(controller.call("GET", "/readyz"), 503, "no switch has connected")
        assert controller.call("GET", "/v1/hosts/h1/plan", token=HOST).json()["paused"] is True
    finally:
        controller.stop()
