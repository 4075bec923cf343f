"""What a job file says of where progress is becomes a source that reads it."""

from __future__ import annotations

import json
import pwd
from pathlib import Path

import pytest

from host_reporter.formats.events import Described, Ended, Event, Point
from host_reporter.jobs.job_file import JobFile, read_job_file
from host_reporter.jobs.progress_spec import resolved
from tests.support.agent.sources import events

LOG = """epoch 1/2 step 5/10 loss 0.9 acc 0.1
epoch 1/2 step 10/10 loss 0.8 acc 0.2
epoch 2/2 step 5/10 loss 0.7 acc 0.3
"""


def job(folder: Path, progress: dict[str, object], **spec: object) -> JobFile:
    return read_job_file(folder / "a.json", json.dumps({"id": "a", "spec": spec, "progress": progress}), folder)


def read(folder: Path, progress: dict[str, object], **spec: object) -> list[Event]:
    return events(job(folder, progress, **spec).source())


def points(found: list[Event]) -> list[tuple[float, float | None]]:
    return [(event.iteration, event.metric) for event in found if isinstance(event, Point)]


def last(found: list[Event]) -> Described:
    return [event for event in found if isinstance(event, Described)][-1]


def test_a_log_alone_is_enough(tmp_path: Path) -> None:
    (tmp_path / "train.log").write_text(LOG)
    found = read(tmp_path, {"log": "train.log"})
    assert points(found) == [(5, 0.9), (10, 0.8), (15, 0.7)]
    assert (last(found).metric, last(found).direction, last(found).iterations) == ("loss", "min", 20)


def test_the_metric_of_the_progress_or_else_of_the_spec(tmp_path: Path) -> None:
    (tmp_path / "train.log").write_text(LOG)
    assert points(read(tmp_path, {"log": "train.log", "metric": "acc"}))[0] == (5, 0.1)
    assert points(read(tmp_path, {"log": "train.log"}, metric={"name": "acc", "direction": "max"}))[0] == (5, 0.1)
    source = job(tmp_path, {"log": "train.log"}, metric={"name": "bleu"}).source()
    assert points(events(source)) == [(5, None), (10, None), (15, None)]
    assert "no line has the metric bleu; there are loss, acc" in str(source.problem())


def test_a_pattern_with_epochs_and_an_end(tmp_path: Path) -> None:
    (tmp_path / "x.log").write_text("E3 5of10 q 0.9\nE4 5of10 q 0.8\nbye\n")
    pattern = r"E(?P<epoch>\d+) (?P<step>\d+)of(?P<of>\d+) q (?P<metric>\S+)"
    found = read(tmp_path, {"log": "x.log", "pattern": pattern, "end_pattern": "^bye", "direction": "max"})
    assert points(found) == [(5, 0.9), (15, 0.8)]
    assert found[-1] == Ended()


def test_a_format_by_name(tmp_path: Path) -> None:
    (tmp_path / "train.log").write_text(" iteration 5/ 10 | lm loss: 0.5 |\n")
    found = read(tmp_path, {"log": "train.log", "format": "megatron-lm"})
    assert points(found) == [(5, 0.5)]
    assert (last(found).preset, last(found).is_guess) == ("megatron-lm", False)


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_fields_by_name(tmp_path: Path, kind: str) -> None:
    rows = [{"n": 5, "quality": 0.5}, {"n": 6, "quality": 0.6}]
    text = "n,quality\n5,0.5\n6,0.6\n" if kind == "csv" else "".join(json.dumps(row) + "\n" for row in rows)
    (tmp_path / "file").write_text(text)
    fields = {"iteration": "n", "metric": "quality"}
    assert points(read(tmp_path, {kind: "file", "fields": fields, "direction": "max"})) == [(5, 0.5), (6, 0.6)]


def test_csv_without_fields_is_recognised(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("epoch,val_loss\n1,0.5\n")
    assert points(read(tmp_path, {"csv": "file"})) == [(1, 0.5)]


def test_the_metric_from_another_file(tmp_path: Path) -> None:
    (tmp_path / "steps").write_text("step 10\nstep 20\n")
    (tmp_path / "eval.csv").write_text("epoch,val_acc\n1,0.5\n")
    found = read(tmp_path, {"log": "steps", "metric_from": {"csv": "eval.csv"}})
    assert points(found) == [(10, 0.5), (20, None)]
    assert (last(found).metric, last(found).direction) == ("val_acc", "max")


def test_the_newest_of_several_files(tmp_path: Path) -> None:
    (tmp_path / "run-1").mkdir()
    (tmp_path / "run-1" / "log").write_text("tick 5\n")
    assert points(read(tmp_path, {"log": "run-*/log", "pattern": r"tick (?P<step>\d+)"})) == [(5, None)]
    source = job(tmp_path, {"log": "other-*/log"}).source()
    assert events(source) == []
    assert source.problem() == f"{tmp_path}/other-*/log: not there yet"


def test_the_home_of_the_owner_of_the_job_file(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.touch()
    home = Path(pwd.getpwuid(file.stat().st_uid).pw_dir)
    assert resolved(file, "~/train.log") == home / "train.log"
    assert resolved(file, "train.log") == tmp_path / "train.log"
    assert resolved(file, "/x/train.log") == Path("/x/train.log")
    name = pwd.getpwuid(file.stat().st_uid).pw_name
    assert resolved(file, f"~{name}/train.log") == home / "train.log"
