"""What is known while a controller is watched, and when it is read again."""

from __future__ import annotations

import json
from typing import Any

from controller.cli.top.picture import Reading
from controller.cli.top.watch import JOBS_SECONDS, SECONDS, SOON_SECONDS, Watch
from tests.support.controller.cli.pictures import SETTINGS, history, job, jobs, network, plan, status, target


def reading(*states: Any, with_jobs: bool = True, **parts: Any) -> Reading:
    values: dict[str, Any] = {
        "status": status(),
        "settings": SETTINGS,
        "plan": plan(("a",)),
        "network": network(h1={}, h2={}),
        "history": history(),
        "jobs": jobs(*states) if with_jobs else None,
    }
    return Reading(**values | parts)


def told(kind: str, **data: Any) -> str:
    return json.dumps({"id": 1, "event": kind, "time": 0.0, "data": data})


def job_event(name: str, done: float, **parts: Any) -> str:
    progress = {
        "iterations_done": done,
        "iterations_total": None,
        "last_metric": 0.7,
        "last_report": 5.0,
        "diverged": False,
    }
    data = {"id": name, "state": "running", "progress": progress, "service_class": 1, "targets": {}} | parts
    return told("job", **data)


def plan_event(epoch: int, *bands: list[str]) -> str:
    classes = {name: place for place, band in enumerate(bands) for name in band}
    return told("plan", epoch=epoch, policy="las", order=bands, classes=classes, moves=1, lower_bound_seconds=3.0)


def started(*states: Any) -> Watch:
    """Returns a watch that has read a controller at 0 s, and wants nothing now."""
    watch = Watch(0.0)
    watch.connected(0.0)
    assert watch.wants(0.0) == (True, True)
    watch.was_read(reading(*states), 0.5)
    assert watch.wants(0.6) == (False, False)
    return watch


def test_nothing_is_read_before_the_events_are_followed() -> None:
    watch = Watch(0.0)
    assert watch.wants(10.0) == (False, False)
    watch.connected(10.0)
    assert watch.wants(10.0) == (True, True)
    assert watch.wants(10.0) == (False, False), "it is being read"


def test_an_event_of_a_job_changes_the_picture_at_once() -> None:
    watch = started(job("a", 0, ("h1", "h2", 1e6)))
    watch.told(job_event("a", 33.0, targets={"t90": target(40, 35, 50)}), 1.0)
    changed = watch.picture.jobs["a"]
    assert (changed.iterations_done, changed.last_metric, changed.service_class) == (33.0, 0.7, 1)
    assert changed.targets["t90"].high == 50
    assert watch.picture.loads["a"], "its load stays"
    watch.told(told("job", id="a", state="removed", progress=None, service_class=None, targets={}), 2.0)
    assert not watch.picture.jobs
    assert watch.wants(2.0) == (False, False)


def test_what_came_while_the_controller_was_read_is_not_lost() -> None:
    watch = started(job("a", 0))
    assert watch.wants(SECONDS) == (True, False)
    watch.told(job_event("a", 99.0), SECONDS + 0.1)
    watch.was_read(reading(job("a", 0, iterations_done=50.0)), SECONDS + 0.2)
    assert watch.picture.jobs["a"].iterations_done == 99.0
    watch.wants(2 * SECONDS)
    watch.was_read(reading(job("a", 0, iterations_done=120.0)), 2 * SECONDS + 0.2)
    assert watch.picture.jobs["a"].iterations_done == 120.0, "but it is not applied twice"


def test_a_new_job_is_read_soon_and_not_more_often() -> None:
    watch = started(job("a", 0))
    watch.told(job_event("new", 1.0), 0.7)
    assert watch.wants(0.7) == (False, False)
    assert watch.wants(SOON_SECONDS) == (True, True)
    watch.was_read(reading(job("a", 0), job("new", 1)), SOON_SECONDS)
    assert set(watch.picture.jobs) == {"a", "new"}


def test_the_state_is_read_each_few_seconds_and_the_jobs_seldom() -> None:
    watch, now, with_jobs = started(job("a", 0)), 0.0, []
    while now < JOBS_SECONDS + SECONDS:
        now += SECONDS
        is_wanted, asked = watch.wants(now)
        assert is_wanted
        with_jobs.append(asked)
        watch.was_read(reading(job("a", 0), with_jobs=asked), now)
        assert set(watch.picture.jobs) == {"a"}
    assert sum(with_jobs) == 1


def test_a_gap_and_other_events_let_the_state_be_read_again() -> None:
    watch = started(job("a", 0))
    watch.told(told("host", name="h1", state="silent", marks_acknowledgements=False), 0.7)
    assert watch.wants(SOON_SECONDS) == (True, False)
    watch.was_read(reading(with_jobs=False), 1.1)
    watch.told(told("gap", first=1, last=5), 1.2)
    assert watch.wants(2.2) == (True, True)


def test_a_plan_says_since_when_it_is_in_force() -> None:
    watch = started(job("a", 0))
    assert watch.picture.plan is not None
    assert (watch.picture.plan.since, watch.picture.plan.at_least) == (None, -1.5), "it was made 2 s before it was read"
    watch.told(plan_event(8, ["b"], ["a"]), 3.0)
    assert (watch.picture.plan.since, watch.picture.plan.policy) == (3.0, "las")
    assert watch.picture.plan.order == (("b",), ("a",))
    watch.told(plan_event(8, ["a"], ["b"]), 4.0)
    assert watch.picture.plan.since == 3.0, "another order of the same classes is no other plan"
    watch.wants(4.0)
    watch.was_read(reading(job("a", 0), plan=plan(("a",), epoch=8)), 4.5)
    assert watch.picture.plan.since == 3.0
    watch.wants(4.5 + SECONDS)
    watch.was_read(reading(job("a", 0), plan=plan(("a",), epoch=9)), 12.0)
    assert watch.picture.plan.since == 12.0


def test_a_controller_that_goes_and_comes_back_is_read_anew() -> None:
    watch = started(job("a", 0))
    watch.lost("no controller answers", 10.0)
    watch.lost("no controller answers", 12.0)
    assert (watch.gone_since, watch.why_gone) == (10.0, "no controller answers")
    assert watch.wants(13.0) == (False, False)
    assert set(watch.picture.jobs) == {"a"}, "what was known stays"
    watch.connected(14.0)
    assert watch.gone_since is None
    assert watch.wants(14.0) == (True, True)
    watch.was_read(None, 14.5)
    assert watch.wants(14.0 + SECONDS) == (True, True), "the jobs were not read"
