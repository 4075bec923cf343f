"""What the claim takes from a study whose records are finished. Pure.

It was written before the first run of the claim. The default of a transport is the arm, of those that go over it and
let only the layers be late that need it, which saves the most of the best plain schemes' time there, on the tuning
seeds, in the mean over tasks. The best plain scheme is of those that go over it, too: over all-reduce ``bsp+overlap``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from evaluation.sasp.study import report
from evaluation.sasp.study.arms import ARMS, PLAIN_ARMS, Transport, going_over
from evaluation.sasp.study.plan import BASELINE
from evaluation.sasp.study.report import Row


def candidates_for(transport: Transport) -> tuple[str, ...]:
    """Return the arms of which one becomes the default of a transport."""
    return tuple(name for name in going_over(transport) if ARMS[name].layers == "needed")


def wanted_of(transport: Transport) -> tuple[str, ...]:
    """Return the arms of which the claim takes rates: all over a server, what can become the default elsewhere."""
    if transport == "server":
        return going_over(transport)
    return (BASELINE, *candidates_for(transport))


def default_of(tuned: Sequence[Row], transport: Transport) -> str:
    """Return the default of a transport, from the rows of the tuning seeds."""
    candidates = candidates_for(transport)
    plain = going_over(transport, PLAIN_ARMS)
    saved = report.saved_over_tasks([one for one in tuned if one.arm in (*candidates, *plain)], plain)
    return max(candidates, key=lambda arm: saved[arm].share)


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
