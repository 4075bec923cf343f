"""Tasks of several devices and transfers, played through by hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deepprophet.predict.tasks import Task, play, union


def wire(name: str, seconds: float, *after: int, link: str = "a", queue: str = "q", work: float = 0.0) -> Task:
    return Task(name, seconds, after, links=frozenset({(link, True)}), queue=queue, work=work)


def starts(tasks: list[Task], **how: float) -> dict[str, float]:
    return {span.name: span.start for span in play(tasks, **how).spans}


def test_devices_work_beside_each_other_and_wait_for_what_is_sent() -> None:
    tasks = [Task("f0", 2.0, (), 0), wire("send", 1.0, 0), Task("f1", 2.0, (1,), 1), Task("more", 1.0, (), 0)]
    played = play(tasks)
    assert starts(tasks) == {"f0": 0.0, "send": 2.0, "f1": 3.0, "more": 2.0}
    assert (played.seconds, played.compute, played.exposed) == (5.0, 3.0, 2.0)
    assert [played.spans[place].name for place in played.critical] == ["f0", "send", "f1"]
    assert {span.name: span.device for span in played.spans}["f1"] == 1


def test_a_device_keeps_its_order_even_if_a_later_task_could_start() -> None:
    tasks = [Task("long", 5.0, (), 1), Task("first", 1.0, (0,), 0), Task("second", 1.0, (), 0)]
    assert starts(tasks) == {"long": 0.0, "first": 5.0, "second": 6.0}


def test_a_queue_keeps_its_order_and_others_pass() -> None:
    tasks = [
        Task("late", 3.0, (), 0),
        wire("one", 1.0, 0),
        wire("two", 1.0, link="b"),
        wire("other", 1.0, link="c", queue="r"),
    ]
    assert starts(tasks) == {"late": 0.0, "one": 3.0, "two": 3.0, "other": 0.0}


def test_a_link_carries_one_transfer_at_a_time() -> None:
    tasks = [wire("one", 2.0, queue="q"), wire("two", 1.0, queue="r"), wire("three", 1.0, link="b", queue="s")]
    assert starts(tasks) == {"one": 0.0, "two": 2.0, "three": 0.0}


def test_what_takes_no_time_lets_others_start_at_once() -> None:
    tasks = [Task("none", 0.0, (), 0), wire("nothing", 0.0, 0), Task("work", 1.0, (1,), 0)]
    played = play(tasks)
    assert [(span.name, span.start, span.cause) for span in played.spans] == [("work", 0.0, None)]


def test_stretch_is_of_devices_alone() -> None:
    assert play([Task("work", 1.0, (), 0), wire("send", 1.0, 0)], stretch=3.0).seconds == pytest.approx(4.0)


def test_workers_that_share_a_core_send_each() -> None:
    """Two workers a core: what one of them sends takes a quarter of a second, and both send."""
    tasks = [Task("first", 1.0, (), 0), wire("send", 2.0, 0, work=0.5), Task("work", 1.0, (), 0)]
    played = play(tasks, stretch=2.0, crowded=True)
    # For two seconds the device has two thirds of its speed.
    assert played.seconds == pytest.approx(2.0 + 2.0 + (2.0 - 2.0 / 1.5))


def test_what_waits_for_itself_is_an_error() -> None:
    with pytest.raises(ValueError, match="wait for each other"):
        play([Task("one", 1.0, (1,), 0), Task("two", 1.0, (0,), 1)])


TASKS = st.lists(
    st.tuples(st.floats(0, 10), st.sampled_from([0, 1, None]), st.sets(st.integers(0, 11), max_size=3)), max_size=12
)


@given(TASKS, st.booleans())
def test_the_critical_path_has_no_gap(drawn: list[tuple[float, int | None, set[int]]], crowded: bool) -> None:
    tasks = [
        Task(str(n), seconds, tuple(sorted(place for place in after if place < n)), device,
             links=frozenset() if device is not None else frozenset({("a", True)}), work=seconds / 4, queue="q")
        for n, (seconds, device, after) in enumerate(drawn)
    ]  # fmt: skip
    played = play(tasks, crowded=crowded)
    path = [played.spans[place] for place in played.critical]
    assert sum(span.end - span.start for span in path) == pytest.approx(played.seconds, abs=1e-6)
    assert played.compute + played.exposed == pytest.approx(played.seconds)
    for span in played.spans:
        assert span.cause is None or played.spans[span.cause].end == pytest.approx(span.start, abs=1e-6)


def test_union() -> None:
    assert union([(3, 4), (0, 2), (1, 2.5)]) == pytest.approx(3.5)
    assert union([]) == 0.0
