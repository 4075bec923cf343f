"""What ``trainyard explain`` says of a job, from what the controller has answered."""

from __future__ import annotations

from typing import Any

import pytest

from controller.cli.explain.facts import facts
from controller.wire import Explanation, JobPace


def explanation(**parts: Any) -> Explanation:
    """Returns the explanation of a job without traffic."""
    fields: dict[str, Any] = {
        "job": "a", "policy": "fifo", "service_class": 0, "position": 0, "jobs_before": (), "reason": "it came first",
        "bottleneck_port": None, "bottleneck_seconds_per_iteration": 0.0, "iterations_done": 1.0,
        "iterations_left": 2.0,
    }  # fmt: skip
    return Explanation.model_validate(fields | parts)


@pytest.mark.parametrize(
    ("measured", "said"),
    [
        ({"now": 0.8}, "0.8 iterations/s now"),
        ({"now": 0.8, "alone": 1.1, "best": 1.0}, "0.8 iterations/s now; alone about 1.1 iterations/s"),
        ({"now": 1.09, "alone": 1.1}, "1.1 iterations/s now, as if it were alone"),
        ({"now": 0.05, "best": 0.2}, "3 iterations/min now; its fastest 30 s were at 0.2 iterations/s"),
        ({"now": 0.2, "best": 0.2}, "0.2 iterations/s now"),
        ({"now": 1.0}, "1 iteration/s now"),
    ],
)
def test_a_pace_is_told_with_what_it_is_slow_against(measured: dict[str, float], said: str) -> None:
    answer = explanation(pace=JobPace(seconds=30.0, **measured))
    assert dict(facts(answer))["pace"] == said


def test_a_job_without_two_reports_has_no_pace() -> None:
    assert "pace" not in dict(facts(explanation()))


def test_epochs_are_called_so() -> None:
    said = dict(facts(explanation(unit="epoch", pace=JobPace(now=0.001, seconds=900.0))))
    assert said["epochs"] == "1 done, 2 left"
    assert said["pace"] == "3.6 epochs/h now"
    assert "iterations" not in said
