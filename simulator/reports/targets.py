"""When a job reached its targets: t90, t95 and JCT, from the trainer's own history. Pure.

The metric closes 90 % (95 %) of the gap between its start (accuracy: 0; loss: its first value) and the median of
the last tenth of the full run. A target is reached at the first report at which the running median of the last
three reports is there (``controller.families.definition``). Where a job declares a target, t90 is the time to that
value instead. A job that never gets there is censored: it has no time, and is counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from controller.families.definition import REPORTS, Direction, converged, crossing, start, target_value

__all__ = [
    "REPORTS",
    "Direction",
    "JobTimes",
    "Point",
    "converged",
    "crossing",
    "job_times",
    "start",
    "target_iteration",
    "target_seconds",
    "target_value",
]

Point = tuple[float, int, float]
"""Seconds since the job's arrival, iterations done, metric."""


@dataclass(frozen=True, slots=True)
class JobTimes:
    """Seconds from a job's arrival to each target and to its end; None where it did not get there (censored)."""

    t90: float | None
    t95: float | None
    jct: float | None

    @property
    def censored(self) -> bool:
        """Whether any of the three is missing."""
        return None in (self.t90, self.t95, self.jct)


def target_iteration(curve: Sequence[float], fraction: float, direction: Direction = "max") -> int | None:
    """The iteration (counted from 1) at which a full run that reports every iteration reaches the target."""
    index = crossing(curve, target_value(curve, fraction, direction), direction)
    return None if index is None else index + 1


def declared_iteration(curve: Sequence[float], target: float, direction: Direction = "max") -> int | None:
    """The iteration (counted from 1) at which a run that reports every iteration reaches a declared value."""
    index = crossing(curve, target, direction)
    return None if index is None else index + 1


def target_seconds(history: Sequence[Point], target: float, direction: Direction = "max") -> float | None:
    """Seconds from arrival to the report that reaches ``target``; None if none does. ``history`` is in order."""
    index = crossing([metric for _, _, metric in history], target, direction)
    return None if index is None else history[index][0]


def job_times(
    history: Sequence[Point],
    curve: Sequence[float],
    jct: float | None,
    direction: Direction = "max",
    *,
    target: float | None = None,
) -> JobTimes:
    """t90, t95 and JCT of a job. ``curve`` is what its full run would show, however far ``history`` got.

    ``target`` is the declared value, to which t90 is the time; None: none is declared.
    """
    done = target_value(curve, 0.90, direction) if target is None else target
    return JobTimes(
        t90=target_seconds(history, done, direction),
        t95=target_seconds(history, target_value(curve, 0.95, direction), direction),
        jct=jct,
    )
