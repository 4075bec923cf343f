"""Progress out of bytes: however the stream is split, whatever it holds."""

from __future__ import annotations

import itertools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.wire import JobSpec, ProgressPoint
from host_reporter.readers.parse import (
    MAX_LINE_BYTES,
    Event,
    Lines,
    Point,
    Targeted,
    json_parser,
)


def _cut(data: bytes, places: list[int]) -> list[bytes]:
    ends = sorted({place % (len(data) + 1) for place in places} | {0, len(data)})
    return [data[a:b] for a, b in itertools.pairwise(ends)]


_lines = st.lists(
    st.one_of(
        st.binary(max_size=30),
        st.sampled_from([b"iteration 12 accuracy 0.5\n", b"\r", b"\r\n", b"\n\n", b'{"ended": true}\n', b"\xff\xfe\n"]),
        st.integers(MAX_LINE_BYTES - 2, MAX_LINE_BYTES + 2).map(lambda n: b"x" * n),
    ),
    max_size=12,
).map(b"".join)


@given(data=_lines, places=st.lists(st.integers(0, 2**20), max_size=8))
def test_any_split_of_the_stream_gives_the_same_lines(data: bytes, places: list[int]) -> None:
    at_once, lines = Lines(), Lines()
    whole = list(at_once.feed(data))
    assert [line for piece in _cut(data, places) for line in lines.feed(piece)] == whole
    assert lines.dropped == at_once.dropped
    assert all(len(line.encode()) <= 3 * MAX_LINE_BYTES for line in whole)


def test_nuls_and_a_mark_of_utf8_are_left_out() -> None:
    assert list(Lines().feed(b"\0\0\0\xef\xbb\xbfone\0\ntwo\n")) == ["one", "two"]


def test_an_unfinished_line_can_be_seen_and_stays() -> None:
    lines = Lines()
    assert list(lines.feed(b"one\ntw")) == ["one"]
    assert lines.unfinished() == "tw"
    assert list(lines.feed(b"o\n")) == ["two"]
    assert lines.unfinished() is None


def test_lines_without_end_take_no_memory_and_are_dropped() -> None:
    lines = Lines()
    for _ in range(100):
        assert list(lines.feed(b"y" * MAX_LINE_BYTES)) == []
    assert len(lines._rest) <= MAX_LINE_BYTES
    assert list(lines.feed(b"tail of it\nnext\n")) == ["next"]


def _sound(event: Event | None) -> None:
    if isinstance(event, Point):
        ProgressPoint(iteration=event.iteration, metric=event.metric, time=event.time or 0.0)
    if isinstance(event, Targeted):
        JobSpec(target=event.target)


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9) | st.just(10**400),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["iteration", "metric", "time", "ended", "loss", "target", "diverged"]), inner, max_size=4
        )
    ),
    max_leaves=6,
)


@given(_json)
def test_no_record_of_a_progress_file_raises_and_none_goes_beyond_the_wire(value: object) -> None:
    _sound(json_parser(json.dumps(value)))


@pytest.mark.parametrize("line", ["", "{", "[" * 100_000, "null", "12", '{"iteration": true}', '{"iteration": -1}'])
def test_a_record_that_is_none(line: str) -> None:
    assert json_parser(line) is None
