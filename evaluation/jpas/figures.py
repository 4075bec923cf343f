"""What is made of the arms of the claim ``jpas``: the rule, fixed before the first of them ran. Pure.

Per workload and load, over its seeds: a seed's figure is the mean over its jobs; a job that did not get to a target
counts for as long as it was observed. The figures of an arm are paired with those of other arms of the same seed:

- ``reduction``: 1 - arm / fair sharing, of the means over seeds, for t90, t95 and JCT. t90 is always the time to 90 %
  of the job's own gap, whatever the job declares.
- ``headroom_won``: the same of what the jobs take longer than alone on the network.
- ``of_everything``: (fair - arm) / (fair - everything) of t90, where an arm knew everything.
- ``saved_against_none``: 1 - arm / none of t90, where an arm knew nothing. It was added after the runs.

Intervals are of 95 %, over seeds, by Student's t of the ratio of means (``statistics.reduction_interval``).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any, NamedTuple

from evaluation.jpas.arms import FAIR, Group
from evaluation.jpas.stream import count_earlier_runs
from simulator.reports.statistics import reduction, reduction_interval
from simulator.reports.targets import target_iteration
from topologies.experiments.experiment import Experiment
from topologies.lab import comparison
from topologies.lab.comparison import MEASURES, Measure
from topologies.lab.results import ArmResult, LabResult

Result = tuple[Group, LabResult]


class Times(NamedTuple):
    """Means over the jobs of one seed, in seconds: under fair sharing, in the arm, and alone (NaN: not measured)."""

    fair: float
    arm: float
    alone: float


@dataclass(frozen=True, slots=True)
class Run:
    """A group that was measured, with its arms, and means over its jobs of their times alone (NaN: not measured)."""

    group: Group
    arms: Mapping[str, ArmResult]
    alone: Mapping[Measure, float]

    @classmethod
    def of(cls, group: Group, result: LabResult) -> Run:
        """Returns the run of a result."""
        return cls(group, {arm.policy: arm for arm in result.arms}, _alone_means(group, result))


def add_up(results: Sequence[Result]) -> dict[str, Any]:
    """Returns the fields of the summary: by workload, by load and by arm."""
    runs = [Run.of(group, result) for group, result in results]
    workloads: dict[str, Any] = {}
    for run in runs:
        workloads.setdefault(run.group.workload, {}).setdefault(run.group.load.name, []).append(run)
    return {
        "arms": sum(len(run.arms) for run in runs),
        "least_cpu_idle_share": min(arm.cpu_idle_share for run in runs for arm in run.arms.values()),
        "workloads": {
            name: {load: _load(of_load) for load, of_load in by_load.items()} for name, by_load in workloads.items()
        },
    }


def _load(runs: Sequence[Run]) -> dict[str, Any]:
    names = dict.fromkeys(name for run in runs for name in (FAIR, *run.group.knows))
    fields: dict[str, Any] = {name: _arm(name, [run for run in runs if name in run.arms]) for name in names}
    if "family" in names:
        fields["by_earlier_runs"] = by_earlier_runs(runs)
    return fields


def _arm(name: str, runs: Sequence[Run]) -> dict[str, Any]:
    """Returns the figures of one arm over the seeds that ran it; its partner in each is fair sharing."""
    arms = [run.arms[name] for run in runs]
    fields: dict[str, Any] = {
        "seeds": [run.group.seed for run in runs],
        "censored": sum(len(comparison.censored(arm)) for arm in arms),
        "jobs": sum(len(arm.jobs) for arm in arms),
    }
    for measure in MEASURES:
        fair, subject = ([comparison.mean(run.arms[arm], measure) for run in runs] for arm in (FAIR, name))
        alone = [run.alone[measure] for run in runs]
        fields[comparison.short(measure)] = _measure(list(map(Times, fair, subject, alone)))
    if all("everything" in run.arms for run in runs):
        fields["of_everything"] = _of_everything(name, runs)
    if all("none" in run.arms for run in runs):
        fields["saved_against_none"] = _saved_against_none(name, runs)
    return fields


def _measure(seeds: Sequence[Times]) -> dict[str, Any]:
    """Returns the figures of one measure of one arm."""
    fair, subject = [times.fair for times in seeds], [times.arm for times in seeds]
    alone = [times.alone for times in seeds]
    # The headroom, and what of it is left.
    whole, rest = [times.fair - times.alone for times in seeds], [times.arm - times.alone for times in seeds]
    known = not any(map(math.isnan, alone))
    return {
        "mean": fmean(subject),
        "fair": fmean(fair),
        "alone": fmean(alone) if known else None,
        "by_seed": subject,
        "reduction": reduction(fair, subject),
        "reduction_ci95": list(reduction_interval(fair, subject)),
        "headroom_won": reduction(whole, rest) if known else None,
        "headroom_won_ci95": list(reduction_interval(whole, rest)) if known else None,
    }


def _of_everything(name: str, runs: Sequence[Run]) -> dict[str, Any]:
    """Returns an arm's gain in t90 as a share of the gain of the arm that knew everything."""
    fair, subject, best = (
        [comparison.mean(run.arms[arm], "t90_seconds") for run in runs] for arm in (FAIR, name, "everything")
    )
    whole = [f - b for f, b in zip(fair, best, strict=True)]
    rest = [s - b for s, b in zip(subject, best, strict=True)]
    return {"share": reduction(whole, rest), "ci95": list(reduction_interval(whole, rest))}


def _saved_against_none(name: str, runs: Sequence[Run]) -> dict[str, Any]:
    """Returns what an arm saves of t90 against the arm that knew nothing."""
    none, subject = ([comparison.mean(run.arms[arm], "t90_seconds") for run in runs] for arm in ("none", name))
    return {"share": reduction(none, subject), "ci95": list(reduction_interval(none, subject))}


BUCKETS = {"none": range(1), "1": range(1, 2), "2 to 4": range(2, 5), "5 and more": range(5, 1000)}
"""Jobs by the number of earlier runs of their family that count when they arrive."""


def by_earlier_runs(runs: Iterable[Run]) -> dict[str, Any]:
    """Returns, by the number of earlier runs, the mean t90 of the jobs under fair sharing, none, family and both.

    Of a job's own wave no run counts, since none had ended when the wave began.
    """
    rows: dict[str, list[tuple[float, ...]]] = {bucket: [] for bucket in BUCKETS}
    names = (FAIR, "none", "family", "both")
    for run in runs:
        assert run.group.wave is not None, "only jobs of the stream have families"
        counted = count_earlier_runs(run.group.wave)
        seconds = [_by_job(run.arms[name]) for name in names]
        for job, count in counted.items():
            bucket = next(name for name, counts in BUCKETS.items() if count in counts)
            rows[bucket].append(tuple(arm[job] for arm in seconds))
    return {
        bucket: {"jobs": len(jobs)} | dict(zip(names, map(fmean, zip(*jobs, strict=True)), strict=True))
        for bucket, jobs in rows.items()
        if jobs
    }


def _by_job(arm: ArmResult) -> dict[str, float]:
    """Returns the seconds to 90 % of each job of an arm."""
    return dict(zip(arm.jobs, comparison.values(arm, "t90_seconds"), strict=True))


def _alone_means(group: Group, result: LabResult) -> dict[Measure, float]:
    """Returns the means over jobs of what they would take with the network to themselves (NaN: not measured)."""
    if not result.alone_seconds:
        return dict.fromkeys(MEASURES, math.nan)
    (per_iteration,) = result.alone_seconds.values()
    times = alone(group.experiment, per_iteration).values()
    return {measure: fmean(job[measure] for job in times) for measure in MEASURES}


def alone(experiment: Experiment, per_iteration: Mapping[str, float]) -> dict[str, dict[Measure, float]]:
    """Returns what each job of an experiment would take with the network to itself, in seconds."""
    run = {job.id: job.metrics for job in experiment.jobs}
    return comparison.alone_times(
        per_iteration,
        lambda job, fraction: target_iteration(run[job], fraction),
        {job.id: job.iterations for job in experiment.jobs},
    )
