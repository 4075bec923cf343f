"""Sources by what their file is: text, CSV, JSON lines, documents, wildcards, and files that cannot be read."""

from __future__ import annotations

import gzip
import json
import os
import time
from datetime import datetime
from pathlib import Path

import pytest

from host_reporter.formats.events import Ended, Point
from host_reporter.formats.outputs.advice import suggestion
from host_reporter.formats.outputs.line_reader import Declared
from host_reporter.formats.outputs.records import TableReader
from host_reporter.formats.preset import Fields
from host_reporter.readers.auto import Wish, auto_source, kind_of
from host_reporter.readers.log_source import TOO_LONG, Source
from host_reporter.readers.tail import Tail
from tests.support.agent.sources import at, events, points

LOG = "step 10 loss 0.9\nstep 20 loss 0.8\nstep 30 loss 0.7\n"


def test_a_log(tmp_path: Path) -> None:
    (tmp_path / "log").write_text(LOG)
    assert points(auto_source(at(tmp_path / "log"))) == [(10, 0.9), (20, 0.8), (30, 0.7)]


def test_a_file_that_comes_later_is_what_it_turns_out_to_be(tmp_path: Path) -> None:
    path = tmp_path / "trainer_state.json"
    source = auto_source(at(path))
    assert points(source) == []
    assert source.problem() == f"{path}: not there yet"
    path.write_text(json.dumps({"max_steps": 9, "log_history": [{"step": 3, "loss": 0.5}]}))
    source.aim()
    assert points(source) == [(3, 0.5)]


def test_a_last_line_without_an_end_is_read_when_the_file_is_silent(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text(LOG + "step 4")
    source = Source(Tail(path), _reader(path), unfinished_seconds=0.2)
    assert points(source, rest=False)[-1] == (30, 0.7)
    with path.open("a") as log:
        log.write("0 loss 0.6")
    assert points(source, rest=False) == []
    time.sleep(0.25)
    assert points(source, rest=False) == [(40, 0.6)]
    assert points(source, rest=False) == [], "once"
    with path.open("a") as log:
        log.write("5\nstep 50 loss 0.5\n")
    assert points(source, rest=False)[-1] == (50, 0.5)


def _reader(path: Path):
    source = auto_source(at(path))
    assert isinstance(source, Source)
    source.close()
    return source.reader


@pytest.mark.usefixtures("frozen_heap")
def test_a_hole_at_the_begin_is_skipped(tmp_path: Path) -> None:
    path = tmp_path / "log"
    with path.open("wb") as log:
        log.seek(50 * 2**20)
        log.write(b"\nstep 10 loss 0.9\nstep 20 loss 0.8\nstep 30 loss 0.7\n")
    began = time.thread_time()
    source = auto_source(at(path))
    assert points(source) == [(10, 0.9), (20, 0.8), (30, 0.7)]
    assert time.thread_time() - began < 1.0


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (gzip.compress(LOG.encode(), mtime=0), "compressed (gzip)"),
        (LOG.encode("utf-16"), "UTF-16"),
        (LOG.encode("utf-32"), "UTF-32"),
        (LOG.encode("utf-16-le"), "UTF-16"),
        (b"SQLite format 3\0" + bytes(100), "SQLite"),
    ],
)
def test_what_cannot_be_read_is_said_at_once(tmp_path: Path, data: bytes, words: str) -> None:
    (tmp_path / "log").write_bytes(data)
    source = auto_source(at(tmp_path / "log"))
    assert events(source) == []
    assert words in str(source.problem())


def test_lines_that_say_nothing_are_said_by_number_or_by_time(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text("my secret\n" * 99)
    source = Source(Tail(path), _reader(path), silent_seconds=0.3)
    events(source)
    assert source.problem() is None
    time.sleep(0.35)
    problem = source.problem()
    assert problem is not None and "no line so far matches a known format" in problem
    assert "secret" not in problem, "a line may hold a secret"
    assert source.samples[0] == "my secret"
    other = Source(Tail(path), _reader(path))
    with path.open("a") as log:
        log.write("one more\n")
    events(other)
    assert other.problem() == problem


def test_a_new_file_in_the_place_of_the_old_one_is_a_new_run(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text(LOG)
    source = auto_source(at(path))
    events(source)
    (tmp_path / "new").write_text("step 10 loss 0.95\nstep 20 loss 0.85\n")
    (tmp_path / "new").rename(path)
    found = events(source)
    assert isinstance(found[0], Ended)
    assert [e.iteration for e in found if isinstance(e, Point)] == [10, 20]


def test_the_newest_file_of_a_pattern(tmp_path: Path) -> None:
    for name, age in (("run-1", 100), ("run-2", 50)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "log").write_text(LOG if name == "run-2" else "step 1 loss 5\n" * 3)
        os.utime(tmp_path / name / "log", (time.time() - age,) * 2)
    source = auto_source(at(tmp_path / "run-*" / "log"))
    source.aim()
    assert points(source) == [(10, 0.9), (20, 0.8), (30, 0.7)]
    (tmp_path / "run-3").mkdir()
    (tmp_path / "run-3" / "log").write_text("step 40 loss 0.6\n")
    source.aim()
    assert points(source) == [(40, 0.6)]


def test_csv_by_its_header_which_is_read_again_when_the_file_is_written_anew(tmp_path: Path) -> None:
    path = tmp_path / "metrics.csv"
    path.write_text("epoch,step,train_loss\n0,9,2.5\n0,19,2.0\n")
    source = auto_source(at(path))
    assert points(source) == [(10, 2.5), (20, 2.0)]
    path.write_text("epoch,step,train_loss,val_loss\n0,9,2.5,\n0,19,2.0,\n0,19,,2.2\n1,29,1.5,\n")
    found = events(source)
    assert [(e.iteration, e.metric) for e in found if isinstance(e, Point)] == [(20, 2.2), (30, None)]
    assert not any(isinstance(e, Ended) for e in found), "it is the same run"


def test_csv_with_another_separator_and_numbers_as_people_write_them(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("# made by hand\nEpoch; Acc\n1; 85,3%\n2; 86,1%\n")
    assert points(auto_source(at(path))) == [(1, 85.3), (2, 86.1)]


def test_declared_fields_of_csv(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("n,q,t\n5,0.5,1714564800\n6,0.6,1714564801\n")
    reader = TableReader({}, Declared(direction="max"), Fields(iteration="n", metrics=("q",), time="t"))
    assert [e for e in events(Source(Tail(path), reader)) if isinstance(e, Point)] == [
        Point(5, 0.5, 1714564800.0),
        Point(6, 0.6, 1714564801.0),
    ]
    lacking = Source(Tail(path), TableReader({}, Declared(), Fields(iteration="step")))
    assert events(lacking) == []
    assert "no column step" in str(lacking.problem(final=True)) and str(lacking.problem()).endswith(
        "; there are n, q, t"
    )


def test_json_lines(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"step": 1, "train": {"loss": 0.5}}\n{"step": 2, "train": {"loss": NaN}}\nnoise\n')
    found = [e for e in events(auto_source(at(path))) if isinstance(e, Point)]
    assert found == [Point(1, 0.5), Point(2, None, diverged=True)]


def test_a_progress_file_is_known_by_its_keys(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"iteration": 1, "metric": 0.5, "time": 5.0}\n{"ended": true}\n')
    found = events(auto_source(at(path)))
    assert [e for e in found if not isinstance(e, Point | Ended)] != [], "its format is said"
    assert [e for e in found if isinstance(e, Point | Ended)] == [Point(1, 0.5, 5.0), Ended()]


def test_a_document_is_read_again_when_it_has_grown_and_not_while_it_is_torn(tmp_path: Path) -> None:
    path = tmp_path / "trainer_state.json"
    entries = [{"step": 10, "loss": 0.9}]
    path.write_text(json.dumps({"max_steps": 50, "log_history": entries}))
    source = auto_source(at(path))
    assert points(source) == [(10, 0.9)]
    path.write_text('{"max_steps": 50, "log_hi')
    assert points(source) == []
    assert source.problem() is None, "it may just be being written"
    said = source.problem(final=True)
    assert said is not None and said.startswith(f"{path}: it is no JSON document: ")
    entries.append({"step": 20, "loss": 0.8})
    path.write_text(json.dumps({"max_steps": 50, "log_history": entries}))
    assert points(source) == [(20, 0.8)]
    path.write_text(json.dumps({"max_steps": 50, "log_history": [{"step": 1, "loss": 3.0}]}))
    assert isinstance(events(source)[0], Ended)


@pytest.mark.parametrize("name", ["log", "rows.csv", "rows.jsonl"])
def test_a_line_that_is_too_long_is_said_to_be_there(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_text("1" * 100_000 + "\n" + "1" * 100_000)
    source = auto_source(at(path))
    assert points(source) == []
    assert source.unmatched == 2
    said = source.problem(final=True)
    assert said is not None and "no line so far matches a known format" in said
    assert source.samples == (TOO_LONG, TOO_LONG)
    assert suggestion(TOO_LONG) is None


def test_a_comma_between_semicolons_is_for_decimals(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("epoch;loss;name\r\n1;3,100;a,1\r\n2;0,998;b\r\n3;1,5e-1;c\r\n")
    assert points(auto_source(at(path))) == [(1, 3.1), (2, 0.998), (3, 0.15)]


RECORDS = [{"mode": "train", "epoch": epoch, "iter": 5, "data_time": 0.1, "loss": 3 - epoch} for epoch in (1, 2)]


@pytest.mark.parametrize("begin", [None, "", '{"mode": "tra'])
def test_a_file_is_read_when_it_shows_what_it_is(tmp_path: Path, begin: str | None) -> None:
    path = tmp_path / "train.log.json"
    text = "".join(json.dumps(record) + "\n" for record in RECORDS)
    if begin is not None:
        path.write_text(begin)
    source = auto_source(at(path))
    assert points(source, rest=False) == []
    path.write_text(text)
    source.aim()
    found = events(source)
    assert [(e.iteration, e.metric) for e in found if isinstance(e, Point)] == [(5, 2), (10, 1)]
    assert source.problem(final=True) is None


def test_one_line_of_json_is_read_when_no_more_will_come(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text('{"step": 5, "loss": 2.0}\n')
    source = auto_source(at(path))
    assert points(source, rest=False) == []
    assert points(source) == [(5, 2)]


def test_a_file_that_cannot_be_opened_is_said_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "log")
    source = auto_source(at(tmp_path / "log"))
    assert points(source) == []
    assert source.problem() == f"{tmp_path / 'log'}: it is no ordinary file"


def test_a_long_hole_at_the_begin_hides_nothing(tmp_path: Path) -> None:
    path = tmp_path / "log"
    with path.open("wb") as file:
        file.truncate(2**20)
        file.seek(2**20)
        file.write(LOG.encode())
    assert points(auto_source(at(path))) == [(10, 0.9), (20, 0.8), (30, 0.7)]


def test_a_record_of_many_bytes_is_one(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    filler = {"hist": [1.25] * 8000}
    lines = [{**filler, "training_iteration": n, "trial_id": "a", "time_total_s": n, "loss": 3 - n} for n in (1, 2)]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert points(auto_source(at(path))) == [(1, 2), (2, 1)]


def test_what_kind_of_file_it_is(tmp_path: Path) -> None:
    def kind(name: str, text: str) -> str:
        (tmp_path / name).write_text(text)
        return kind_of(at(tmp_path / name))

    assert kind("a.log", "text\n") == "log"
    assert kind("a.csv", "") == "csv"
    assert kind("results.json", '{"epoch": 1}\n{"epoch": 2}\n') == "jsonl"
    assert kind("b.json", '{\n "a": 1}') == "trainer-state"
    assert kind("c.log", '{"step": 1}\n{"step": 2}\n{"st') == "jsonl"
    assert kind("d.log", '{"lr": 1}\nstep 1\n') == "log", "settings may come first"
    assert kind("e.log", '{"log":"step 1\\n","stream":"stdout"}\n' * 3) == "log"
    assert kind("events.out.tfevents.1.host", "") == "tensorboard"
    assert kind_of(at(tmp_path)) == "tensorboard"


def test_a_file_of_another_user_a_pipe_and_a_link_are_not_read(tmp_path: Path) -> None:
    (tmp_path / "log").write_text(LOG)
    source = auto_source(at(tmp_path / "log", owner=os.getuid() + 1))
    assert events(source) == []
    assert "belongs to another user" in str(source.problem())
    os.mkfifo(tmp_path / "pipe")
    source = auto_source(at(tmp_path / "pipe"))
    assert events(source) == []
    assert "no ordinary file" in str(source.problem())
    (tmp_path / "link").symlink_to(tmp_path / "log")
    assert points(auto_source(at(tmp_path / "link"))) != []
    assert points(auto_source(at(tmp_path / "link", follow_links=False))) == []


def test_a_path_that_cannot_be_looked_at_is_said_and_raises_nothing(tmp_path: Path) -> None:
    path = tmp_path / ("x" * 300)
    for location in (at(path), at(path / "*.log"), at(path, kind="tensorboard"), at(path, kind="mlflow")):
        source = auto_source(location)
        source.aim()
        assert events(source) == []
        assert source.problem() is not None
        source.close()
    assert "File name too long" in str(_problem_of(path))
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    assert _problem_of(tmp_path / "loop") is not None


def _problem_of(path: Path) -> str | None:
    source = auto_source(at(path))
    events(source)
    return source.problem()


def test_a_declared_metric_and_an_end(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text("step 1 loss 0.9 acc 0.1\nstep 2 loss 0.8 acc 0.2\ndone\n")
    wish = Wish(declared=Declared("acc"), end_pattern="^done$")
    found = [e for e in events(auto_source(at(path), wish)) if isinstance(e, Point | Ended)]
    assert found == [Point(1, 0.1), Point(2, 0.2), Ended()]


@pytest.mark.parametrize(("hours", "is_used"), [(0.0, True), (-7.0, True), (5.5, True), (0.2, False), (1000.0, False)])
def test_dates_of_another_time_zone_are_shifted_and_wrong_ones_not_used(
    tmp_path: Path, hours: float, *, is_used: bool
) -> None:
    path = tmp_path / "log"
    now = int(time.time())
    dates = [datetime.fromtimestamp(now - ago - hours * 3600) for ago in (600, 300, 0)]
    path.write_text("".join(f"{date} step {i} loss 0.5\n" for i, date in enumerate(dates, 1)))
    times = [event.time for event in events(auto_source(at(path))) if isinstance(event, Point)]
    assert times == ([now - 600, now - 300, now] if is_used else [None, None, None])
