"""Lines that come in blocks are of their own steps, not of the step that the bar shows when they come."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from host_reporter.formats.counts.choice import Wanted
from host_reporter.formats.counts.counting import Counter
from host_reporter.formats.counts.late import MAX_HELD, LateLines
from host_reporter.formats.events import Diverged, Ended, Event, Point
from host_reporter.formats.reading import Reading


def tick(step: int) -> Reading:
    return Reading(step=step, total=1000)


def line(epoch: float, loss: float) -> Reading:
    return Reading(epoch=epoch, metrics={"loss": loss}, may_be_late=True)


def counted(*readings: Reading) -> list[Event]:
    counter = Counter(Wanted())
    return [event for reading in readings for event in counter.count(reading)] + counter.settle()


def losses(*readings: Reading) -> list[tuple[float, float | None]]:
    events = counted(*readings)
    return [(e.iteration, e.metric) for e in events if isinstance(e, Point) and e.metric is not None]


def test_lines_that_come_in_time_are_of_the_bar_behind_them() -> None:
    lines = [tick(8), line(0.1, 3), tick(10), tick(17), line(0.2, 2), tick(20), line(0.3, 1), tick(30)]
    assert losses(*lines) == [(10, 3), (20, 2), (30, 1)]


def test_lines_that_come_in_blocks_are_of_their_own_steps() -> None:
    first = [line(epoch / 10, 10 - epoch) for epoch in (1, 2, 3)]
    second = [line(epoch / 10, 10 - epoch) for epoch in (4, 5)]
    assert losses(tick(20), *first, tick(30), tick(100), *second, tick(100)) == [
        (10, 9), (20, 8), (30, 7), (40, 6), (50, 5)
    ]  # fmt: skip


def test_the_last_lines_need_no_bar_behind_them() -> None:
    assert losses(tick(10), line(0.1, 3), tick(10), tick(30), line(0.2, 2), line(0.3, 1)) == [(10, 3), (20, 2), (30, 1)]
    assert counted(tick(10), line(0.1, 3), Reading(ended=True))[-2:] == [Point(10, 3), Ended()]


def test_a_loss_that_is_no_number_is_said_at_once() -> None:
    counter = Counter(Wanted())
    counter.count(tick(10))
    assert Diverged() in counter.count(line(0.1, float("nan")))


def test_lines_before_the_first_step_count_epochs() -> None:
    assert losses(line(0.1, 3), line(0.2, 2)) == [(0.1, 3), (0.2, 2)]


def test_a_metric_that_is_no_longer_the_run_s_is_dropped() -> None:
    held = LateLines()
    held.hold(0.1, 3.0, None)
    held.forget_metrics()
    held.hold(0.2, 2.0, None)
    assert held.release(20) == [Point(20, 2.0)]


def test_what_is_held_is_bounded() -> None:
    counter = Counter(Wanted())
    counter.count(tick(500))
    events = [event for i in range(MAX_HELD) for event in counter.count(line(0.1 + i / 1e5, 1.0))]
    assert sum(isinstance(event, Point) for event in events) == MAX_HELD


@pytest.mark.parametrize("decimals", [2, 9])
@given(
    per_epoch=st.integers(20, 5000),
    every=st.integers(1, 50),
    blocks=st.lists(st.integers(1, 30), min_size=2, max_size=8),
)
def test_no_line_is_placed_far_from_its_step(decimals: int, per_epoch: int, every: int, blocks: list[int]) -> None:
    """Each block ends in time, as one does that a validation has flushed. Shares are rounded."""
    held, step = LateLines(), 0
    for size in blocks:
        steps = [step + every * (i + 1) for i in range(size)]
        step = steps[-1]
        for each in steps:
            held.hold(round(each / per_epoch, decimals), float(each), None)
        slip = max(0.5 * 10**-decimals * per_epoch, 0.0005 * step)
        for point in held.release(step):
            assert point.metric is not None
            assert 0 <= point.iteration <= step
            assert abs(point.iteration - point.metric) <= 2 * slip + 1
