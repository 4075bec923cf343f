"""What ``trainyard explain`` says of a change that was tried."""

from __future__ import annotations

from typing import Any

import pytest

from controller.cli.explain.tries import tries
from controller.wire import Explanation, JobWait, LaterJob, Outcome

EXPLAINED: dict[str, Any] = {
    "job": "a", "policy": "jpas", "service_class": 1, "position": 1, "jobs_before": (), "reason": "it is long",
    "bottleneck_port": None, "bottleneck_seconds_per_iteration": 0.0, "iterations_done": 1.0, "iterations_left": 2.0,
    "epoch": 72, "planned_at": 1_795_662_705.0,
}  # fmt: skip


def outcome(before: int, seconds: float, alike: int = 0, **parts: Any) -> Outcome:
    """Returns an outcome where each job that shares the port needs a second of it, and the job itself ten."""
    wait = JobWait(
        port="h3 egress", first="b" if before else None, before_count=before, alike_count=alike, seconds_before=seconds,
        seconds_beside=float(alike), seconds_until_served=seconds + alike + 10.0,
    )  # fmt: skip
    fields: dict[str, Any] = {
        "weight": 1.0, "target": None, "policy": "jpas", "service_class": 1, "reason": "it is long", "wait": wait,
    }  # fmt: skip
    return Outcome.model_validate(fields | parts)


def said(asked: str, *outcomes: Outcome, **parts: Any) -> list[tuple[str, str]]:
    """Returns what is said of the outcomes, without the plan's time of day, which is local."""
    answer = Explanation.model_validate(EXPLAINED | {"outcomes": outcomes} | parts)
    return [
        (name, value.partition(", made at")[0] if name == "plan" else value) for name, value in tries(answer, [asked])
    ]


def test_weights_stand_beside_what_is_and_name_who_pays() -> None:
    later = tuple(LaterJob(job=name, seconds=9.0, seconds_now=3.0) for name in "bcde")
    tried = (
        outcome(1, 4.0, 2, weight=2.0),
        outcome(0, 0.0, weight=4.0, later=later, later_count=6),
        outcome(3, 40.0, weight=0.5),
    )
    assert said("weights", outcome(2, 25.0), *tried) == [
        ("plan", "72"),
        (
            "as it is",
            "weight 1: it waits 25 s at most: 2 jobs go before it at h3 egress. Served after 35 s at most.",
        ),
        (
            "with",
            "weight 2: it would wait less, 25 s -> 6 s at most: 1 job goes before it at h3 egress, and it shares the "
            "port with 2 jobs. Served after 35 s -> 16 s at most. No other job would wait longer.",
        ),
        (
            "with",
            "weight 4: it would wait less, 25 s -> 0 s at most: nobody is before it or beside it. Served after 35 s -> "
            "10 s at most. Longer would wait: b (3 s -> 9 s), c (3 s -> 9 s), d (3 s -> 9 s) and 3 more.",
        ),
        (
            "with",
            "weight 0.5: it would wait longer, 25 s -> 40 s at most: 3 jobs go before it at h3 egress. Served after "
            "35 s -> 50 s at most. No other job would wait longer.",
        ),
        ("times", "the most that the network can need; computing comes in addition, and new jobs change them"),
        (
            "to do",
            "write weight: ... into the job's file, in /etc/trainyard/jobs.d of one of its hosts; or send the spec of "
            "GET /v1/jobs/a with it by PUT /v1/jobs/a. The job goes on, and keeps its progress",
        ),
    ]


@pytest.mark.parametrize(
    ("asked", "tried", "with_it", "to_do"),
    [
        ("target", outcome(2, 25.0, target=0.9), "target 0.9: no difference: it waits 25 s at most: 2 jobs",
         "write target: ... into"),
        ("policy", outcome(0, 0.0, 3, policy="fair"),
         "policy fair: it would wait less, 25 s -> 3 s at most: it shares h3 egress with 3 jobs.",
         "set the policy for all jobs"),
        ("weight", outcome(2, 25.0, wait=None, weight=3.0),
         "weight 3: it would wait less, 25 s -> 0 s at most: it has no known traffic. No other", "write weight: ..."),
        ("weight", outcome(2, 25.0), "no change: no difference: it waits 25 s", "write weight: ..."),
    ],
)  # fmt: skip
def test_a_change_is_told_with_what_it_takes(asked: str, tried: Outcome, with_it: str, to_do: str) -> None:
    *_, (name, value), _, (_, how) = said(asked, outcome(2, 25.0), tried)
    assert (name, value.startswith(with_it)) == ("with", True), value
    assert to_do in how


def test_without_a_number_of_the_plan_it_is_the_one_in_force() -> None:
    first, *_ = said("weight", outcome(2, 25.0), outcome(1, 9.0, weight=2.0), epoch=None)
    assert first == ("plan", "the one in force")


def test_nothing_was_tried() -> None:
    assert said("weight") == []
