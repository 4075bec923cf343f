"""TensorBoard's event files as bytes: what a real writer wrote, however it is cut; and any bytes at all."""

from __future__ import annotations

import os
import struct
import time
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from host_reporter.readers.event_files import tensorboard
from host_reporter.readers.event_files.source import EventSource
from host_reporter.readers.event_files.tensorboard import Records, Scalar, crc32c, scalars
from host_reporter.readers.match_limit import MatchLimit
from host_reporter.readers.parse import Event, Point

# By torch.utils.tensorboard.SummaryWriter of PyTorch 2.13: acc as a simple value, loss and exact as tensors.
WRITTEN = bytes.fromhex(
    "4800000000000000fe92489d09923ac09bc4c0da411a0d627261696e2e4576656e743a32522e0a2c74656e736f72626f6172642e73756d6d61"
    "72792e7772697465722e6576656e745f66696c655f777269746572073fa3d419000000000000008bf10828090000000000448f4010072a0c0a"
    "0a0a03616363150000203fb80d33ce2c00000000000000f4aecc45090000000000448f4010072a1f0a1d0a046c6f7373420808012a04000080"
    "3e4a0b0a090a077363616c6172735bbeafb136000000000000004f578cef0900000000004c8f40108080808080202a240a220a056578616374"
    "420c080232089a9999999999b93f4a0b0a090a077363616c617273462266c2"
)
SCALARS = [Scalar("acc", 7, 1000.5, 0.625), Scalar("loss", 7, 1000.5, 0.25), Scalar("exact", 2**40, 1001.5, 0.1)]


def read(*parts: bytes) -> list[Scalar]:
    records = Records()
    return [scalar for part in parts for record in records.feed(part) for scalar in scalars(record)]


def test_the_checksum_of_rfc_3720() -> None:
    assert crc32c(b"123456789") == 0xE3069283
    assert crc32c(bytes(32)) == 0x8A9136AA


@given(st.lists(st.integers(0, len(WRITTEN)), max_size=8))
def test_what_was_written_is_read_however_it_is_cut(cuts: list[int]) -> None:
    places = [0, *sorted(cuts), len(WRITTEN)]
    assert read(*(WRITTEN[a:b] for a, b in pairwise(places))) == SCALARS


@given(st.integers(0, len(WRITTEN) - 1), st.integers(1, 255))
def test_a_byte_that_is_another_costs_its_record_alone(place: int, change: int) -> None:
    bad = bytearray(WRITTEN)
    bad[place] ^= change
    scalars_read = read(bytes(bad))
    assert [scalar for scalar in SCALARS if scalar in scalars_read] == scalars_read
    assert len(scalars_read) >= len(SCALARS) - 1


@given(st.binary(max_size=200), st.integers(0, len(WRITTEN)))
def test_bytes_between_cost_at_most_the_record_that_they_are_in(noise: bytes, place: int) -> None:
    scalars_read = read(WRITTEN[:place] + noise + WRITTEN[place:])
    assert [scalar for scalar in SCALARS if scalar in scalars_read] == scalars_read
    # What comes after noise is only known when enough of it has come.
    assert len(scalars_read) >= len(SCALARS) - 1


@given(st.binary(max_size=2000))
def test_any_bytes_are_an_event_or_none(data: bytes) -> None:
    list(Records().feed(data))
    try:
        scalars_read = scalars(data)
    except ValueError:
        return
    assert all(isinstance(scalar, Scalar) for scalar in scalars_read)


@given(st.integers(0, len(WRITTEN) - 1), st.integers(0, 255))
def test_a_message_that_is_nearly_right(place: int, byte: int) -> None:
    for record in Records().feed(WRITTEN):
        bad = bytearray(record)
        bad[place % len(bad)] = byte
        try:
            scalars(bytes(bad))
        except ValueError as error:
            assert "field" in str(error) or "number" in str(error)


GARBAGE = {
    "zeros before each byte": b"\0" * 12 + b"\1" * 20,
    "lengths without a checksum": b"\1" + b"\0" * 11,
    "records with another checksum": bytes(8) + struct.pack("<I", tensorboard._masked(bytes(8))) + b"\1" * 4,
    "zeros alone": bytes(64),
    "no zeros": b"\1" * 64,
}


def seconds_of(garbage: bytes, size: int) -> tuple[float, Records, float]:
    """Returns the processor time that so many bytes take, their reader, and the longest time without a pause."""
    records = Records()
    began = before = time.thread_time()
    longest = 0.0
    for record in records.feed(garbage * (size // len(garbage))):
        assert record == b"", "nothing in it is a record"
        now = time.thread_time()
        longest, before = max(longest, now - before), now
    end = time.thread_time()
    return end - began, records, max(longest, end - before)


@pytest.mark.parametrize("what", GARBAGE)
@pytest.mark.usefixtures("frozen_heap")
def test_garbage_costs_time_in_proportion_and_leaves_pauses(what: str) -> None:
    quarter, records, longest = seconds_of(GARBAGE[what], 2**18)
    whole, records, longest = seconds_of(GARBAGE[what], 2**20)
    # What grows with the square takes sixteen times as long.
    assert whole < 10 * quarter + 0.1
    assert longest < whole / 10 + 0.1, "who reads may look at the clock in between"
    assert records.damaged == 1
    assert [scalar for record in records.feed(WRITTEN * 2) for scalar in scalars(record)][-3:] == SCALARS


def test_a_folder_that_is_as_it_was_is_not_listed_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "events.out.tfevents.1.h").write_bytes(WRITTEN)
    os.utime(tmp_path, (1e9, 1e9))
    source = EventSource(tmp_path, "acc")
    source.aim()
    listed = []
    real = os.scandir
    monkeypatch.setattr(os, "scandir", lambda path: listed.append(path) or real(path))
    for _ in range(5):
        source.aim()
    assert listed == []
    (tmp_path / "events.out.tfevents.2.h").write_bytes(WRITTEN)
    source.aim()
    assert len(listed) == 1
    scalars_read: list[Event] = []
    while (news := source.poll(MatchLimit()))[1] or news[0]:
        scalars_read += news[0]
    assert len(scalars_read) == 2
    source.close()


@pytest.mark.parametrize("name", ["events.out.tfevents.1.h", "sub/events.out.tfevents.1.h", "other"])
def test_a_folder(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(WRITTEN)
    source = EventSource(tmp_path, "acc")
    scalars_read, _ = source.poll(MatchLimit())
    if name.startswith("events"):
        assert scalars_read == [Point(7.0, 0.625, 1000.5)]
        assert source.problem() is None
        source.aim()
        while source.poll(MatchLimit())[1]:
            pass
        assert source.is_there
        assert source.modified is not None
    else:
        assert scalars_read == []
        assert "no event file" in str(source.problem())
    source.close()


def test_a_folder_that_may_not_be_looked_into(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    source = EventSource(tmp_path / "file", "acc")
    assert source.poll(MatchLimit()) == ([], False)
    assert "Not a directory" in str(source.problem())
