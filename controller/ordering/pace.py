"""How fast a job trains now, against how fast it would train alone and how fast it has trained before. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from controller.model import Job, Progress
from controller.ordering.loads import Floats

WINDOW_SECONDS = 30.0
"""Measure a pace over so long, or over the last two reports where they are further apart."""
_SILENT = 2.0
"""A job that has not reported for this many times its usual pause is slower than its reports say."""


class Pace(NamedTuple):
    """Iterations a second: ``now``, measured over the last ``seconds``.

    ``alone`` is what an idle network would allow by the declared seconds of computing; None: they are not declared.
    ``best`` is the most that was measured over ``WINDOW_SECONDS`` before; None: there was no such time.
    """

    now: float
    seconds: float
    alone: float | None
    best: float | None


def pace(job: Job, bottleneck_seconds: float, now: float) -> Pace | None:
    """Returns the pace of a job at ``now``; None where it has not reported two different iterations.

    ``bottleneck_seconds`` is how long its busiest port needs for one iteration.
    """
    iterations, times = _reported(job.progress)
    if len(times) < 2:
        return None
    begin = min(int(np.searchsorted(times, times[-1] - WINDOW_SECONDS)), len(times) - 2)
    usual = (times[-1] - times[begin]) / (len(times) - 1 - begin)
    end = max(now, times[-1]) if now - times[-1] > _SILENT * usual else times[-1]
    seconds = float(end - times[begin])
    alone = 1.0 / (job.compute_seconds + bottleneck_seconds) if job.compute_seconds > 0 else None
    return Pace(float(iterations[-1] - iterations[begin]) / seconds, seconds, alone, _best(iterations, times, begin))


def _reported(progress: Sequence[Progress]) -> tuple[Floats, Floats]:
    """Returns the iterations and times of the reports, each later and further than the one before."""
    kept: list[tuple[float, float]] = []
    for point in progress:
        if not kept or (point.time > kept[-1][1] and point.iteration > kept[-1][0]):
            kept.append((point.iteration, point.time))
    pairs = np.array(kept, dtype=float).reshape(-1, 2)
    return pairs[:, 0], pairs[:, 1]


def _best(iterations: Floats, times: Floats, until: int) -> float | None:
    """Returns the highest pace of the reports up to position ``until``, each over at least ``WINDOW_SECONDS``."""
    iterations, times = iterations[: until + 1], times[: until + 1]
    end = np.searchsorted(times, times + WINDOW_SECONDS)
    begin = np.flatnonzero(end < len(times))
    if len(begin) == 0:
        return None
    end = end[begin]
    return float(((iterations[end] - iterations[begin]) / (times[end] - times[begin])).max())
