"""The fits of the histories of all jobs of a plan, remembered from plan to plan.

A fit moves little from one report to the next, so a history is fitted when it has grown by a twentieth: up to the last
report whose iteration is a power of 1.05 or before. Where a later report crosses a target of that fit, all up to that
report are fitted at once; and again where one after it crosses a target of this fit, and so on. Which reports a fit is
made of follows from the history alone, so a controller that was restarted makes the same plan.

The same reports of the same metric have the same fit, whoever reported them: in a simulation hundreds of jobs replay a
few dozen recorded curves, under one policy after the other.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Sequence
from hashlib import blake2b
from typing import NamedTuple

import numpy as np

from controller.curves import fit as curves
from controller.curves.earlier import EarlierRuns
from controller.curves.record import Recorded
from controller.memo import Latest
from controller.model import Job, Metric, Progress

GROWTH = 1.05
_LOG_GROWTH = math.log(GROWTH)
_REMEMBERED = 8192
"""Remember the histories of this many jobs. Each has two fits and takes about ten kilobytes."""
_SHARED = 8192
"""Remember this many fits by their input. Each takes about a kilobyte."""


class _Known(NamedTuple):
    """What a fit depends on beside the reports, see ``curves.FitInput``."""

    metric: Metric
    total: float | None
    target: float | None
    earlier: EarlierRuns | None


class _FitRecord(NamedTuple):
    """A fit, its input (number of reports, and what is known of the job beside them), and the nearest target.

    ``ahead`` is the metric of the nearest target that the job has not yet passed by the fit, with its sign turned so
    that it rises. It is infinite where the job has passed all.
    """

    points: int
    known: _Known
    fit: curves.Fit | None
    ahead: float


class _JobHistory(NamedTuple):
    """A job's history as numbers, the fit since it last grew by a twentieth, and the latest after a crossing.

    ``answer`` is the one of the two fits that was returned for this very history.
    """

    progress: Sequence[Progress]
    reports: curves.Reports
    settled: _FitRecord | None = None
    crossing: _FitRecord | None = None
    answer: _FitRecord | None = None


class Remembered:
    """The fits of one process. ``fit_many`` fits histories that were not fitted before."""

    def __init__(
        self, fit_many: Callable[[Sequence[curves.FitInput]], list[curves.Fit | None]] = curves.fit_many
    ) -> None:
        self._fit_many = fit_many
        self._known: Latest[_JobHistory] = Latest(_REMEMBERED)
        self._shared: Latest[curves.Fit] = Latest(_SHARED)

    def fits(self, jobs: Sequence[Job], earlier: Sequence[EarlierRuns | None] = ()) -> list[curves.Fit | None]:
        """Returns the fit of each job's history, with ``T90`` and ``T95`` as targets; None for too few reports.

        ``earlier``: what is known of earlier runs of each job's family; empty: nothing of any.
        """
        facts = [
            _Known(job.metric, job.iterations_total, job.target, runs)
            for job, runs in zip(jobs, earlier or [None] * len(jobs), strict=True)
        ]
        answers = [self._as_before(job, known) for job, known in zip(jobs, facts, strict=True)]
        news = [i for i, answer in enumerate(answers) if answer is None]
        for i, record in zip(news, self._anew([jobs[i] for i in news], [facts[i] for i in news]), strict=True):
            answers[i] = record
        return [answer.fit for answer in answers if answer is not None]

    def _as_before(self, job: Job, facts: _Known) -> _FitRecord | None:
        """Returns the last answer if the job has not reported since, else None."""
        held = self._known.get(job.id)
        if held is None or held.progress is not job.progress or _has_grown(held):
            return None
        record = held.answer
        return record if record is not None and record.known == facts else None

    def _anew(self, jobs: Sequence[Job], facts: Sequence[_Known]) -> list[_FitRecord]:
        known = [self._read(job) for job in jobs]
        latest: list[_FitRecord | None] = [
            history.settled if history.crossing is None else history.crossing for history in known
        ]
        counts = [_count(history.reports) for history in known]
        stands = [_settled(*one) for one in zip(known, facts, counts, strict=True)]
        grown = [i for i, stand in enumerate(stands) if not stand]
        crossed, until = _crossings(jobs, known, latest, [i for i, stand in enumerate(stands) if stand])
        # As few calls as can be: to fit two histories takes hardly longer than one.
        anew, until = grown + crossed, [counts[i] for i in grown] + until
        while anew:
            for i, record in zip(anew, self._fit_records(facts, known, anew, until), strict=True):
                progress, reports, settled, *_ = known[i]
                known[i] = (
                    _JobHistory(progress, reports, settled, record)
                    if stands[i]
                    else _JobHistory(progress, reports, record)
                )
                stands[i] = True
                latest[i] = record
            anew, until = _crossings(jobs, known, latest, anew)
        answers = [record for record in latest if record is not None]
        for job, history, record in zip(jobs, known, answers, strict=True):
            self._known.keep(job.id, history._replace(answer=record))
        return answers

    def _read(self, job: Job) -> _JobHistory:
        """Returns what is known of a job's history. Its growth leaves the fits of its first reports as they were."""
        held = self._known.get(job.id)
        if held is not None and held.progress is job.progress and not _has_grown(held):
            return held
        same, reports = _grown(held, job.progress)
        if held is None or not same:
            return _JobHistory(job.progress, reports)
        grown = _JobHistory(job.progress, reports, _if_of(held.settled, same), _if_of(held.crossing, same))
        self._known.keep(job.id, grown)
        return grown

    def _fit_records(
        self, facts: Sequence[_Known], known: Sequence[_JobHistory], indices: Sequence[int], counts: Sequence[int]
    ) -> list[_FitRecord]:
        """Returns the fits of the jobs at ``indices``, each from the first of its reports, ``counts`` of them."""
        inputs = [
            curves.FitInput(known[i].reports.first(count), *facts[i]) for i, count in zip(indices, counts, strict=True)
        ]
        return [
            _FitRecord(count, facts[i], fit, _ahead(facts[i], fit))
            for i, count, fit in zip(indices, counts, self._fitted(inputs), strict=True)
        ]

    def _fitted(self, inputs: Sequence[curves.FitInput]) -> list[curves.Fit | None]:
        """Returns the fits of these inputs; an input that was fitted before is not fitted again."""
        names = [_name(fit_input) for fit_input in inputs]
        fits_by_input = [self._shared.get(name) for name in names]
        new = [i for i, fit in enumerate(fits_by_input) if fit is None]
        for i, fit in zip(new, self._fit_many([inputs[i] for i in new]), strict=True):
            if fit is not None:
                fits_by_input[i] = fit
                self._shared.keep(names[i], fit)
        return fits_by_input


_of_this_process = Remembered()


def fits(jobs: Sequence[Job], earlier: Sequence[EarlierRuns | None] = ()) -> list[curves.Fit | None]:
    """Returns the fit of each job's history, see ``Remembered.fits``, with the memory that this process has."""
    return _of_this_process.fits(jobs, earlier)


def _has_grown(held: _JobHistory) -> bool:
    """Returns whether a record has grown since this view of it."""
    return isinstance(held.progress, Recorded) and held.progress.reports is not held.reports


def _grown(held: _JobHistory | None, progress: Sequence[Progress]) -> tuple[int, curves.Reports]:
    """Returns how many of the first reports are the remembered ones, and all reports as numbers."""
    before = held.progress if held is not None else ()
    if isinstance(progress, Recorded):
        return progress.goes_on(before) if isinstance(before, Recorded) else 0, progress.reports
    same = _common(before, progress) if isinstance(before, tuple) and isinstance(progress, tuple) else 0
    if held is None or not same:
        return 0, curves.Reports.of(progress)
    held.reports.go_on(same, progress[same:])
    return same, held.reports


def _common(before: tuple[Progress, ...], now: tuple[Progress, ...]) -> int:
    """How many of the first reports are the same: all of ``before`` or all but its last, else 0.

    The last report of a thinned history stands in only until the next: it is none of those that are kept.
    """
    if _goes_on(before, now):
        return len(before)
    return len(before) - 1 if _goes_on(before[:-1], now) else 0


def _if_of(record: _FitRecord | None, reports: int) -> _FitRecord | None:
    """Returns the fit if its input has at most ``reports`` reports, else None."""
    return record if record is not None and record.points <= reports else None


def _goes_on(before: tuple[Progress, ...], now: tuple[Progress, ...]) -> bool:
    """Returns whether ``now`` begins with ``before``.

    Tuples are in the order of the first items that differ, and of two reports neither is the greater. Unlike a slice
    that is compared, this leaves reports alone that are the same objects, which are all of a thousand jobs'.
    """
    try:
        return before <= now
    except TypeError:
        return False


def _settled(history: _JobHistory, facts: _Known, count: int) -> bool:
    """Returns whether the settled fit is that of the first ``count`` reports."""
    return history.settled is not None and history.settled[:2] == (count, facts)


def _name(fit_input: curves.FitInput) -> str:
    """Returns a hash of all that a fit depends on."""
    reports, metric, total, target, earlier = fit_input
    digest = None if earlier is None else earlier.digest
    name = blake2b(repr((len(reports), metric, total, target, digest)).encode(), digest_size=16)
    name.update(reports.iterations)
    name.update(reports.metrics)
    return name.hexdigest()


def _count(reports: curves.Reports) -> int:
    """Returns how many of the reports the fit takes as input."""
    last = reports.iterations[-1] if len(reports) else 0.0
    if not 1.0 < last < math.inf:
        return len(reports)
    limit = GROWTH ** math.floor(math.log(last) / _LOG_GROWTH + 1e-9) * (1 + 1e-9)
    count = bisect_right(reports.iterations, limit)
    return count if count >= curves.MIN_POINTS else len(reports)


def _ahead(facts: _Known, fit: curves.Fit | None) -> float:
    if fit is None:
        return math.inf
    ahead = [target.metric for target in fit.targets if target.crossed <= 0.5]
    if facts.target is not None and fit.declared is not None and fit.declared.crossed is None:
        ahead.append(facts.target)
    return min((_sign(facts) * metric for metric in ahead), default=math.inf)


def _sign(of: Job | _Known) -> float:
    return 1.0 if of.metric.direction == "max" else -1.0


def _crossings(
    jobs: Sequence[Job], known: Sequence[_JobHistory], latest: Sequence[_FitRecord | None], indices: Sequence[int]
) -> tuple[list[int], list[int]]:
    """Returns the jobs at ``indices`` whose history crosses a target ahead, and how many reports each needs for it.

    A history crosses where a running median of three, the last of them not in the ``latest`` fit, is at the target.
    """
    held = [record for i in indices if (record := latest[i]) is not None]
    begins = [max(record.points - 2, 0) for record in held]
    tails = [known[i].reports.metrics[begin:] for i, begin in zip(indices, begins, strict=True)]
    lengths = [len(tail) for tail in tails]
    owner = np.repeat(np.arange(len(tails)), lengths)
    position = np.arange(len(owner)) + np.repeat(
        np.array(begins, dtype=np.int64) - np.cumsum([0, *lengths])[:-1], lengths
    )
    values = curves.joined(tails)
    has_metric = ~np.isnan(values)
    owner, position, values = owner[has_metric], position[has_metric], values[has_metric]
    values = values * np.array([_sign(jobs[i]) for i in indices])[owner]
    of_three = np.append([False, False], owner[2:] == owner[:-2])[: len(owner)]
    reached = curves.running_median(values) >= np.array([record.ahead for record in held])[owner]
    crossing = np.flatnonzero(of_three & reached)
    whose, first = np.unique(owner[crossing], return_index=True)
    return [indices[i] for i in whose.tolist()], (position[crossing[first]] + 1).tolist()
