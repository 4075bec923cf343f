"""The pace of events: at most one a second and name, the newest value, and never without the last one."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from controller.events.pace import SECONDS, Pace


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.floats(0, 2), st.sampled_from("abc"), st.booleans()), max_size=80))
def test_values_are_told_at_their_pace_and_the_last_one_is_told(steps: list[tuple[float, str, bool]]) -> None:
    pace: Pace[int] = Pace()
    now = 0.0
    marked: dict[str, int] = {}
    told: dict[str, list[tuple[float, int]]] = {}

    def look() -> None:
        for name, value in pace.due(now):
            assert value == marked[name], "the newest"
            told.setdefault(name, []).append((now, value))

    for number, (wait, name, is_looked_at) in enumerate(steps):
        now += wait
        pace.mark(name, number)
        marked[name] = number
        if is_looked_at:
            look()
    look()
    now += 1.001 * SECONDS
    look()
    assert len(pace) == 0
    assert {name: values[-1][1] for name, values in told.items()} == marked
    for values in told.values():
        assert all(later[0] - earlier[0] >= SECONDS for earlier, later in pairwise(values))


def test_what_was_quiet_is_told_at_once() -> None:
    pace: Pace[str] = Pace()
    pace.mark("a", "first")
    assert pace.due(5.0) == [("a", "first")]
    pace.mark("a", "second")
    assert pace.due(5.0 + SECONDS / 2) == []
    pace.mark("b", "other")
    assert pace.due(5.0 + SECONDS / 2) == [("b", "other")]
    assert pace.due(5.0 + SECONDS) == [("a", "second")]


def test_at_the_end_all_is_told() -> None:
    pace: Pace[int] = Pace()
    pace.mark("a", 1)
    assert pace.due(0.0) == [("a", 1)]
    pace.mark("a", 2)
    assert pace.rest() == [("a", 2)]
    assert pace.rest() == []
