"""The runs of a family for the fit of a job's history: those that count, where they predict each other."""

from __future__ import annotations

import numpy as np

from controller.curves.earlier import EarlierCurve, EarlierRuns
from controller.families.history import FamilyHistory
from controller.families.run import MAX_POINTS, EarlierRun
from controller.memo import Memo
from controller.model import Job, Metric

_REMEMBERED = 4096
"""Remember the runs of this many families. Each takes up to 20 kB."""
_remembered: Memo[FamilyHistory, dict[Metric, EarlierRuns | None]] = Memo(_REMEMBERED)


def earlier_runs(job: Job) -> EarlierRuns | None:
    """Returns what a policy may go by of the earlier runs of a job's family; None: nothing.

    The gate of the family must be open. Computed once for each history.
    """
    history = job.family
    if history is None or not history.gate.is_open:
        return None
    known = _remembered.get(history, dict)
    if job.metric not in known:
        known[job.metric] = _of(history, job.metric)
    return known[job.metric]


def _of(history: FamilyHistory, metric: Metric) -> EarlierRuns | None:
    share, converged = history.share_t90, history.converged
    curves = [
        _curve(run, run.share_t90)
        for run in history.runs
        if run.counts and (run.metric, run.direction) == (metric.name, metric.direction)
        if run.curve and run.share_t90 is not None
    ]
    if not curves or share is None or converged is None:
        return None
    return EarlierRuns.of(
        curves,
        (share.median, share.low, share.high, share.deviation),
        (converged.median, converged.deviation),
        MAX_POINTS,
    )


def _curve(run: EarlierRun, share_t90: float) -> EarlierCurve:
    iteration, metric = np.array(run.curve, dtype=np.float64).T
    levels = np.minimum.accumulate(-metric if run.direction == "max" else metric)
    return EarlierCurve(share_t90, iteration / run.length, levels)
