"""Times in an iteration, with the waiting taken out."""

from __future__ import annotations

import pytest

from sasp.core.stopwatch import Stopwatch


def iterate(watch: Stopwatch, now: float, wait: float) -> float:
    """One second of computing: layer 0 is needed at once, and waits; layer 1 at 0.25; backward from the end."""
    watch.needed(0, now, now + wait)
    watch.needed(1, now + wait + 0.25, now + wait + 0.25)
    watch.ready(1, now + wait + 0.5)
    watch.ready(0, now + wait + 1)
    watch.end(now + wait + 1)
    return now + wait + 1


def test_waiting_is_no_computing() -> None:
    watch = Stopwatch(2)
    watch.begin(10.0)
    now = 10.0
    for wait in (0.0, 0.5, 2.0):
        now = iterate(watch, now, wait)
    assert watch.iterations == 3
    measured = watch.measured()
    assert measured.needed == pytest.approx((0.0, 0.25))
    assert measured.ready == pytest.approx((1.0, 0.5))
    assert (measured.computing, measured.iteration) == pytest.approx((1.0, 1.5))
    watch.begin(now)
    assert watch.iterations == 0


def test_a_stopped_watch_keeps_nothing() -> None:
    watch = Stopwatch(2)
    watch.begin(0.0)
    now = iterate(watch, 0.0, 0.0)
    watch.stop()
    for _ in range(3):
        now = iterate(watch, now, 0.5)
    assert watch.iterations == 0
    watch.begin(now)
    iterate(watch, now, 0.0)
    assert watch.iterations == 1


def test_a_layer_that_is_not_used_counts_at_the_end_and_what_was_before_the_begin_not_at_all() -> None:
    watch = Stopwatch(3)
    watch.needed(0, 1.0, 2.0)
    watch.ready(0, 3.0)
    watch.end(4.0)
    assert watch.iterations == 0
    watch.begin(4.0)
    iterate(watch, 4.0, 0.0)
    assert watch.measured().needed == pytest.approx((0.0, 0.25, 1.0))
    assert watch.measured().ready == pytest.approx((1.0, 0.5, 1.0))


def test_the_pace_is_of_iterations_together_and_forgets_one_that_was_held_up() -> None:
    watch = Stopwatch(1)
    watch.begin(0.0)
    now = 0.0
    for seconds in (1.0, 3.0, 1.0, 3.0, 90.0, 3.0, 1.0, 3.0, 1.0, 3.0):
        now += seconds
        watch.end(now)
    assert watch.pace(2) == pytest.approx(2.0)
    assert watch.pace(100) == pytest.approx(10.9)
