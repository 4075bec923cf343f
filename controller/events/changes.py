"""From what was before and what is now to the data of events. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from controller.model import Prediction
from controller.planner import Plan

V = TypeVar("V")


class InForce(NamedTuple):
    """A plan in force, and its number."""

    epoch: int
    plan: Plan


def plan_data(before: InForce | None, after: InForce) -> dict[str, Any] | None:
    """Returns the data of the event ``plan``; None where nobody would see a difference.

    The objective and its lower bound change with each report, and are no difference by themselves.
    """
    if before is not None and _shown(before) == _shown(after):
        return None
    plan = after.plan
    return {
        "epoch": after.epoch,
        "policy": plan.ordering.policy,
        "order": plan.ordering.bands,
        "classes": plan.classes,
        "moves": plan.moves,
        "objective_seconds": _finite(plan.objective_seconds),
        "lower_bound_seconds": _finite(plan.lower_bound_seconds),
    }


def _shown(state: InForce) -> tuple[object, ...]:
    return state.epoch, state.plan.ordering.policy, state.plan.ordering.bands, state.plan.classes


def jobs_of_change(before: InForce | None, after: InForce) -> set[str]:
    """Returns the jobs whose class or predicted targets another plan has changed."""
    old, new = _by_job(before), _by_job(after)
    return {
        job
        for was, now in zip(old, new, strict=True)
        for job in was.keys() | now.keys()
        if was.get(job) != now.get(job)
    }


def _by_job(state: InForce | None) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    return ({}, {}) if state is None else (state.plan.classes, state.plan.ordering.predictions)


def targets_data(predictions: Iterable[Prediction]) -> dict[str, Any]:
    """Returns predicted targets by name, as events and histories have them."""
    return {
        each.target: {
            "metric": _finite(each.metric),
            "iteration": _finite(each.iteration),
            "low": _finite(each.low),
            "high": _finite(each.high),
            "reached": each.is_reached,
        }
        for each in predictions
    }


def _finite(number: float) -> float | None:
    """Returns the number; None where JSON has none such."""
    return number if math.isfinite(number) else None


def changed(before: Mapping[str, V], after: Mapping[str, V]) -> Iterator[tuple[str, V | None]]:
    """Yields the names whose values differ, with the new value, in the order of ``after``; None for those that went."""
    for name, value in after.items():
        if name not in before or before[name] != value:
            yield name, value
    for name in before:
        if name not in after:
            yield name, None


def problem_data(before: Sequence[str], after: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yields the data of the events ``problem``: one for each problem that is new, or gone.

    A problem is its sentence up to a colon. What follows is the cause, which may change while the problem stays.
    """
    old, new = _by_head(before), _by_head(after)
    yield from ({"problem": new[head], "state": "appeared"} for head in new if head not in old)
    yield from ({"problem": old[head], "state": "gone"} for head in old if head not in new)


def _by_head(problems: Sequence[str]) -> dict[str, str]:
    return {problem.partition(": ")[0]: problem for problem in problems}
