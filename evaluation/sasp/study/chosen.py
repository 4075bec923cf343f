"""What the claim takes from a study whose records are finished. Pure.

It was written before the first run of the claim. The best plain scheme of a task is the arm of ``PLAIN_ARMS`` that has
the target soonest on the tuning seeds; over all-reduce it is ``bsp+overlap``. The default of a transport is the arm, of
those that go over it and let only the layers be late that need it, which saves the most of the best plain schemes' time
there, in the mean over tasks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from evaluation.sasp.study import report
from evaluation.sasp.study.arms import ARMS, PLAIN_ARMS, Transport
from evaluation.sasp.study.report import Row


def default_of(tuned: Sequence[Row], transport: Transport) -> str:
    """Return the default of a transport, from the rows of the tuning seeds."""
    going = {name: arm for name, arm in ARMS.items() if transport in arm.transports}
    candidates = [name for name, arm in going.items() if arm.layers == "needed"]
    plain = tuple(name for name in PLAIN_ARMS if name in going)
    saved = report.saved_over_tasks([one for one in tuned if one.arm in (*candidates, *plain)], plain)
    return max(candidates, key=lambda arm: saved[arm].share)


def best_plain_of(tuned: Sequence[Row], task: str) -> str:
    """Return the best plain scheme of a task, from the rows of the tuning seeds."""
    return min((one for one in tuned if one.task == task and one.arm in PLAIN_ARMS), key=lambda one: one.seconds).arm


def arms_of(tuned: Sequence[Row], compared: Sequence[Row], task: str) -> Mapping[str, Any]:
    """Return each arm of a task as it was tuned, and as it was compared, if it was."""
    others = {one.arm: one for one in compared if one.task == task}
    return {
        one.arm: {
            "rate": one.rate,
            "strength": one.strength,
            "iterations": one.iterations,
            "iteration_seconds": one.iteration_seconds,
            "compared": _compared(others.get(one.arm)),
        }
        for one in tuned
        if one.task == task
    }


def _compared(row: Row | None) -> Mapping[str, float] | None:
    return {"iterations": row.iterations, "last": row.last} if row is not None and row.ends else None
