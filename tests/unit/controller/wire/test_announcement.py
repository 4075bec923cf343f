"""The frame by which a host announces itself: what is read of it, and that nothing else is taken for one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.wire.announcement import ETH_LLDP, MOST_BYTES, NEAREST_BRIDGE, Announcement, frame_of, parse

ANNOUNCED = Announcement("02:00:00:00:00:07", "0123456789abcdef" * 2)
FRAME = frame_of(ANNOUNCED, "h7")


def test_what_was_announced_is_read_back() -> None:
    assert parse(FRAME) == ANNOUNCED
    assert parse(FRAME + bytes(40)) == ANNOUNCED, "short frames are filled up with zeros on their way"
    assert len(frame_of(ANNOUNCED, "h" * 63)) <= MOST_BYTES


def test_it_is_an_lldp_frame_that_no_bridge_forwards() -> None:
    assert FRAME.startswith(NEAREST_BRIDGE)
    assert int.from_bytes(FRAME[12:14], "big") == ETH_LLDP
    # The three TLVs that each frame begins with (IEEE 802.1AB-2016, 8.2), in their order.
    assert FRAME[14:17] == bytes([1 << 1, 7, 4])
    assert FRAME[23:26] == bytes([2 << 1, 7, 3])
    assert FRAME[32:36] == bytes([3 << 1, 2, 0, 120])


@pytest.mark.parametrize(
    "frame",
    [
        b"",
        FRAME[:20],
        FRAME[:-10],
        FRAME[:12] + b"\x08\x00" + FRAME[14:],
        FRAME.replace(b"trainyard ", b"other one "),
        FRAME.replace(b"0123456789abcdef" * 2, b"0123456789ABCDEF" * 2),
        FRAME[:14] + bytes(2) + FRAME[14:],
        FRAME + bytes(MOST_BYTES),
    ],
)
def test_everything_else_announces_nobody(frame: bytes) -> None:
    assert parse(frame) is None


@given(st.binary(max_size=300), st.integers(0, len(FRAME)))
def test_no_bytes_are_a_fault(noise: bytes, cut: int) -> None:
    for frame in (noise, FRAME[:cut] + noise):
        found = parse(frame)
        assert found is None or len(found.secret) == 32
