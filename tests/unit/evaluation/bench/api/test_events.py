"""What the bench of events counts: markers in whatever pieces they come, and what readers missed."""

from __future__ import annotations

import socket

import pytest

from evaluation.bench.api import events
from evaluation.bench.support.loads.event_clients import Reader

STREAM = b"id: 12\nevent: settings\ndata: {}\n\nid: 13\nevent: job\ndata: {}\n\nid: 20\nevent: gap\ndata: {}\n\n"


@pytest.mark.parametrize("size", [1, 7, 23, 500])
def test_each_marker_is_found_once(size: int) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        reader, found, count = Reader(ours), [], 0
        for start in range(0, len(STREAM), size):
            theirs.sendall(STREAM[start : start + size])
            got, markers = reader.read()
            count += got
            found += markers
    assert found == [(12, b"settings"), (20, b"gap")]
    assert count == len(STREAM)


def test_what_a_reader_missed_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "MARKS", 2)
    found = {"got": {"12": [10, 5.5], "7": [9, 4.25]}, "gaps": 1, "over": 0, "bytes": 100}
    spread = events._spread(found, [4.0, 5.0], 10)
    assert spread.all_ms == (250.0, 500.0)
    assert (spread.missing, spread.gaps, spread.received) == (1, 1, 100)
