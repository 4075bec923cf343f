"""From runs to numbers: each measure over all seeds, with intervals, and each policy beside a baseline. Pure.

With several seeds percentiles are over the coflows, jobs or stages of all, and a mean is the mean of the seeds'. An
interval is of the mean over seeds (Student's t), so it needs at least two. Of a trace there is but one run: what a
policy saves there has the spread over its coflows, resampled in pairs, which says nothing of other traces.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from simulator.reports.measures import Array, Measures
from simulator.reports.statistics import mean_interval, reduction, reduction_interval_over_jobs

Interval = tuple[float, float] | None


@dataclass(frozen=True, slots=True)
class Summary:
    """A measure. ``censored`` counts those that never got there; they have no value. ``interval`` is of the mean."""

    count: int
    mean: float | None
    p50: float | None
    p95: float | None
    p99: float | None
    interval: Interval
    censored: int = 0


@dataclass(frozen=True, slots=True)
class Versus:
    """1 - mean / baseline's mean, averaged over seeds in pairs, and its interval over ``over``."""

    reduction: float
    interval: Interval
    over: Literal["seeds", "coflows"] = "seeds"


def _known(values: Mapping[str, float | None]) -> Array:
    return np.array([value for value in values.values() if value is not None])


MEASURES: Mapping[str, Callable[[Measures], Array]] = {
    "cct_seconds": lambda m: m.ccts,
    "jct_seconds": lambda m: _known(m.jct),
    "sct_seconds": lambda m: _known(m.sct),
    "t90_seconds": lambda m: _known(m.t90),
    "t95_seconds": lambda m: _known(m.t95),
    "iteration_seconds": lambda m: m.iteration_seconds,
    "slowdown": lambda m: _known(m.slowdown),
    "link_use": lambda m: m.link_use,
}
TITLES = {
    "cct_seconds": "CCT (s)",
    "jct_seconds": "JCT (s)",
    "sct_seconds": "SCT (s)",
    "t90_seconds": "t90 (s)",
    "t95_seconds": "t95 (s)",
    "iteration_seconds": "iteration (s)",
    "slowdown": "slowdown",
    "link_use": "link use",
}
_BY_JOB: Mapping[str, Callable[[Measures], Mapping[str, float | None]]] = {
    "t90_seconds": lambda m: m.t90,
    "t95_seconds": lambda m: m.t95,
}
COMPARED = ("cct_seconds", "jct_seconds", "sct_seconds", "t90_seconds", "t95_seconds")


def summarise(runs: Sequence[Measures]) -> dict[str, Summary]:
    """Every measure that applies, over the runs of one policy (one a seed)."""
    summaries: dict[str, Summary] = {}
    for name, values_of in MEASURES.items():
        parts = [values_of(run) for run in runs]
        values = np.concatenate(parts) if parts else np.zeros(0)
        censored = sum(value is None for run in runs for value in _BY_JOB[name](run).values()) if name in _BY_JOB else 0
        if len(values) or censored:
            summaries[name] = _summary(values, [part for part in parts if len(part)], censored)
    return summaries


def versus(baseline: Sequence[Measures], subject: Sequence[Measures]) -> dict[str, Versus]:
    """How much less of each measure a policy needs than the baseline on the same seeds, in the same order.

    A target counts for the jobs that reached it under both.
    """
    comparisons: dict[str, Versus] = {}
    for name in COMPARED:
        shares = []
        for baseline_run, subject_run in zip(baseline, subject, strict=True):
            before, after = _paired(name, baseline_run, subject_run)
            if len(before) and len(after) and before.mean() > 0:
                shares.append(reduction(before.tolist(), after.tolist()))
        if shares:
            comparisons[name] = Versus(float(np.mean(shares)), interval(shares))
    if len(subject) == 1 and is_trace(subject[0]) and "cct_seconds" in comparisons:
        ccts = [(baseline[0].cct[coflow], cct) for coflow, cct in subject[0].cct.items()]
        low, high = reduction_interval_over_jobs(*zip(*ccts, strict=True))
        bounds = None if math.isnan(low) else (low, high)
        comparisons["cct_seconds"] = replace(comparisons["cct_seconds"], interval=bounds, over="coflows")
    return comparisons


def is_trace(run: Measures) -> bool:
    """Whether it was a coflow trace, which has no jobs beside its coflows."""
    return bool(run.cct) and not run.jct


def interval(values: Sequence[float]) -> Interval:
    """The 95 % interval of a mean; None with fewer than two values."""
    low, high = mean_interval(values)
    return None if math.isnan(low) else (low, high)


def _paired(name: str, baseline_run: Measures, subject_run: Measures) -> tuple[Array, Array]:
    if name not in _BY_JOB:
        return MEASURES[name](baseline_run), MEASURES[name](subject_run)
    first, second = _BY_JOB[name](baseline_run), _BY_JOB[name](subject_run)
    common = [job for job, value in first.items() if value is not None and second.get(job) is not None]
    return _known({job: first[job] for job in common}), _known({job: second[job] for job in common})


def _summary(values: Array, parts: Sequence[Array], censored: int) -> Summary:
    if not len(values):
        return Summary(0, None, None, None, None, None, censored)
    p50, p95, p99 = (float(value) for value in np.percentile(values, (50, 95, 99)))
    means = [float(part.mean()) for part in parts]
    # The interval is of the mean over seeds, so the mean is that, too.
    return Summary(len(values), float(np.mean(means)), p50, p95, p99, interval(means), censored)
