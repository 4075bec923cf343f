"""What a change of a job would do, to the job and to others. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from controller.api.calls.plans import wait_facts
from controller.model import Snapshot, by_id
from controller.ordering.waiting import LongestWait, longest_waits
from controller.pieces import Steps
from controller.planner import Plan
from controller.wire import JobWait, LaterJob, Outcome

Planned = tuple[Plan, Snapshot]
"""A plan, and what it was made of."""
Waits = Mapping[str, LongestWait]
"""Where each job of a plan waits for longest."""
MOST_LATER = 16
"""Name at most this many other jobs that would wait longer."""
_SAME_SECONDS, _SAME_SHARE = 0.05, 0.02
"""A wait is not longer if it is so only by less than these seconds, or this share."""


def outcomes(job_id: str, now: Planned, tried: Iterable[Planned]) -> Steps[tuple[Outcome, ...]]:
    """Returns the place of a job in the plan ``now``, and then in each plan of ``tried``.

    Each says who would wait longer than in the plan ``now``. Yields where others may go on.
    """
    waits_now = yield from longest_waits(now[1], now[0].classes)
    found = [_outcome(job_id, now, waits_now, [])]
    for each in tried:
        waits = yield from longest_waits(each[1], each[0].classes)
        found.append(_outcome(job_id, each, waits, _later(job_id, waits_now, waits)))
        yield
    return tuple(found)


def _outcome(job_id: str, planned: Planned, waits: Waits, later: Sequence[LaterJob]) -> Outcome:
    """Returns the place of a job in a plan. ``later``: who would wait longer."""
    plan, snapshot = planned
    job = by_id(snapshot.jobs)[job_id]
    return Outcome(
        weight=job.weight,
        target=job.target,
        policy=plan.ordering.policy,
        service_class=plan.classes[job_id],
        reason=plan.ordering.reasons[job_id],
        wait=JobWait(**wait_facts(waits[job_id])) if job_id in waits else None,
        later=tuple(later[:MOST_LATER]),
        later_count=len(later),
    )


def _later(job_id: str, now: Waits, tried: Waits) -> list[LaterJob]:
    """Returns the other jobs that wait longer, those with most seconds more first."""
    found = [
        LaterJob(job=name, seconds=wait.seconds, seconds_now=now[name].seconds)
        for name, wait in tried.items()
        if name != job_id and name in now and _is_longer(now[name].seconds, wait.seconds)
    ]
    return sorted(found, key=lambda each: (each.seconds_now - each.seconds, each.job))


def _is_longer(now: float, tried: float) -> bool:
    return tried - now > max(_SAME_SECONDS, _SAME_SHARE * now)
