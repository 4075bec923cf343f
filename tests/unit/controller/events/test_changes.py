"""What becomes an event when a plan, a set of named things or the problems change."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from controller.events.changes import InForce, changed, jobs_of_change, plan_data, problem_data, targets_data
from controller.model import Ordering, Prediction
from controller.planner import Plan

SOON = Prediction("t90", 0.9, 70.0, 60.0, 80.0)
ORDERING = Ordering("jpas", (("a",), ("b",)), {}, predictions={"a": (SOON,)})
PLAN = Plan(5.0, ORDERING, {"a": 0, "b": 1}, frozenset(), 3.0, 2.0, 1, 0)


def test_a_first_plan_is_told_whole() -> None:
    data = plan_data(None, InForce(3, PLAN))
    assert data == {
        "epoch": 3,
        "policy": "jpas",
        "order": (("a",), ("b",)),
        "classes": {"a": 0, "b": 1},
        "moves": 1,
        "objective_seconds": 3.0,
        "lower_bound_seconds": 2.0,
    }


@pytest.mark.parametrize(
    ("epoch", "changes", "is_told"),
    [
        (3, {}, False),
        (3, {"objective_seconds": 4.0, "lower_bound_seconds": 1.0, "made_at": 9.0, "moves": 0}, False),
        (4, {}, True),
        (3, {"classes": {"a": 0, "b": 0}}, True),
        (3, {"ordering": replace(ORDERING, bands=(("b",), ("a",)))}, True),
        (3, {"ordering": replace(ORDERING, policy="las")}, True),
    ],
)
def test_a_plan_is_told_where_somebody_would_see_a_difference(
    epoch: int, changes: dict[str, Any], is_told: bool
) -> None:
    data = plan_data(InForce(3, PLAN), InForce(epoch, replace(PLAN, **changes)))
    assert (data is not None) is is_told


@pytest.mark.parametrize("name", ["objective_seconds", "lower_bound_seconds"])
def test_what_was_not_computed_is_null(name: str) -> None:
    data = plan_data(None, InForce(1, replace(PLAN, **{name: math.nan})))
    assert data is not None and data[name] is None


def test_jobs_change_by_their_class_or_their_predictions() -> None:
    before = InForce(1, PLAN)
    assert jobs_of_change(None, before) == {"a", "b"}
    assert jobs_of_change(before, before) == set()
    assert jobs_of_change(before, InForce(2, replace(PLAN, classes={"a": 0, "c": 1}))) == {"b", "c"}
    later = replace(ORDERING, predictions={"a": (SOON._replace(iteration=75.0),)})
    assert jobs_of_change(before, InForce(1, replace(PLAN, ordering=later))) == {"a"}


def test_predictions_as_data() -> None:
    assert targets_data([SOON]) == {
        "t90": {"metric": 0.9, "iteration": 70.0, "low": 60.0, "high": 80.0, "reached": False}
    }
    (reached,) = targets_data([SOON._replace(is_reached=True)]).values()
    assert reached["reached"]


def test_what_comes_changes_and_goes() -> None:
    assert list(changed({"a": 1, "b": 2, "c": 3}, {"d": 4, "b": 5, "c": 3})) == [("d", 4), ("b", 5), ("a", None)]


def test_a_problem_appears_once_and_goes_once_whatever_its_cause() -> None:
    first, second = "the journal cannot be written: disk full", "the journal cannot be written: read-only"
    assert list(problem_data([], [first])) == [{"problem": first, "state": "appeared"}]
    assert list(problem_data([first], [second])) == []
    assert list(problem_data([second], ["paused"])) == [
        {"problem": "paused", "state": "appeared"},
        {"problem": second, "state": "gone"},
    ]
