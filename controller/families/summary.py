"""From what a job has reported, at its end, to what is kept of it.

Which runs count is decided as for recorded curves (``evaluation/curves/record.py``), by criteria that need no more than
the reports: a metric of unknown noise, on any scale, reported as often as the job likes. All shares of a gain are of
what the run had gained: the distance from the median of its first three reports to its best running median.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import replace

from controller.families.definition import REPORTS, crossing, running_medians, start
from controller.families.run import MAX_POINTS, EarlierRun, Ending
from controller.model import Metric, Progress

MIN_REPORTS = 10
"""Refuse a run with fewer reports: its last tenth would be less than one."""
WHOLE = 0.98
"""A run of at least this share of its declared iterations is whole."""
PATIENCE_SHARE = 0.4
SMALLEST_GAIN = 0.02
"""A run has converged if its last ``PATIENCE_SHARE`` raised its gain by less than this share of it."""
MOST_LOSS = 0.1
NOISE = 2.0
"""Refuse a run that ends below its best by more than ``MOST_LOSS`` of its gain, and by more than ``NOISE`` standard
deviations of a report."""
FIRST_REPORT = 0.2
"""Refuse a run whose first report comes later than after this share of it, such as one that went on from a copy."""


def summary(
    key: tuple[str, float],
    progress: Sequence[Progress],
    metric: Metric,
    *,
    ended_at: float,
    declared: float | None = None,
    is_lost: bool = False,
    has_diverged: bool = False,
) -> EarlierRun:
    """Returns what is kept of a run.

    ``key``: the job, and when this run of it was registered. ``progress`` is in order of iterations; ``declared`` is
    the length of the whole run, where known. ``is_lost``: nobody has reported its end.
    """
    reports = [(point.iteration, point.metric) for point in progress if point.metric is not None]
    run = EarlierRun(
        *key,
        ended_at=ended_at,
        ending=Ending.FINISHED,
        metric=metric.name,
        direction=metric.direction,
        length=progress[-1].iteration if progress else 0.0,
        curve=_thinned(reports),
    )
    if reports:
        run = _measured(run, reports)
    ending, reason = _judged(run, reports, declared, is_lost=is_lost, has_diverged=has_diverged)
    if ending in (Ending.ABORTED, Ending.DIVERGED):
        # It had not converged, so it had not come near that either.
        run = replace(run, t90=None, t95=None)
    return replace(run, ending=ending, reason=reason)


def _measured(run: EarlierRun, reports: Sequence[tuple[float, float]]) -> EarlierRun:
    """Returns the run with its converged metric, and when it was near that."""
    metrics = [metric for _, metric in reports]
    # The last tenth of the iterations: with a report at each these are the last tenth of the reports.
    last = [metric for iteration, metric in reports if 10 * iteration > 9 * run.length] or metrics[-1:]
    converged = statistics.median(last)
    begin = start(metrics, run.direction)
    t90, t95 = (
        None
        if (i := crossing(metrics, begin + fraction * (converged - begin), run.direction)) is None
        else reports[i][0]
        for fraction in (0.90, 0.95)
    )
    return replace(run, converged=converged, t90=t90, t95=t95)


def _judged(
    run: EarlierRun,
    reports: Sequence[tuple[float, float]],
    declared: float | None,
    *,
    is_lost: bool,
    has_diverged: bool,
) -> tuple[Ending, str | None]:
    """Returns how the run ended, and why it does not count, in words."""
    if has_diverged:
        return Ending.DIVERGED, "its metric became no number"
    if is_lost:
        return Ending.ABORTED, "its end was not reported"
    if not reports:
        return Ending.REFUSED, f"it reported no {run.metric}"
    # Metrics that rise, with what every report gains over the first ones.
    sign = 1.0 if run.direction == "max" else -1.0
    gains = [sign * metric for _, metric in reports]
    smooth = list(running_medians(gains))
    stopped = declared is not None and run.length < WHOLE * declared
    if stopped and (len(reports) < MIN_REPORTS or not _is_flat(run.length, reports, smooth)):
        return Ending.ABORTED, f"it stopped after {run.length:g} of {declared:g} iterations, before it had converged"
    refusal = _refusal(run, reports, gains, smooth)
    return (Ending.FINISHED, None) if refusal is None else (Ending.REFUSED, refusal)


def _refusal(
    run: EarlierRun, reports: Sequence[tuple[float, float]], gains: Sequence[float], smooth: Sequence[float]
) -> str | None:
    """Returns why the curve of a run that was not stopped says nothing; None: it says something."""
    if len(reports) < MIN_REPORTS:
        return f"only {len(reports)} of the {MIN_REPORTS} reports that a curve needs"
    if reports[0][0] > FIRST_REPORT * run.length:
        return f"its first report is at iteration {reports[0][0]:g} of {run.length:g}"
    if (fault := _fault_of_end(run, gains, smooth)) is not None:
        return fault
    if run.t90 is None:
        return "it never reaches 90 % of its end"
    return f"it reaches 90 % by its report {REPORTS}" if run.t90 <= reports[REPORTS - 1][0] else None


def _fault_of_end(run: EarlierRun, gains: Sequence[float], smooth: Sequence[float]) -> str | None:
    """Returns what is wrong with where a run ends; None: nothing."""
    assert run.converged is not None
    first, best, end = smooth[0], max(smooth), run.converged if run.direction == "max" else -run.converged
    if end <= first or (run.direction == "max" and end <= 0):
        return "it ends no better than it began"
    if best - end > max(MOST_LOSS * (best - first), NOISE * _noise(gains)):
        return "it ends below its best"
    return None


def _is_flat(length: float, reports: Sequence[tuple[float, float]], smooth: Sequence[float]) -> bool:
    """Returns whether the last part of a run brought almost no gain."""
    until = (1 - PATIENCE_SHARE) * length
    before = [value for (iteration, _), value in zip(reports[REPORTS - 1 :], smooth, strict=True) if iteration <= until]
    if not before:
        return False
    return max(smooth) - max(before) < SMALLEST_GAIN * (max(smooth) - smooth[0])


def _noise(gains: Sequence[float]) -> float:
    """Returns the jitter of a report as a standard deviation: the robust spread of second differences."""
    second = [abs(c - 2 * b + a) for a, b, c in zip(gains, gains[1:], gains[2:], strict=False)]
    return 1.4826 * statistics.median(second) / math.sqrt(6)


def _thinned(reports: Sequence[tuple[float, float]]) -> tuple[tuple[float, float], ...]:
    """Returns at most ``MAX_POINTS`` reports, evenly spaced by rank, each with the running median of three."""
    if len(reports) < REPORTS:
        return tuple(reports)
    metrics = [metric for _, metric in reports]
    smooth = [*metrics[: REPORTS - 1], *running_medians(metrics)]
    count = min(len(reports), MAX_POINTS)
    ranks = [round(i * (len(reports) - 1) / (count - 1)) for i in range(count)]
    # Six digits are more than a curve's noise leaves, and three times less to write.
    return tuple((float(f"{reports[rank][0]:.9g}"), float(f"{smooth[rank]:.6g}")) for rank in ranks)
