"""What jobs' histories say, for all jobs of a plan at once, remembered from plan to plan.

A fit moves little from one report to the next, so a history is fitted when it has grown by a twentieth: up to the last
report whose iteration is a power of 1.05 or before. Only where a later report crosses a target are all fitted, at once.
Which reports a fit is made of follows from the history alone, so a controller that was restarted makes the same plan.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from itertools import pairwise

from controller import curves
from controller.memo import Latest
from controller.model import Job, Progress

GROWTH = 1.05
_REMEMBERED = 8192
"""Fits, of two kinds, one of each a job: a few kilobytes each."""

_Source = tuple[Sequence[Progress], object, float | None]

_settled: Latest[tuple[curves.Fit | None]] = Latest(_REMEMBERED)
_crossing: Latest[tuple[curves.Fit | None]] = Latest(_REMEMBERED)


def fits(jobs: Sequence[Job]) -> list[curves.Fit | None]:
    """The fit of each job's history, with ``T90`` and ``T95`` as targets; None with fewer reports than one needs."""
    counts = [_count(job.progress) for job in jobs]
    found = _fitted(_settled, jobs, [job.progress[:count] for job, count in zip(jobs, counts, strict=True)])
    again = [
        i for i, (job, count, fit) in enumerate(zip(jobs, counts, found, strict=True)) if _crosses(job, count, fit)
    ]
    if again:
        some = [jobs[i] for i in again]
        for i, fit in zip(again, _fitted(_crossing, some, [job.progress for job in some]), strict=True):
            found[i] = fit
    return found


def _fitted(
    memory: Latest[tuple[curves.Fit | None]], jobs: Sequence[Job], parts: Sequence[Sequence[Progress]]
) -> list[curves.Fit | None]:
    sources: list[_Source] = [(part, job.metric, job.iterations_total) for job, part in zip(jobs, parts, strict=True)]
    held = [memory.find(job.id, source) for job, source in zip(jobs, sources, strict=True)]
    missing = [i for i, known in enumerate(held) if known is None]
    made = curves.fit_many([curves.History(parts[i], jobs[i].metric, jobs[i].iterations_total) for i in missing])
    for i, fit in zip(missing, made, strict=True):
        memory.keep(jobs[i].id, sources[i], (fit,))
        held[i] = (fit,)
    return [known[0] for known in held if known is not None]


def _count(progress: Sequence[Progress]) -> int:
    """How many of the reports the fit is made of."""
    last = progress[-1].iteration if progress else 0.0
    if not 1.0 < last < math.inf:
        return len(progress)
    limit = GROWTH ** math.floor(math.log(last) / math.log(GROWTH) + 1e-9) * (1 + 1e-9)
    count = bisect_right(progress, limit, key=lambda report: report.iteration)
    return count if count >= curves.MIN_POINTS else len(progress)


def _crosses(job: Job, count: int, fit: curves.Fit | None) -> bool:
    """Whether a running median of three reports, the last of them not in the fit, is at a target not thought passed."""
    if fit is None or count == len(job.progress):
        return False
    sign = 1.0 if job.metric.direction == "max" else -1.0
    values = [sign * p.metric for p in job.progress[max(count - 2, 0) :] if p.metric is not None]
    ahead = [sign * target.metric for target in fit.targets if target.crossed <= 0.5]
    if not ahead or not values or max(values) < min(ahead):
        return False
    medians = [sorted((a, b, c))[1] for (a, b), c in zip(pairwise(values), values[2:], strict=False)]
    return max(medians, default=-math.inf) >= min(ahead)
