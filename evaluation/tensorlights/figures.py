"""What the claim ``tensorlights`` adds up to: each arm beside fair sharing, bounds, and what makes workers wait."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from evaluation.tensorlights import causes, fluid, use
from evaluation.tensorlights.bound import least_mean_jct
from evaluation.tensorlights.groups import ARMS, FAIR, Group
from evaluation.tensorlights.streams.means import Means, means
from evaluation.tensorlights.streams.orders import ONE_QUEUE, orders
from evaluation.tensorlights.workload import PLACEMENTS, placement_key
from simulator.reports.statistics import reduction, reduction_interval
from topologies.lab import comparison
from topologies.lab.results import ArmResult, JobResult, LabResult

Results = Sequence[tuple[Group, LabResult]]


@dataclass(frozen=True, slots=True)
class Run:
    """One arm, and the group that it belongs to."""

    group: Group
    arm: ArmResult


def add_up(results: Results) -> dict[str, Any]:
    """Returns the number of arms, the least idle share of the processors in any, the placements, and the variants."""
    arms = [arm for _, result in results for arm in result.arms]
    claimed = [pair for pair in results if not pair[0].variant.name]
    variants = {group.variant.name: None for group, _ in results if group.variant.name}
    return {
        "arms": len(arms),
        "least_cpu_idle_share": min(arm.cpu_idle_share for arm in arms),
        "placements": {
            placement_key(placement): _figures(chosen)
            for placement in PLACEMENTS
            if (chosen := [pair for pair in claimed if pair[0].placement == placement])
        },
        "why": {name: _figures([pair for pair in results if pair[0].variant.name == name]) for name in variants},
    }


def _figures(results: Results) -> dict[str, Any]:
    """Returns the figures of one placement or variant: arms over their seeds, beside fair sharing on the same jobs."""
    runs: dict[str, list[Run]] = {}
    for group, result in results:
        for arm in result.arms:
            runs.setdefault(arm.policy, []).append(Run(group, arm))
    fair = runs[FAIR.name]
    return {
        "servers": list(fair[0].group.placement),
        "bound": _bound(fair),
        "fluid": _fluid(fair),
        "streams": _streams(fair),
        "arms": {choice.name: _arm(fair, runs[choice.name]) for choice in ARMS if choice.name in runs},
    }


def _bound(fair: Sequence[Run]) -> dict[str, float]:
    """Returns the least mean completion time of any order, and how much less that is than fair sharing's."""
    least = [least_mean_jct(run.group.experiment()) for run in fair]
    return {"jct": fmean(least), "reduction": reduction([_mean_jct(run.arm) for run in fair], least)}


def _fluid(fair: Sequence[Run]) -> dict[str, dict[str, float]] | None:
    """Returns the simulated mean completion times, and how much less they are than simulated fair sharing's.

    None: workers share processors, which the simulator has not.
    """
    jobs = [run.group.experiment() for run in fair]
    if any(experiment.processors is not None for experiment in jobs):
        return None
    simulated = {arm: [fluid.mean_jct(experiment, arm) for experiment in jobs] for arm in fluid.POLICIES}
    before = simulated[FAIR.name]
    return {arm: {"jct": fmean(values), "reduction": reduction(before, values)} for arm, values in simulated.items()}


def _streams(fair: Sequence[Run]) -> dict[str, dict[str, float]] | None:
    """Returns simulated completion times and waits, with a stream for each connection, by the order at the NIC.

    ``reduction`` is of the completion time, against one queue. None: workers share processors, which is not simulated.
    """
    jobs = [run.group.experiment() for run in fair]
    if any(experiment.processors is not None for experiment in jobs):
        return None
    simulated = [
        {name: means(experiment, order) for name, order in orders(experiment.seed).items()} for experiment in jobs
    ]
    before = [seed[ONE_QUEUE].jct for seed in simulated]
    return {
        name: {
            **{field: fmean(getattr(seed[name], field) for seed in simulated) for field in Means._fields},
            "reduction": reduction(before, [seed[name].jct for seed in simulated]),
        }
        for name in simulated[0]
    }


def _arm(fair: Sequence[Run], subject: Sequence[Run]) -> dict[str, Any]:
    arms = [run.arm for run in subject]
    return {
        "seeds": [run.group.seed for run in subject],
        "jobs": sum(len(arm.jobs) for arm in arms),
        "censored": sum(len(comparison.censored(arm)) for arm in arms),
        "jct": _beside(fair, subject, _mean_jct),
        "makespan": _beside(fair, subject, _makespan),
        "barrier_wait": _beside(fair, subject, _of_jobs(causes.worker_wait)),
        "barrier_variance": _beside(fair, subject, _of_jobs(causes.worker_variance)),
        "server_wait": _beside(fair, subject, _of_jobs(causes.server_wait)),
        "server_variance": _beside(fair, subject, _of_jobs(causes.server_variance)),
        "causes": causes.means([job for arm in arms for job in arm.jobs.values()]),
        "bands": causes.by_band([(run.group.experiment(), run.arm) for run in subject]),
        "cpu_busy_share": fmean(1.0 - arm.cpu_idle_share for arm in arms),
        "cpu_variance": fmean(arm.cpu_variance for arm in arms),
        "computing_share": use.computing_share([(run.group.experiment(), run.arm) for run in subject]),
        "links": use.links([(run.group.experiment(), run.arm) for run in subject]),
        "tcp": use.tcp(arms),
    }


def _beside(
    fair: Sequence[Run], subject: Sequence[Run], measure: Callable[[ArmResult], float | None]
) -> dict[str, Any] | None:
    """Returns a measure by seed, its mean, and how much less that is than under fair sharing; None: not measured."""
    pairs = []
    for baseline, run in zip(fair, subject, strict=True):
        before, after = measure(baseline.arm), measure(run.arm)
        if before is None or after is None:
            return None
        pairs.append((before, after))
    befores, afters = zip(*pairs, strict=True)
    compared = any(befores)
    return {
        "mean": fmean(afters),
        "by_seed": list(afters),
        "reduction": reduction(befores, afters) if compared else None,
        "reduction_ci95": list(reduction_interval(befores, afters)) if compared else [math.nan, math.nan],
    }


def _mean_jct(arm: ArmResult) -> float:
    return comparison.mean(arm, "jct_seconds")


def _makespan(arm: ArmResult) -> float:
    """Returns the seconds of the longest job; all are launched within LAUNCH_SECONDS."""
    return max(comparison.values(arm, "jct_seconds"))


def _of_jobs(measure: Callable[[JobResult], float | None]) -> Callable[[ArmResult], float | None]:
    """Returns the mean of a measure over the jobs of an arm; None where one job has none."""

    def mean(arm: ArmResult) -> float | None:
        return causes.mean_of(map(measure, arm.jobs.values()))

    return mean
