"""Ageing: every W periods the job that has waited longest holds the first class for one period.

[ours] With n jobs that have demand, each holds the first class at least once in n W periods: each turn ends the longest
wait, so at most n - 1 other jobs come before. The other jobs lose at most 1/W of the time. The turn and the waits are
kept in an ordering's memory, so the rule has no state of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from controller.model import Job

_TURN = "ageing:turn"
_HELD = "ageing:held:"
_GUEST = "ageing:guest:"


@dataclass(frozen=True, slots=True)
class Aged:
    """The order after ageing, the job that was promoted (None: no job), and the memory for the next plan."""

    order: tuple[str, ...]
    promoted: str | None
    waited_seconds: float
    memory: Mapping[str, float]


def promoted(memory: Mapping[str, float]) -> str | None:
    """Returns the job that held the first class by ageing, and not by the policy's order; None where there was none."""
    return next((key.removeprefix(_GUEST) for key in memory if key.startswith(_GUEST)), None)


def age(
    order: Sequence[str],
    jobs: Mapping[str, Job],
    memory: Mapping[str, float],
    *,
    now: float,
    period: float,
    periods: int,
) -> Aged:
    """Applies the rule to ``order`` (job ids, first served first); ``periods`` is W >= 1, ``period`` is in seconds."""
    held = {job: memory.get(_HELD + job, jobs[job].arrival) for job in order}
    turn = memory.get(_TURN, now)
    guest = next((job for job in order if _GUEST + job in memory), None)
    until = memory.get(_GUEST + guest, 0.0) if guest is not None else 0.0
    # The slack allows for a clock that is a few milliseconds off.
    slack = period / 4
    if guest is not None and now >= until - slack:
        guest = None
    # The policy's first job waits too, because it may have lost the first class at every turn so far.
    waiting = [job for job in order if jobs[job].demand]
    if guest is None and waiting and now >= turn + periods * period - slack:
        # Of equal waits, the job that the policy puts last goes first.
        guest, until, turn = min(reversed(waiting), key=held.__getitem__), now + period, now
    waited = max(now - held[guest], 0.0) if guest is not None else 0.0
    aged = (guest, *(job for job in order if job != guest)) if guest is not None else tuple(order)
    if aged:
        held[aged[0]] = now
    remembered = {_TURN: turn, **{_HELD + job: since for job, since in held.items()}}
    if guest is not None:
        remembered[_GUEST + guest] = until
    return Aged(order=aged, promoted=guest, waited_seconds=waited, memory=remembered)
