"""What becomes an event, where one of the parts is at fault, or the clock jumps."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import eventlet
import pytest

from controller.api.calls.state import all_problems
from controller.api.live.sources import Sources
from controller.model import Prediction
from evaluation.bench.support.waiting import wait_until
from tests.support.controller.api.served import Served, served

NOW = 1_700_000_000.0


class Clock:
    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def api(clock: Clock) -> Iterator[Served]:
    with served() as there:
        sources = Sources(there.services, all_problems, clock=clock)
        sources.start()
        yield there
        sources.stop()


def events(api: Served, kind: str) -> list[dict[str, Any]]:
    """Returns the data of the events of a kind so far, with their times."""
    ring = api.services.feed.ring
    found = ring.after(ring.first - 1, together=10**9).events
    return [event.data | {"at": event.time} for event in found if event.kind == kind]


def states(api: Served) -> dict[str, dict[str, Any]]:
    """Returns the newest data of each job."""
    return {data["id"]: data for data in events(api, "job")}


def test_a_prediction_that_is_no_number_costs_the_event_of_its_job_alone(
    api: Served, caplog: pytest.LogCaptureFixture
) -> None:
    for number, job in enumerate("abc"):
        api.yard.put(job, 5000 + number)
    wait_until(lambda: set(states(api)) == {"a", "b", "c"}, sleep=eventlet.sleep)
    eventlet.sleep(1.3)  # an event of a job comes a second after the one before
    bad: Any = Prediction("t90", 0.9, "soon", 1.0, 2.0)  # type: ignore[arg-type]
    never = Prediction("t90", math.nan, math.inf, 1.0, math.inf)
    plan = api.yard.loop.plan
    assert plan is not None
    predictions = {"a": (never,), "b": (bad,), "c": (never,)}
    api.yard.loop.plan = replace(plan, ordering=replace(plan.ordering, predictions=predictions))
    api.yard.loop._tell()
    nothing = {"metric": None, "iteration": None, "low": 1.0, "high": None, "reached": False}
    wanted = [{"t90": nothing}, {}, {"t90": nothing}]
    wait_until(lambda: [states(api)[job]["targets"] for job in "abc"] == wanted, sleep=eventlet.sleep)
    assert caplog.text.count("the events of 1 jobs are missing") == 1


def test_a_clock_that_jumps_changes_the_times_of_events_and_nothing_else(api: Served, clock: Clock) -> None:
    for number, later in enumerate((0.0, 7200.0, -86400.0)):
        clock.now = NOW + later
        api.yard.put(f"job-{number}", 5000 + number)
        eventlet.sleep(0.4)
    api.yard.registry.delete_job("job-0", time.monotonic())
    wanted = {"job-0": "removed", "job-1": "waiting", "job-2": "waiting"}
    wait_until(lambda: {job: data["state"] for job, data in states(api).items()} == wanted, sleep=eventlet.sleep)
    first = {data["id"]: data["at"] for data in events(api, "job") if data["state"] == "waiting"}
    assert first == {"job-0": NOW, "job-1": NOW + 7200, "job-2": NOW - 86400}
    assert states(api)["job-0"]["state"] == "removed"
    ring = api.services.feed.ring
    ids = [event.id for event in ring.after(ring.first - 1, together=10**9).events]
    assert ids == list(range(ring.first, ring.first + len(ids)))
