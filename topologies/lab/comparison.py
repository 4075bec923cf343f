"""Compares two policies on the same jobs. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from statistics import fmean
from typing import Literal

from topologies.lab.results import ArmResult, JobResult

Measure = Literal["t90_seconds", "t95_seconds", "jct_seconds"]
MEASURES: tuple[Measure, ...] = ("t90_seconds", "t95_seconds", "jct_seconds")

_SOONER: Mapping[Measure, str] = {
    "t90_seconds": "brings {} to 90 % of their converged accuracy",
    "t95_seconds": "brings {} to 95 % of their converged accuracy",
    "jct_seconds": "brings {} to their end",
}


def short(measure: Measure) -> str:
    """Return a measure's name without its unit."""
    return measure.removesuffix("_seconds")


def sooner(policy: str, jobs: str, measure: Measure) -> str:
    """Return the claim that a policy's mean of a measure is less than fair sharing's."""
    return f"{policy} {_SOONER[measure].format(jobs)} sooner than fair sharing"


def value(job: JobResult, measure: Measure) -> float | None:
    """Return one measure of one job, in seconds; None where the job did not reach it."""
    return {"t90_seconds": job.t90_seconds, "t95_seconds": job.t95_seconds, "jct_seconds": job.jct_seconds}[measure]


def values(arm: ArmResult, measure: Measure) -> list[float]:
    """Return one measure of every job of an arm, in the order of the jobs.

    A job that did not reach it counts for as long as it was observed, the least that it would have taken. If it were
    left out, a policy would gain by starving it.
    """
    known = ((value(job, measure), job.watched_seconds) for job in arm.jobs.values())
    return [watched if seconds is None else seconds for seconds, watched in known]


def mean(arm: ArmResult, measure: Measure) -> float:
    """Return the mean of one measure over all jobs, see ``values``."""
    return fmean(values(arm, measure))


def censored(arm: ArmResult) -> list[str]:
    """Return the jobs of an arm that missed a target or their end."""
    return [job for job, result in arm.jobs.items() if result.censored]


def policy_summary(arm: ArmResult) -> dict[str, object]:
    """Return an arm as a summary shows it: its means, and every job."""
    return {
        **{f"mean_{measure}": mean(arm, measure) for measure in MEASURES},
        "censored": censored(arm),
        "jobs": {
            job: {measure: value(result, measure) for measure in MEASURES} | {"censored": result.censored}
            for job, result in arm.jobs.items()
        },
    }


def alone_times(
    per_iteration: Mapping[str, float], target: Callable[[str, float], int | None], iterations: Mapping[str, int]
) -> dict[str, dict[Measure, float]]:
    """Return each job's times alone: seconds of an iteration times the iterations to each target and to the end.

    ``target(job, fraction)`` is the iteration at which the job's curve reaches a share of convergence.
    """
    times: dict[str, dict[Measure, float]] = {}
    for job, seconds in per_iteration.items():
        t90, t95 = target(job, 0.9), target(job, 0.95)
        if t90 is not None and t95 is not None:
            times[job] = {
                "t90_seconds": t90 * seconds,
                "t95_seconds": t95 * seconds,
                "jct_seconds": iterations[job] * seconds,
            }
    return times
