"""What another weight, target or policy would do for a job, as names and values. Pure.

``controller/console/js/pages/job/outcomes.js`` says the same.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from controller.quantities import duration

if TYPE_CHECKING:
    from controller.wire import Explanation, JobWait, Outcome

_NAMED = 3
"""Name at most this many other jobs that would wait longer; --json has more."""
_SAME_SECONDS, _SAME_SHARE = 0.05, 0.02
"""A wait is another one if it differs by more than these seconds and this share."""


def tries(answer: Explanation, asked: Collection[str]) -> Iterator[tuple[str, str]]:
    """Yields the place of the job as it is, and with each change that was tried. ``asked``: what the query named.

    An earlier controller has no outcomes; then nothing is yielded.
    """
    if len(answer.outcomes) < 2:
        return
    now, *tried = answer.outcomes
    yield "plan", _plan(answer)
    yield "as it is", f"weight {now.weight:g}: it waits {_wait(now)}{_served(now)}"
    for each in tried:
        yield "with", f"{_change(now, each)}: {_verdict(now, each)}{_served(each, now)} {_later(each)}"
    yield "times", "the most that the network can need; computing comes in addition, and new jobs change them"
    yield from (("to do", text) for text in _to_do(answer.job, now, tried, asked))


def _plan(answer: Explanation) -> str:
    """Returns which plan the tries are compared with. A tenant does not see its number."""
    number = "the one in force" if answer.epoch is None else f"{answer.epoch}"
    if answer.planned_at is None:
        return number
    return f"{number}, made at {datetime.fromtimestamp(answer.planned_at).astimezone():%H:%M:%S}"


def _change(now: Outcome, tried: Outcome) -> str:
    """Returns what differs from the job as it is."""
    changes = [f"weight {tried.weight:g}"] if tried.weight != now.weight else []
    changes += [f"target {tried.target:.4g}"] if tried.target is not None and tried.target != now.target else []
    changes += [f"policy {tried.policy}"] if tried.policy != now.policy else []
    return ", ".join(changes) or "no change"


def _verdict(now: Outcome, tried: Outcome) -> str:
    before, after = _seconds(now), _seconds(tried)
    if abs(after - before) <= max(_SAME_SECONDS, _SAME_SHARE * before):
        return f"no difference: it waits {_wait(tried)}"
    less = "less" if after < before else "longer"
    return f"it would wait {less}, {duration(before)} -> {_wait(tried)}"


def _seconds(outcome: Outcome) -> float:
    """Returns how long a job waits at most, for those before it and for those that share with it."""
    return outcome.wait.seconds_before + outcome.wait.seconds_beside if outcome.wait is not None else 0.0


def _wait(outcome: Outcome) -> str:
    """Returns how long a job waits, and why."""
    return f"{duration(_seconds(outcome))} at most: {_place(outcome.wait)}."


def _place(wait: JobWait | None) -> str:
    """Returns where a job waits, for how many jobs, and with how many it shares the port."""
    if wait is None:
        return "it has no known traffic"
    others = _count(wait.alike_count, "job", "jobs")
    if wait.before_count == 0:
        return f"it shares {wait.port} with {others}" if wait.alike_count else "nobody is before it or beside it"
    jobs = _count(wait.before_count, "job goes", "jobs go")
    return f"{jobs} before it at {wait.port}{f', and it shares the port with {others}' if wait.alike_count else ''}"


def _served(outcome: Outcome, now: Outcome | None = None) -> str:
    """Returns when the network has served all that is left of a job, and in how long it would as it is ``now``."""
    if outcome.wait is None:
        return ""
    before = f"{duration(now.wait.seconds_until_served)} -> " if now is not None and now.wait is not None else ""
    return f" Served after {before}{duration(outcome.wait.seconds_until_served)} at most."


def _later(outcome: Outcome) -> str:
    """Returns who would wait longer."""
    if outcome.later_count == 0:
        return "No other job would wait longer."
    shown = outcome.later[:_NAMED]
    named = [f"{job.job} ({duration(job.seconds_now)} -> {duration(job.seconds)})" for job in shown]
    more = outcome.later_count - len(shown)
    return f"Longer would wait: {', '.join(named)}{f' and {more} more' if more else ''}."


def _to_do(job: str, now: Outcome, tried: Sequence[Outcome], asked: Collection[str]) -> Iterator[str]:
    """Yields how to put a change in force."""
    declared = [name for name in ("weight", "target") if {name, f"{name}s"} & set(asked)]
    if declared:
        named = " and ".join(f"{name}: ..." for name in declared)
        yield (
            f"write {named} into the job's file, in /etc/trainyard/jobs.d of one of its hosts; or send the spec of "
            f"GET /v1/jobs/{job} with it by PUT /v1/jobs/{job}. The job goes on, and keeps its progress"
        )
    if any(each.policy != now.policy for each in tried):
        yield "set the policy for all jobs with PATCH /v1/settings: it changes the place of every job"


def _count(number: int, one: str, more: str) -> str:
    return f"{number} {one if number == 1 else more}"
