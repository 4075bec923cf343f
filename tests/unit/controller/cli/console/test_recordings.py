"""Recorded runs on a disk: which are found, what is read of them, and what is left out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from controller.cli.console.lines import parsed, read_lines
from controller.cli.console.recordings import find_runs, read_run

FIELDS: dict[str, type | tuple[type, ...]] = {"id": int, "time": (int, float)}


def event(number: int, kind: str = "job", time: float = 1.0, **data: Any) -> str:
    return json.dumps({"id": number, "event": kind, "time": time, "data": data}) + "\n"


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A whole recorded run."""
    folder = tmp_path / "jpas"
    folder.mkdir()
    told = [event(1, "plan", -0.5, policy="fair"), event(2, time=3.25), event(3, "plan", 4.5, policy="jpas")]
    (folder / "events.jsonl").write_text("".join(told))
    (folder / "facts.json").write_text(json.dumps({"title": "JPAS", "seconds": 61.5, "jobs": {}}))
    line = {"time": 3.2, "job": "a", "explanation": {"job": "a"}}
    (folder / "explanations.jsonl").write_text(json.dumps(line) + "\n")
    return folder


def test_times_of_the_day_count_from_the_first_event(tmp_path: Path) -> None:
    (tmp_path / "events.jsonl").write_text(event(1, time=1.8e9 + 2.5) + event(2, time=1.8e9 + 64.0))
    recording = read_run(tmp_path, "observed")
    assert [json.loads(line)["time"] for line in recording.files["events.jsonl"].splitlines()] == [0.0, 61.5]
    assert (recording.seconds, recording.events, recording.problems) == (61.5, 2, ())


def test_lines_that_are_not_right_are_left_out_with_their_numbers() -> None:
    right = b'{"id": 1, "time": 0.5, "more": []}\n'
    wrong = [b"{", b"[]", b'{"id": "1", "time": 2}', b'{"id": 1}', b'{"id": 1, "time": NaN}', b"\xff", b"[" * 100_000]
    lines = read_lines(right + b"\n".join(wrong) + b"\n\n" + right, FIELDS)
    assert lines.kept == right * 2
    assert [document["time"] for document in lines.documents] == [0.5, 0.5]
    assert lines.wrong == (2, 3, 4, 5, 6, 7, 8), "and the empty line is none"


@pytest.mark.parametrize("rest", [b'{"id": 2, "ti', b"", b"\n", b"  "])
def test_a_last_line_that_was_not_finished_counts_as_not_there(rest: bytes) -> None:
    lines = read_lines(b'{"id": 1, "time": 1}\n' + rest, FIELDS)
    assert (len(lines.documents), lines.wrong) == (1, ())


def test_a_last_line_that_only_lacks_its_line_feed_is_kept() -> None:
    assert read_lines(b'{"id": 1, "time": 1}', FIELDS).kept == b'{"id": 1, "time": 1}\n'


def test_only_an_object_counts_as_one() -> None:
    assert parsed(b'{"a": 1}') == {"a": 1}
    assert [parsed(content) for content in (b"[1]", b"1", b"", b'{"a": Infinity}', b"\xff")] == [None] * 5


def test_a_run_is_found_by_its_events_up_to_four_folders_below(run: Path, tmp_path: Path) -> None:
    assert find_runs(run) == [run]
    for place in ("demo/arms/demo-1/fair", "demo/arms/demo-1/jpas", "demo/a", "demo/1/2/3/4/5", "demo/jobs/empty"):
        (tmp_path / place).mkdir(parents=True)
        if not place.endswith("empty"):
            (tmp_path / place / "events.jsonl").touch()
    (tmp_path / "demo" / "a" / "below").mkdir()
    (tmp_path / "demo" / "a" / "below" / "events.jsonl").touch()
    (tmp_path / "demo" / "link").symlink_to(run)
    found = [path.relative_to(tmp_path / "demo").as_posix() for path in find_runs(tmp_path / "demo")]
    assert found == ["a", "arms/demo-1/fair", "arms/demo-1/jpas"], (
        "a run holds no other runs, and links are not followed"
    )


def test_a_run_is_read_with_all_that_was_recorded(run: Path) -> None:
    recording = read_run(run, "arms/jpas")
    assert recording[:5] == ("arms/jpas", "JPAS", "jpas", 61.5, 3)
    assert list(recording.files) == ["events.jsonl", "facts.json", "explanations.jsonl"]
    assert all(content == (run / name).read_bytes() for name, content in recording.files.items())
    assert recording.problems == ()


def test_events_alone_are_enough(run: Path) -> None:
    for name in ("facts.json", "explanations.jsonl"):
        (run / name).unlink()
    recording = read_run(run, "jpas")
    assert recording[:5] == ("jpas", "jpas", "jpas", 4.5, 3)
    assert list(recording.files) == ["events.jsonl"]
    (run / "events.jsonl").write_text(event(1))
    assert read_run(run, "jpas").policy is None
    (run / "events.jsonl").write_text("")
    assert read_run(run, "jpas").seconds == 0.0


def test_what_is_broken_is_said_once_for_each_file_and_left_out(run: Path) -> None:
    (run / "events.jsonl").write_text(event(1) + "{\n" + event(2) + "[]\n" + event(3) + '{"id": 4, "ev')
    (run / "facts.json").write_text('{"title": ')
    (run / "explanations.jsonl").write_text('{"time": 1}\n')
    recording = read_run(run, "jpas")
    assert recording.files["events.jsonl"].decode() == event(1) + event(2) + event(3)
    assert "facts.json" not in recording.files
    events, facts, explanations = recording.problems
    assert events.startswith(f"{run / 'events.jsonl'}:2: this line (and 1 more) is not as it was recorded")
    assert facts == f"{run / 'facts.json'}: it is no JSON object, and is left out"
    assert explanations.startswith(f"{run / 'explanations.jsonl'}:1: this line is not")


def test_facts_of_another_kind_do_no_harm(run: Path) -> None:
    (run / "facts.json").write_text('{"title": 5, "seconds": "long"}')
    assert read_run(run, "jpas")[:4] == ("jpas", "jpas", "jpas", 4.5)
