"""Event files that real writers wrote, read by the agent's own reader."""

from __future__ import annotations

import os
import random
import struct
from pathlib import Path

import numpy as np
import pytest
import tensorboardX
from tensorboard.compat.tensorflow_stub.pywrap_tensorflow import crc32c as their_crc32c
from tensorboard.compat.tensorflow_stub.pywrap_tensorflow import masked_crc32c
from torch.utils.tensorboard import SummaryWriter

from host_reporter.readers.event_files import source as tensorboard_source
from host_reporter.readers.event_files.source import EventSource
from host_reporter.readers.event_files.tensorboard import MAX_RECORD_BYTES, Records, Scalar, crc32c, scalars
from host_reporter.readers.match_limit import MatchLimit
from host_reporter.readers.parse import Event, Point
from tests.support.frameworks.running_agent import Yard
from tests.support.own_resources import open_below


def read(source: EventSource) -> list[Event]:
    """All that is there now."""
    found: list[Event] = []
    source._listed_at = float("-inf")
    while True:
        events, more = source.poll(MatchLimit())
        found += events
        if not more:
            return found


def steps(events: list[Event]) -> list[float]:
    return [event.iteration for event in events if isinstance(event, Point)]


def whole(content: bytes) -> list[Scalar]:
    return [scalar for record in Records().feed(content) for scalar in scalars(record)]


def write(folder: Path, count: int, begin: int = 0, **options: object) -> None:
    with SummaryWriter(str(folder), **options) as writer:
        for step in range(begin, begin + count):
            writer.add_scalar("loss", 1.0 / (step + 1), step)
            writer.add_scalar("val/accuracy", step / 100, step)


def only(folder: Path) -> Path:
    (path,) = folder.glob("*tfevents*")
    return path


@pytest.mark.parametrize("data", [b"", b"123456789", bytes(range(256)) * 5])
def test_the_checksum_is_theirs(data: bytes) -> None:
    assert crc32c(data) == their_crc32c(data)
    header = struct.pack("<Q", len(data))
    record = header + struct.pack("<I", masked_crc32c(header)) + data + struct.pack("<I", masked_crc32c(data))
    assert list(Records().feed(record)) == [data]


@pytest.mark.parametrize("style", ["simple", "tensor", "double", "tensorboardX"])
def test_scalars_of_each_writer_and_style(tmp_path: Path, style: str) -> None:
    if style == "tensorboardX":
        with tensorboardX.SummaryWriter(str(tmp_path)) as writer:
            writer.add_scalar("acc", 0.625, 7, walltime=1000.5)
            writer.add_text("note", "none of our business", 7)
    else:
        with SummaryWriter(str(tmp_path)) as writer:
            writer.add_scalar(
                "acc", 0.625, 7, walltime=1000.5, new_style=style != "simple", double_precision=style == "double"
            )
            writer.add_text("note", "none of our business", 7)
            writer.add_histogram("weights", np.arange(100.0), 7)
            writer.add_image("picture", np.zeros((3, 200, 200)), 7)
    assert read(EventSource(tmp_path, "acc")) == [Point(7.0, 0.625, 1000.5)]


def test_without_a_tag_each_step_is_one(tmp_path: Path) -> None:
    write(tmp_path, 5)
    found = read(EventSource(tmp_path, None))
    assert steps(found) == [0, 1, 2, 3, 4]
    assert all(isinstance(event, Point) and event.metric is None for event in found)


def test_a_file_that_grows_and_the_next_one(tmp_path: Path) -> None:
    source = EventSource(tmp_path / "runs", "loss")
    assert read(source) == []
    assert "not there yet" in str(source.problem())
    first = SummaryWriter(str(tmp_path / "runs"), filename_suffix=".a")
    first.add_scalar("loss", 0.5, 1)
    first.flush()
    assert steps(read(source)) == [1]
    assert source.problem() is None
    # Another process has begun the next file while this one still writes.
    second = SummaryWriter(str(tmp_path / "runs"), filename_suffix=".b")
    second.add_scalar("loss", 0.4, 2)
    second.flush()
    assert steps(read(source)) == [2]
    first.add_scalar("loss", 0.3, 3)
    first.close()
    second.close()
    assert steps(read(source)) == [3]
    source.close()


def test_many_files_are_read_and_few_are_kept_open(tmp_path: Path) -> None:
    for number in range(20):
        write(tmp_path, 1, begin=number, filename_suffix=f".{number:02}")
    source = EventSource(tmp_path, "loss")
    assert sorted(steps(read(source))) == list(range(20))
    assert len(open_below(tmp_path)) <= tensorboard_source.MAX_OPEN
    source.close()
    assert not open_below(tmp_path)


def test_half_a_record_waits_for_its_other_half(tmp_path: Path) -> None:
    write(tmp_path / "whole", 3)
    content = only(tmp_path / "whole").read_bytes()
    for cut in range(0, len(content), 7):
        records = Records()
        parts = [*records.feed(content[:cut]), *records.feed(content[cut:])]
        assert [s.step for r in parts for s in scalars(r) if s.tag == "loss"] == [0, 1, 2]
        assert records.damaged == 0


def test_truncation_begins_anew(tmp_path: Path) -> None:
    write(tmp_path, 50)
    path = only(tmp_path)
    source = EventSource(tmp_path, "loss")
    assert len(read(source)) == 50
    write(tmp_path / "other", 2, begin=7)
    path.write_bytes(only(tmp_path / "other").read_bytes())
    assert steps(read(source)) == [7, 8]


@pytest.mark.parametrize("damage", ["byte", "zeros", "noise", "torn", "appended"])
def test_damage_costs_what_it_hit_and_is_said(tmp_path: Path, damage: str) -> None:
    write(tmp_path, 100)
    path = only(tmp_path)
    content = path.read_bytes()
    noise = random.Random(1).randbytes
    middle = len(content) // 2
    bad = {
        "byte": content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :],
        "zeros": content[:middle] + bytes(5000) + content[middle:],
        "noise": content[:middle] + noise(5000) + content[middle:],
        "torn": content[:middle] + content[middle + 40 :],
        "appended": content + noise(5000),
    }[damage]
    path.write_bytes(bad)
    source = EventSource(tmp_path, "loss")
    found = steps(read(source))
    assert len(found) >= 97
    assert found == sorted(set(found))
    assert "damaged" in str(source.problem())


def test_what_is_no_event_file_at_all(tmp_path: Path) -> None:
    (tmp_path / "events.out.tfevents.1.noise").write_bytes(random.Random(2).randbytes(200_000))
    (tmp_path / "events.out.tfevents.2.zeros").write_bytes(bytes(3_000_000))
    (tmp_path / "events.out.tfevents.3.text").write_text("hello\n" * 1000)
    os.mkfifo(tmp_path / "events.out.tfevents.4.pipe")
    (tmp_path / "secret").write_text("x")
    (tmp_path / "events.out.tfevents.5.link").symlink_to("secret")
    (tmp_path / "events.out.tfevents.6.folder").mkdir()
    write(tmp_path, 3)
    source = EventSource(tmp_path, "loss")
    assert steps(read(source)) == [0, 1, 2]
    assert source.problem() is not None
    source.close()


def test_a_record_with_a_right_checksum_and_nonsense_in_it_is_refused() -> None:
    for data in (b"\x0b", b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", b"\x2a\x05\x0a", b"\x10" + b"\xff" * 10):
        with pytest.raises(ValueError, match=r"field|number"):
            scalars(data)


def test_a_long_record_is_passed_over_unread(tmp_path: Path) -> None:
    with SummaryWriter(str(tmp_path)) as writer:
        writer.add_text("long", "word " * 100_000, 0)
        writer.add_scalar("loss", 0.5, 1)
    assert only(tmp_path).stat().st_size > 4 * MAX_RECORD_BYTES
    source = EventSource(tmp_path, "loss")
    assert steps(read(source)) == [1]
    assert source.problem() is None


def test_a_wrong_tag_is_said_with_the_right_ones(tmp_path: Path) -> None:
    write(tmp_path, 60)
    source = EventSource(tmp_path, "accuracy")
    assert read(source) == []
    assert "called accuracy; there are loss, val/accuracy" in str(source.problem())


def test_a_job_whose_progress_is_in_event_files(yard: Yard, tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    yard.job("board", 5110, progress={"tensorboard": str(runs), "tag": "val/accuracy"})
    writer = SummaryWriter(str(runs))
    for step in range(1, 30):
        writer.add_scalar("loss", 1.0 / step, step)
        writer.add_scalar("val/accuracy", step / 100, step)
    writer.flush()
    yard.wait(lambda: yard.state("board")["iterations_done"] == 29)
    assert yard.state("board")["last_metric"] == pytest.approx(0.29)
    writer.add_scalar("val/accuracy", 0.5, 40)
    writer.close()
    yard.wait(lambda: yard.state("board")["iterations_done"] == 40)
    write(runs, 1, begin=41)
    yard.wait(lambda: yard.state("board")["iterations_done"] == 41)
