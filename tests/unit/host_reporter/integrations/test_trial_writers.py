"""Who writes trials' progress: files, threads and descriptors that come and go, and ranks that are silent."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest

from evaluation.bench.support.waiting import wait_until
from host_reporter import ProgressFile
from host_reporter.integrations.meter import Meter
from host_reporter.integrations.trial_files import TrialFiles
from tests.support.own_resources import open_below, threads_named


def test_trial_files_come_go_and_are_tidied_up(tmp_path: Path) -> None:
    files = TrialFiles("my study", tmp_path, kept_seconds=0.0)
    first = files.begin("a.b")
    assert first is not None
    assert first is files.begin("a.b")
    first.report(iteration=1)
    files.end("a.b")
    assert [path.name for path in tmp_path.iterdir()] == ["my-study.a-b.jsonl"]
    second = files.begin("c")
    assert second is not None
    second.report(iteration=1)
    files.end_all()
    assert [path.name for path in tmp_path.iterdir()] == ["my-study.c.jsonl"]


def test_a_study_without_a_name_tells_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.delenv("TRAINYARD_JOB", raising=False)
    files = TrialFiles(None, tmp_path)
    assert files.begin("a") is None
    files.end("a")
    assert "give the study a name" in caplog.text
    assert TrialFiles("x", object()).begin("a") is None  # type: ignore[arg-type]  # what a script may hand over


def test_a_thread_and_a_descriptor_are_given_back_at_the_end(tmp_path: Path) -> None:
    earlier = set(threads_named("trainyard progress"))
    files = [ProgressFile(f"j{number}", tmp_path) for number in range(20)]
    files[0].report(iteration=0)
    wait_until(lambda: open_below(tmp_path))
    for _ in range(3):
        for file in files:
            file.report(iteration=1)
            file.end()
            file.report(iteration=2)
            file.end()
    wait_until(lambda: not set(threads_named("trainyard progress")) - earlier)
    assert not open_below(tmp_path)
    for file in files:
        assert file.dropped == 0
        assert len(Path(file.path).read_text().splitlines()) == 12 + (file is files[0])


def test_no_record_is_lost_between_an_end_and_the_next_beginning(tmp_path: Path) -> None:
    """Several threads that end and begin at once."""
    file = ProgressFile("a", tmp_path)

    def run() -> None:
        for number in range(300):
            file._put({"time": 1.0, "ended": True})
            file.report(iteration=number)

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    path = Path(file.path)
    wait_until(lambda: path.exists() and len(path.read_text().splitlines()) == 2400)
    assert file.dropped == 0


def test_a_meter_thins_steps_and_keeps_metrics(tmp_path: Path) -> None:
    meter = Meter("a", tmp_path)
    for step in range(1, 1001):
        meter.step(step)
    meter.measured(1000, 0.5)
    for step in range(1001, 1004):
        meter.step(step)
    meter.end()
    records = [json.loads(line) for line in (tmp_path / "a.jsonl").read_text().splitlines()]
    iterations = [record["iteration"] for record in records if "iteration" in record]
    assert len(iterations) < 50
    assert iterations[-1] == 1003, "the last one is told"
    assert [record["metric"] for record in records if "metric" in record] == [0.5]
    assert records[-1]["ended"] is True


def test_other_ranks_are_silent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    for meter in (Meter("a", tmp_path), Meter(None, tmp_path)):
        meter.step(1)
        meter.measured(1, 0.5)
        meter.end()
    assert list(tmp_path.iterdir()) == []


def test_a_training_that_may_be_started_again_is_not_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHELASTIC_MAX_RESTARTS", "1")
    monkeypatch.setenv("TORCHELASTIC_RESTART_COUNT", "0")
    meter = Meter("a", tmp_path)
    meter.step(1)
    meter.end(failed=True)
    assert "ended" not in (tmp_path / "a.jsonl").read_text()
    meter.end()
    assert "ended" in (tmp_path / "a.jsonl").read_text()
