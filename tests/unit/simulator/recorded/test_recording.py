"""What a recording shows."""

from __future__ import annotations

from typing import Any

import pytest

from simulator.errors import InputError
from simulator.recorded.lines import Data, Gap, Host, Job, Plan, Settings
from simulator.recorded.recording import Point, Recording, recording

DESCRIPTION = {"arrival": 1000.0, "demand": [{"src": "h1", "dst": "h2", "bytes": 1e6}]}


def job(state: str, done: float | None = None, name: str = "a", **parts: Any) -> Job:
    progress = None if done is None else {"iterations_done": done, "last_metric": done / 100}
    progress = progress if progress is None else progress | parts.pop("progress", {})
    return Job.model_validate({"id": name, "state": state, "progress": progress} | parts)


def read(*events: tuple[float, Data]) -> Recording:
    return recording(events, "f")


def test_a_run_from_its_registration_to_its_end() -> None:
    (run,) = read(
        (1.0, job("waiting", 0.0, description=DESCRIPTION)),
        (2.0, job("running", 4.0)),
        (3.0, job("running", 4.0)),
        (4.0, job("running", 9.0)),
        (5.0, job("ended", 10.0, description=DESCRIPTION | {"weight": 2.0})),
        (6.0, job("removed")),
    ).runs
    assert run.points == [Point(2.0, 4.0, 0.04), Point(4.0, 9.0, 0.09), Point(5.0, 10.0, 0.1)]
    assert (run.seen, run.begun_seen, run.ended) == (1.0, True, True)
    assert run.description is not None and run.description.weight == 2.0


def test_another_run_of_the_same_name_is_another_job() -> None:
    again = read(
        (1.0, job("running", 1.0)),
        (2.0, job("ended", 5.0)),
        (3.0, job("ended", 5.0)),
        (4.0, job("waiting", 0.0)),
        (5.0, job("running", 2.0)),
        (6.0, job("removed")),
        (7.0, job("running", 1.0)),
        (8.0, job("running", 0.5)),
    ).runs
    assert [run.id for run in again] == ["a", "a, run 2", "a, run 3", "a, run 4"]
    assert [run.ended for run in again] == [True, False, False, False]
    assert all(run.begun_seen for run in again[1:])


def test_a_job_that_ran_before_the_recording_has_no_beginning_there() -> None:
    reported = {"progress": {"last_report": 2_000.0}}
    (before,) = read((10.0, job("running", 7.0, description=DESCRIPTION, **reported)), (11.0, job("running", 9.0))).runs
    assert not before.begun_seen, "it arrived at 1000, and the recording began at 2000"
    late = DESCRIPTION | {"arrival": 1_999.0}
    (within,) = read((10.0, job("running", 7.0, description=late, **reported)), (11.0, job("running", 9.0))).runs
    assert within.begun_seen


def test_the_policy_that_was_followed_longest_is_that_of_the_recording() -> None:
    found = read(
        (0.0, Settings(policy="jpas", policy_options={"variant": "gain"}, period_seconds=2.0, classes=5)),
        (0.0, Plan(policy="jpas")),
        (60.0, Plan(policy="las")),
        (80.0, Plan(policy="jpas")),
        (90.0, job("waiting", 0.0)),
    )
    assert (found.policy, found.policies) == ("jpas", {"jpas": 70.0, "las": 20.0})
    assert (found.options, found.period, found.classes, found.seconds) == ({"variant": "gain"}, 2.0, 5, 90.0)


@pytest.mark.parametrize("off", [{"pause": True}, {"enforce": ()}])
def test_where_nothing_is_enforced_the_network_is_fair(off: dict[str, Any]) -> None:
    found = read(
        (0.0, Settings(policy="jpas", **off)),
        (0.0, Plan(policy="jpas")),
        (50.0, Settings(policy="jpas", pause=False, enforce=("switch",))),
        (60.0, Plan(policy="jpas")),
    )
    assert found.policies == {"fair": 50.0, "jpas": 10.0}


def test_rates_and_gaps_are_known() -> None:
    found = read(
        (0.0, Host(name="h1", egress_bps=1e9, ingress_bps=2e9)), (1.0, Host(name="h2")), (1.0, Gap(first=3, last=7))
    )
    assert (found.rates, found.missed, found.policy) == ({"h1": (1e9, 2e9)}, 5, None)


def test_a_recording_without_events_is_refused() -> None:
    with pytest.raises(InputError, match="f: has no events of jobs, plans, hosts or settings"):
        read()
