"""Server-sent events out of lines, and lines out of bytes as they come."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from controller.events.event import Gap, alive, event
from controller.wire.event_stream import Sent, lines, sent_events

STREAM = (
    alive(4)
    + event(5, "host", 1.0, {"name": "h1"}).sent
    + event(6, "problem", 2.0, {"problem": "a\nb: c \u2028 d"}).sent
    + Gap(7, 9).sent(3.0)
)


@given(st.lists(st.integers(1, 60), max_size=30))
def test_events_are_the_same_in_whatever_pieces_they_come(sizes: list[int]) -> None:
    rest, left = STREAM, list(sizes)

    def read(most: int) -> bytes:
        nonlocal rest
        size = min(left.pop(), most) if left else most
        piece, rest = rest[:size], rest[size:]
        return piece

    heartbeat, host, problem, gap = sent_events(lines(read))
    assert heartbeat == Sent("4", None)
    assert host == Sent("5", '{"id":5,"event":"host","time":1.0,"data":{"name":"h1"}}')
    assert (problem.last, gap.last) == ("6", "9")
    assert problem.data is not None and '"a\\nb: c \\u2028 d"' in problem.data
    assert gap.data == '{"id":9,"event":"gap","time":3.0,"data":{"first":7,"last":9}}'


def test_what_other_servers_may_send() -> None:
    sent = [b"data: a\r\n", b"data:b\r\n", b"retry: 5\r\n", b"other\r\n", b"\r\n", b"id: 3", b"", b"data: x"]
    assert list(sent_events(sent)) == [Sent("", "a\nb"), Sent("3", None)], "the last one is not finished"
