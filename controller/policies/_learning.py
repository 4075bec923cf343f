"""What jobs' histories say, for all jobs of a plan at once, remembered from plan to plan.

A fit moves little from one report to the next, so a history is fitted when it has grown by a twentieth: up to the last
report whose iteration is a power of 1.05 or before. Only where a later report crosses a target are all fitted, at once.
Which reports a fit is made of follows from the history alone, so a controller that was restarted makes the same plan.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np

from controller import curves
from controller.memo import Latest
from controller.model import Job, Metric, Progress

GROWTH = 1.05
_LOG_GROWTH = math.log(GROWTH)
_REMEMBERED = 8192
"""Histories, one a job, each with two fits: some ten kilobytes each."""


class _Made(NamedTuple):
    """A fit, what it was made of (so many reports, a metric, the iterations of the run), and the nearest target.

    ``ahead`` is the metric of the nearest target that is not thought passed, turned so that it rises; inf: none is.
    """

    points: int
    metric: Metric
    total: float | None
    fit: curves.Fit | None
    ahead: float

    def stands_for(self, job: Job, count: int) -> bool:
        """Whether the fit of so many reports of the job, of the history that this was made of, is this one."""
        return self[:3] == (count, job.metric, job.iterations_total)


class _Known(NamedTuple):
    """A job's history as numbers, and the latest fit of each kind that was made of its reports so far."""

    progress: tuple[Progress, ...]
    reports: curves.Reports
    settled: _Made | None = None
    crossing: _Made | None = None


_known: Latest[_Known] = Latest(_REMEMBERED)


def fits(jobs: Sequence[Job]) -> list[curves.Fit | None]:
    """The fit of each job's history, with ``T90`` and ``T95`` as targets; None with fewer reports than one needs."""
    known = [_read(job) for job in jobs]
    counts = [_count(one.reports) for one in known]
    settled = _fitted("settled", jobs, known, counts)
    found = [made.fit for made in settled]
    again = _crossings(jobs, known, settled)
    if again:
        some, theirs = [jobs[i] for i in again], [known[i] for i in again]
        every = [len(one.reports) for one in theirs]
        for i, made in zip(again, _fitted("crossing", some, theirs, every), strict=True):
            found[i] = made.fit
    return found


def _read(job: Job) -> _Known:
    """What is known of a job's history: that it has grown since leaves the fits of its first reports as they were."""
    held = _known.get(job.id)
    if held is not None and held.progress is job.progress:
        return held
    same = _common(held.progress, job.progress) if held is not None else 0
    if held is None or not same:
        return _Known(job.progress, curves.Reports.of(job.progress))
    held.reports.go_on(same, job.progress[same:])
    grown = _Known(job.progress, held.reports, _if_of(held.settled, same), _if_of(held.crossing, same))
    _known.keep(job.id, grown)
    return grown


def _common(before: tuple[Progress, ...], now: tuple[Progress, ...]) -> int:
    """How many of the first reports are the same: all of ``before`` or all but its last, else 0.

    The last report of a thinned history stands in only until the next: it is none of those that are kept.
    """
    if _goes_on(before, now):
        return len(before)
    return len(before) - 1 if _goes_on(before[:-1], now) else 0


def _if_of(made: _Made | None, reports: int) -> _Made | None:
    """A fit, where it was made of no more than so many reports."""
    return made if made is not None and made.points <= reports else None


def _goes_on(before: tuple[Progress, ...], now: tuple[Progress, ...]) -> bool:
    """Whether ``now`` is ``before``, or more after it.

    Tuples are in the order of the first items that differ, and of two reports neither is the greater. Unlike a slice
    that is compared, this leaves reports alone that are the same objects, which are all of a thousand jobs'.
    """
    try:
        return before <= now
    except TypeError:
        return False


def _fitted(
    kind: Literal["settled", "crossing"], jobs: Sequence[Job], known: list[_Known], counts: Sequence[int]
) -> list[_Made]:
    """The fit of so many reports of each job. ``known`` is brought up to date, and remembered."""
    held: list[_Made | None] = [getattr(one, kind) for one in known]
    missing = [
        i
        for i, (made, job, count) in enumerate(zip(held, jobs, counts, strict=True))
        if made is None or not made.stands_for(job, count)
    ]
    made_now = curves.fit_many(
        [curves.Told(known[i].reports.first(counts[i]), jobs[i].metric, jobs[i].iterations_total) for i in missing]
    )
    for i, fit in zip(missing, made_now, strict=True):
        job = jobs[i]
        made = _Made(counts[i], job.metric, job.iterations_total, fit, _ahead(job, fit))
        held[i] = made
        progress, reports, settled, crossing = known[i]
        known[i] = (
            _Known(progress, reports, made, crossing) if kind == "settled" else _Known(progress, reports, settled, made)
        )
    for job, one in zip(jobs, known, strict=True):
        _known.keep(job.id, one)
    return [made for made in held if made is not None]


def _count(reports: curves.Reports) -> int:
    """How many of the reports the fit is made of."""
    last = reports.iterations[-1] if len(reports) else 0.0
    if not 1.0 < last < math.inf:
        return len(reports)
    limit = GROWTH ** math.floor(math.log(last) / _LOG_GROWTH + 1e-9) * (1 + 1e-9)
    count = bisect_right(reports.iterations, limit)
    return count if count >= curves.MIN_POINTS else len(reports)


def _ahead(job: Job, fit: curves.Fit | None) -> float:
    if fit is None:
        return math.inf
    return min((_sign(job) * target.metric for target in fit.targets if target.crossed <= 0.5), default=math.inf)


def _sign(job: Job) -> float:
    return 1.0 if job.metric.direction == "max" else -1.0


def _crossings(jobs: Sequence[Job], known: Sequence[_Known], settled: Sequence[_Made]) -> list[int]:
    """Jobs of whom a running median of three, the last of them not in the fit, is at a target not thought passed."""
    tails = [one.reports.metrics[max(made.points - 2, 0) :] for one, made in zip(known, settled, strict=True)]
    owner = np.repeat(np.arange(len(tails)), [len(tail) for tail in tails])
    values = curves.joined(tails)
    told = ~np.isnan(values)
    owner, values = owner[told], values[told]
    values = values * np.array([_sign(job) for job in jobs])[owner]
    of_three = np.append([False, False], owner[2:] == owner[:-2])[: len(owner)]
    reached = curves.running_median(values) >= np.array([made.ahead for made in settled])[owner]
    found: list[int] = np.unique(owner[of_three & reached]).tolist()
    return found
