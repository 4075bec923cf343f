"""The pace of a job, by its reports."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from controller.model import Job, Progress
from controller.ordering.pace import WINDOW_SECONDS, pace


def job(points: Iterable[tuple[float, float]], compute_seconds: float = 0.0) -> Job:
    return Job("a", compute_seconds=compute_seconds, progress=tuple(Progress(k, t) for k, t in points))


@pytest.mark.parametrize("points", [[], [(1, 1)], [(1, 1), (1, 2)], [(2, 1), (1, 2)]])
def test_a_job_without_two_different_iterations_has_none(points: list[tuple[float, float]]) -> None:
    assert pace(job(points), 0.5, 10.0) is None


def test_it_is_of_the_latest_reports_alone() -> None:
    fast_then_slow = [(2.0 * t, float(t)) for t in range(100)] + [(198.0 + t / 2, 99.0 + t) for t in range(2, 41, 2)]
    found = pace(job(fast_then_slow), 0.5, 140.0)
    assert found is not None
    assert found.now == pytest.approx(0.5, rel=0.01)
    assert found.seconds == pytest.approx(WINDOW_SECONDS)
    assert found.best == pytest.approx(2.0, rel=0.01)
    assert found.alone is None, "it does not declare how long it computes"


def test_alone_is_what_it_declares_to_compute_and_its_busiest_port() -> None:
    found = pace(job([(1, 1), (2, 3)], compute_seconds=0.75), 0.5, 4.0)
    assert found is not None
    assert (found.now, found.alone, found.best) == (0.5, pytest.approx(0.8), None)


def test_silence_slows_a_job_down() -> None:
    usual = job([(float(t), float(t)) for t in range(11)])
    on_time, silent = pace(usual, 0.5, 11.5), pace(usual, 0.5, 40.0)
    assert on_time is not None
    assert silent is not None
    assert (on_time.now, silent.now) == (1.0, pytest.approx(0.25))
