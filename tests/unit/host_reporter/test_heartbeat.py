"""The file that shows that the agent does not hang."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import pytest

from evaluation.bench.support.waiting import wait_until
from host_reporter.heartbeat import BEAT_SECONDS, Heartbeat
from host_reporter.notices import Notices
from tests.support.agent.followed_jobs import World

OLD = 1_000_000.0


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def heartbeat(file: Path | None, clock: Clock) -> Heartbeat:
    return Heartbeat(file, Notices(logging.getLogger("test")), clock=clock, sleep=clock.sleep)


def test_the_file_is_touched_now_and_then(tmp_path: Path) -> None:
    file, clock = tmp_path / "alive", Clock()
    beating = heartbeat(file, clock)
    beating.beat()
    os.utime(file, (OLD, OLD))
    clock.now += BEAT_SECONDS - 0.1
    beating.beat()
    assert file.stat().st_mtime == OLD, "a loop may turn a thousand times a second"
    clock.now += 0.1
    beating.beat()
    assert file.stat().st_mtime > OLD
    assert file.read_bytes() == b""


def test_it_beats_while_it_sleeps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock, beats = Clock(), []
    beating = heartbeat(tmp_path / "alive", clock)
    monkeypatch.setattr(os, "utime", lambda _descriptor: beats.append(clock.now))
    beating.sleep(61.0)
    assert clock.now == 161.0
    assert beats == [100.0 + BEAT_SECONDS * n for n in range(13)]


def test_without_a_file_nothing_is_written(tmp_path: Path) -> None:
    heartbeat(None, Clock()).beat()
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_cannot_be_touched_is_said_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "alive").symlink_to(tmp_path / "other")
    clock = Clock()
    beating = heartbeat(tmp_path / "alive", clock)
    with caplog.at_level(logging.WARNING):
        beating.sleep(60.0)
    assert len(caplog.records) == 1 and "alive cannot be touched" in caplog.text
    assert not (tmp_path / "other").exists(), "a link is not followed"


def test_the_followers_loop_beats(tmp_path: Path) -> None:
    beats: list[None] = []
    world = World(tmp_path, beat=lambda: beats.append(None))
    world.start()
    try:
        wait_until(lambda: len(beats) > 2, 20, what="turns of the loop")
    finally:
        world.stop()
