"""The times of a run, from what was seen of it."""

from __future__ import annotations

import numpy as np
import pytest

from simulator.recorded.pace import begin_of, end_of, least_seconds, metrics_at, times_at
from simulator.recorded.recording import Point, Run


def run(*points: tuple[float, float], seen: float = 0.0, begun_seen: bool = True) -> Run:
    return Run("a", seen, begun_seen, points=[Point(time, done, None) for time, done in points])


def test_a_run_began_before_its_first_event_and_not_before_its_registration() -> None:
    points = ((10.0, 4.0), (12.0, 8.0), (30.0, 9.0))
    assert begin_of(run(*points)) == Point(8.0, 0.0, None)
    assert begin_of(run(*points, seen=9.5)) == Point(9.5, 0.0, None)
    assert begin_of(run((10.0, 0.0), (12.0, 5.0))) == Point(10.0, 0.0, None)
    assert begin_of(run(*points, begun_seen=False)) == Point(10.0, 4.0, None)
    assert begin_of(run((10.0, 4.0))) == Point(10.0, 0.0, None), "nothing says how long an iteration took"


def test_a_run_ends_with_its_last_iteration() -> None:
    assert end_of(run((1.0, 4.0), (2.0, 9.0), (7.0, 9.0))).time == 2.0


def test_the_fastest_stretch_counts_and_not_a_single_gap() -> None:
    slow = [(float(time), time / 2) for time in range(60)]
    fast = [(60.0 + time, 30.0 + time) for time in range(30)]
    burst = [(90.0 + time, 60.0 + time / 2 + (4.0 if time > 10 else 0.0)) for time in range(40)]
    points = [Point(time, done, None) for time, done in (*slow, *fast, *burst)]
    assert least_seconds(points) == pytest.approx(1.0, rel=0.05)


def test_of_a_short_run_the_whole_counts() -> None:
    assert least_seconds([Point(0.0, 0.0, None), Point(1.0, 4.0, None), Point(4.0, 8.0, None)]) == 0.5


def test_events_that_come_seldom_need_longer_stretches() -> None:
    # An event each 5 s sees 4 or 6 iterations, of which 5 are done in truth.
    points = [Point(5.0 * k, 5.0 * k + (k % 2), None) for k in range(40)]
    assert least_seconds(points) == pytest.approx(1.0, rel=0.03)


def test_between_events_iterations_and_metrics_are_in_proportion() -> None:
    points = [Point(10.0, 2.0, 0.2), Point(12.0, 2.0, 0.3), Point(20.0, 4.0, 0.5)]
    times = times_at(Point(8.0, 0.0, None), points, np.array([1.0, 2.0, 3.0, 4.0]))
    assert times.tolist() == [9.0, 10.0, 15.0, 20.0]
    assert times_at(Point(10.0, 2.0, None), points, np.array([1.0, 2.0])).tolist() == [15.0, 20.0]
    assert metrics_at(Point(8.0, 0.0, None), points, np.array([1.0, 3.0, 4.0])).tolist() == pytest.approx(
        [0.2, 0.4, 0.5]
    )
    assert metrics_at(Point(8.0, 0.0, None), [Point(9.0, 1.0, None)], np.array([1.0])).size == 0
