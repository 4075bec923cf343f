"""DSCPs that jobs have for their life, from the real controller to an agent that carries its plan out."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from controller.wire import EVERY_ADDRESS, HostPlan
from evaluation.bench.support.api_client import HOST, Controller
from evaluation.bench.support.waiting import wait_until
from host_reporter.marking.enforcement import Enforcement
from host_reporter.notices import Notices
from host_reporter.uplink.connection import Address
from host_reporter.uplink.plan_follower import PlanFollower
from tests.support.controller.api.cases import batch, spec


class Recorder(Enforcement):
    """Notes plans, and changes nothing on this machine."""

    def __init__(self) -> None:
        super().__init__(None, None, Notices(logging.getLogger("test")))
        self.plans: list[HostPlan] = []

    def apply(self, plan: HostPlan, *, look: bool = True) -> bool:
        self.plans.append(plan)
        return True


@pytest.fixture
def controller(tmp_path: Path) -> Iterator[Controller]:
    made = Controller(tmp_path, identity="dscp").start()
    yield made
    made.stop()


def follower(controller: Controller, recorder: Recorder, tmp_path: Path) -> PlanFollower:
    (tmp_path / "token").write_text(HOST)
    (tmp_path / "token").chmod(0o600)
    return PlanFollower(
        Address(controller.url, token_file=tmp_path / "token"),
        "h1",
        recorder,
        Notices(logging.getLogger("test")),
        count=lambda _sent: None,
        marked=lambda _marking: None,
        failed=lambda error: pytest.fail(str(error)),
        paused=lambda _is_paused: None,
        followed=lambda _plan: None,
    )


def test_an_agent_of_today_is_known_and_gets_the_dscps_of_its_jobs(controller: Controller, tmp_path: Path) -> None:
    def is_named() -> bool:
        problems = controller.call("GET", "/v1/status").json()["problems"]
        return any("agents of an earlier version do not mark the DSCPs of jobs" in problem for problem in problems)

    assert controller.call("POST", "/v1/hosts/h1/reports", batch(), token=HOST).ok
    controller.call("GET", "/v1/hosts/h1/plan", token=HOST, headers={"Prefer": EVERY_ADDRESS})
    assert is_named()
    recorder = Recorder()
    agent = follower(controller, recorder, tmp_path)
    agent.start()
    try:
        wait_until(lambda: recorder.plans, what="the first plan")
        assert not is_named()
        assert (recorder.plans[-1].mode, recorder.plans[-1].jobs) == ("dscp", ())
        controller.call("PUT", "/v1/jobs/a", spec(5000))
        wait_until(lambda: recorder.plans[-1].jobs, what="the plan with the job")
        (job,) = recorder.plans[-1].jobs
        assert (job.job, job.dscp) == ("a", controller.call("GET", "/v1/jobs/a").json()["dscp"]) == ("a", 3)
        assert {mark.dscp for mark in recorder.plans[-1].marks} == {3}
        assert recorder.plans[-1].served_points.served() == {3: job.service_class, 63: 0}
    finally:
        agent.stop()
