"""The ring of events against a list of all events: what readers get, what they are told to have missed, and memory."""

from __future__ import annotations

import json

from hypothesis import given, settings
from hypothesis import strategies as st

from controller.events.ring import Ring

FIRST = 1000


@settings(max_examples=200, deadline=None)
@given(
    sizes=st.lists(st.integers(0, 400), max_size=60),
    most=st.integers(1, 20),
    most_bytes=st.integers(1, 4000),
    last=st.integers(0, FIRST + 80),
    together=st.integers(1, 2000),
)
def test_a_reader_gets_each_event_once_and_in_order_or_is_told_that_it_missed_it(
    sizes: list[int], most: int, most_bytes: int, last: int, together: int
) -> None:
    ring = Ring(FIRST, most=most, most_bytes=most_bytes)
    added = [ring.add("job", 1.5, {"text": "x" * size}) for size in sizes]
    newest = FIRST + len(sizes) - 1
    assert ring.newest == newest
    assert len(ring) <= most
    assert ring.bytes <= most_bytes or len(ring) == 1
    got: list[int] = []
    missed: list[int] = []
    have = last
    while True:
        batch = ring.after(have, together=together)
        if batch.missed is not None:
            missed += range(batch.missed.first, batch.missed.last + 1)
        for event in batch.events:
            assert event is added[event.id - FIRST]
            got.append(event.id)
        if batch.last == have:
            break
        assert batch.last > have or last > newest
        have = batch.last
    assert have == newest
    if last <= newest:
        assert missed + got == list(range(last + 1, newest + 1))
        assert got == list(range(FIRST, newest + 1))[-len(got) :] if got else True
    else:
        assert missed == list(range(FIRST, newest + 1)), "an id of no event of this run"
        assert not got


@given(st.lists(st.integers(0, 5), max_size=30), st.integers(1, 300))
def test_events_come_together_as_far_as_they_are_small(sizes: list[int], together: int) -> None:
    ring = Ring(FIRST)
    for size in sizes:
        ring.add("host", 0.0, {"text": "x" * size})
    batch = ring.after(FIRST - 1, together=together)
    assert len(batch.events) >= min(len(sizes), 1)
    assert sum(len(event.sent) for event in batch.events[:-1]) < together


@given(st.dictionaries(st.text(max_size=8), st.text() | st.integers() | st.none(), max_size=5), st.floats(0, 1e10))
def test_an_event_is_one_line_of_json_and_one_block_of_the_stream(data: dict[str, object], time: float) -> None:
    event = Ring(FIRST).add("audit", time, data)
    assert json.loads(event.line) == {"id": FIRST, "event": "audit", "time": round(time, 3), "data": data}
    assert event.data == data
    assert event.sent == b"id: %d\nevent: audit\ndata: %s\n\n" % (FIRST, event.line)
    assert b"\n" not in event.line and b"\r" not in event.line
