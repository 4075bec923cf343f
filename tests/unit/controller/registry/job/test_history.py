from __future__ import annotations

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from controller.model import Progress
from controller.registry.job.history import MAX_POINTS, History

points = st.lists(
    st.builds(
        Progress,
        iteration=st.integers(0, 40).map(float) | st.floats(0, 1e15),
        time=st.floats(0, 1e9),
        metric=st.none() | st.floats(-10, 10),
    ),
    max_size=40,
)


@given(points, st.randoms())
def test_order_and_repetition_do_not_matter(told: list[Progress], random: Random) -> None:
    again = [*told, *told]
    random.shuffle(again)
    assert History(told).points() == History(again).points()
    assert History(told).last_measured == History(again).last_measured


@given(points)
def test_iterations_grow_and_the_ends_are_kept(told: list[Progress]) -> None:
    kept = History(told).points()
    iterations = [point.iteration for point in kept]
    assert iterations == sorted(set(iterations))
    if told:
        assert iterations[0] == min(point.iteration for point in told)
        assert iterations[-1] == max(point.iteration for point in told) == History(told).iterations_done


def test_memory_is_bounded_and_thinning_depends_on_the_points_alone() -> None:
    told = [Progress(float(i), float(i), 1.0 - 1.0 / (i + 1)) for i in range(5 * MAX_POINTS)]
    forward, backward = History(told), History(reversed(told))
    assert MAX_POINTS / 2 <= len(forward) <= MAX_POINTS
    assert forward.points() == backward.points()
    assert forward.points()[0] == told[0]
    assert forward.points()[-1] == told[-1]
    assert forward.strides > 0


def test_a_point_with_a_metric_is_the_better_witness() -> None:
    assert History([Progress(3.0, 1.0), Progress(3.0, 2.0, 0.5)]).points() == (Progress(3.0, 2.0, 0.5),)


def test_a_reloaded_history_is_the_same() -> None:
    history = History(Progress(i**1.7, float(i), None if i % 3 else i / 1e4) for i in range(3 * MAX_POINTS))
    assert History(history.points()).points() == history.points()
