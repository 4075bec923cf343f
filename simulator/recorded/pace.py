"""From what was seen of a run to its times: when it began, how long an iteration takes when least slowed. Pure."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from simulator.recorded.recording import Point, Run

Array = NDArray[np.float64]
FASTEST_SHARE = 0.02
"""Of all stretches of a run one in fifty is faster than what counts as least slowed: single ones are too fast only
because reports come at their own times."""
STRETCH_SECONDS = 10.0
STRETCH_GAPS = 10
STRETCH_ITERATIONS = 3
"""A stretch has at least so many seconds, gaps between events, and iterations. The whole of a shorter run is one."""


def begin_of(run: Run) -> Point:
    """Returns when a run began, and after how many iterations: 0, unless it began before the recording.

    The first event may show iterations already. They are thought to have taken as long as the next ones, but the run
    did not begin before its registration was told of.
    """
    first, last = run.points[0], run.points[-1]
    if not run.begun_seen:
        return first
    later = next((point for point in run.points if point.done >= first.done + STRETCH_ITERATIONS), last)
    an_iteration = (later.time - first.time) / (later.done - first.done) if later.done > first.done else 0.0
    return Point(max(first.time - first.done * an_iteration, run.seen), 0.0, None)


def end_of(run: Run) -> Point:
    """Returns the first point that shows all the iterations that were seen."""
    return next(point for point in run.points if point.done == run.points[-1].done)


def gap_of(points: Sequence[Point]) -> float:
    """Returns the median time between two points, of which there are at least two."""
    return float(np.median(np.diff([point.time for point in points])))


def least_seconds(points: Sequence[Point]) -> float:
    """Returns the seconds of an iteration when least slowed. ``points`` show at least one iteration."""
    time, done = np.array([point.time for point in points]), np.array([point.done for point in points])
    shortest = max(STRETCH_SECONDS, STRETCH_GAPS * gap_of(points))
    paces = []
    later = 0
    for begin in range(len(points)):
        while later < len(points) and not (
            time[later] - time[begin] >= shortest and done[later] - done[begin] >= STRETCH_ITERATIONS
        ):
            later += 1
        if later == len(points):
            break
        paces.append((time[later] - time[begin]) / (done[later] - done[begin]))
    if not paces:
        return float((time[-1] - time[0]) / (done[-1] - done[0]))
    return float(np.quantile(paces, FASTEST_SHARE))


def times_at(begin: Point, points: Sequence[Point], iterations: Array) -> Array:
    """Returns when each of ``iterations`` (n,), counted from the beginning, was done: between events in proportion."""
    done = np.array([0.0, *(point.done - begin.done for point in points)])
    time = np.array([begin.time, *(point.time for point in points)])
    is_new = np.r_[True, np.diff(done) > 0]  # when so many were seen for the first time
    return np.asarray(np.interp(iterations, done[is_new], time[is_new]), dtype=np.float64)


def metrics_at(begin: Point, points: Sequence[Point], iterations: Array) -> Array:
    """Returns the metric after each of ``iterations`` (n,): between events in proportion. Empty where none was seen."""
    seen = [(point.done - begin.done, point.metric) for point in points if point.metric is not None]
    if not seen:
        return np.zeros(0)
    done, metric = zip(*seen, strict=True)
    return np.asarray(np.interp(iterations, done, metric), dtype=np.float64)
