"""Recorded runs on a disk: which are found, what is read of them, and what is left out."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from controller.cli.console import lines
from controller.cli.console.lines import LONGEST, encoded, parsed
from controller.cli.console.recordings import Recording, find_runs, read_run

Read = Callable[[Path, str], Recording]

FIELDS: dict[str, type | tuple[type, ...]] = {"id": int, "time": (int, float)}


def event(number: int, kind: str = "job", time: float = 1.0, **data: Any) -> str:
    return json.dumps({"id": number, "event": kind, "time": time, "data": data}) + "\n"


def read_lines(content: bytes) -> list[lines.Line]:
    return list(lines.read_lines(io.BytesIO(content), FIELDS))


def events_of(recording: Recording) -> list[Any]:
    """Returns the events of all parts."""
    parts = [recording.events.part(number) for number in range(len(recording.events.parts))]
    return [json.loads(line) for part in parts for line in part.splitlines() if line]


@pytest.fixture
def read() -> Iterator[Read]:
    """Reads recorded runs, and closes their files at the end."""
    with ExitStack() as stack:

        def opened(folder: Path, name: str) -> Recording:
            recording = read_run(folder, name)
            stack.callback(recording.close)
            return recording

        yield opened


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


def test_times_of_the_day_count_from_the_first_event(read: Read, tmp_path: Path) -> None:
    (tmp_path / "events.jsonl").write_text(event(1, time=1.8e9 + 2.5) + event(2, time=1.8e9 + 64.0))
    recording = read(tmp_path, "observed")
    assert [each["time"] for each in events_of(recording)] == [0.0, 61.5]
    assert (recording.seconds, recording.events.count, recording.problems) == (61.5, 2, ())


def test_lines_that_are_not_right_are_left_out_with_their_numbers() -> None:
    right = b'{"id": 1, "time": 0.5, "more": []}\n'
    wrong = [
        b"{", b"[]", b'{"id": "1", "time": 2}', b'{"id": 1}', b'{"id": 1, "time": NaN}', b"\xff", b"[" * 100_000,
        b'{"id": 1, "time": 1e999}', b'{"id": 1, "time": 1, "more": "' + b"x" * LONGEST + b'"}',
    ]  # fmt: skip
    content = right + b"\n".join(wrong) + b"\n\n" + right
    found = read_lines(content)
    assert [line.number for line in found if line.document is None] == [2, 3, 4, 5, 6, 7, 8, 9, 10], (
        "an empty one is none"
    )
    kept = [line for line in found if line.document is not None]
    assert [content[line.start : line.end] for line in kept] == [right, right]


@pytest.mark.parametrize("rest", [b'{"id": 2, "ti', b"", b"\n", b"  "])
def test_a_last_line_that_was_not_finished_counts_as_not_there(rest: bytes) -> None:
    (line,) = read_lines(b'{"id": 1, "time": 1}\n' + rest)
    assert (line.number, line.start, line.end) == (1, 0, 21)


def test_a_last_line_that_only_lacks_its_line_feed_is_kept() -> None:
    assert [line.document for line in read_lines(b'{"id": 1, "time": 1}')] == [{"id": 1, "time": 1}]


def test_numbers_that_json_does_not_have_become_null() -> None:
    assert encoded({"a": [float("inf"), 1.5]}) == b'{"a":[null,1.5]}'


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


def test_the_labs_runs_of_a_job_alone_are_shown_only_by_name(tmp_path: Path) -> None:
    for place in ("arms/fair", "alone", "more/alone/job-1"):
        (tmp_path / place).mkdir(parents=True)
        (tmp_path / place / "events.jsonl").touch()
    assert find_runs(tmp_path) == [tmp_path / "arms" / "fair"]
    assert find_runs(tmp_path / "alone") == [tmp_path / "alone"]
    assert find_runs(tmp_path / "more" / "alone") == [tmp_path / "more" / "alone" / "job-1"]


def test_a_run_is_read_with_all_that_was_recorded(read: Read, run: Path) -> None:
    recording = read(run, "arms/jpas")
    assert recording[:4] == ("arms/jpas", "JPAS", "jpas", 61.5)
    assert (recording.events.count, recording.events.moments) == (3, [0.0])
    assert recording.events.part(0) == (run / "events.jsonl").read_bytes()
    assert recording.facts == run / "facts.json"
    assert recording.explanations is not None
    assert json.loads(recording.explanations.last("a", 3.2)) == {"time": 3.2, "job": "a", "explanation": {"job": "a"}}
    assert recording.problems == ()


def test_the_last_explanation_before_a_moment_is_found(read: Read, run: Path) -> None:
    told = [(1.0, "a"), (2.0, "b"), (3.0, "a"), (5.0, "a")]
    text = [json.dumps({"time": time, "job": job, "explanation": {}}) + "\n" for time, job in told]
    (run / "explanations.jsonl").write_text("".join(text))
    explanations = read(run, "jpas").explanations
    assert explanations is not None
    assert [json.loads(explanations.last("a", until))["time"] for until in (1.0, 4.9, 9.0)] == [1.0, 3.0, 5.0]
    assert [explanations.last(job, until) for job, until in (("a", 0.9), ("none", 9.0))] == [b"null\n"] * 2


def test_events_alone_are_enough(read: Read, run: Path) -> None:
    for name in ("facts.json", "explanations.jsonl"):
        (run / name).unlink()
    recording = read(run, "jpas")
    assert recording[:4] == ("jpas", "jpas", "jpas", 4.5)
    assert (recording.facts, recording.explanations) == (None, None)
    (run / "events.jsonl").write_text(event(1))
    assert read(run, "jpas").policy is None
    (run / "events.jsonl").write_text("")
    assert read(run, "jpas").seconds == 0.0


def test_what_is_broken_is_said_once_for_each_file_and_left_out(read: Read, run: Path) -> None:
    (run / "events.jsonl").write_text(event(1) + "{\n" + event(2) + "[]\n" + event(3) + '{"id": 4, "ev')
    (run / "facts.json").write_text('{"title": ')
    (run / "explanations.jsonl").write_text('{"time": 1}\n')
    recording = read(run, "jpas")
    assert [each["id"] for each in events_of(recording)] == [1, 2, 3]
    assert recording.facts is None
    events, facts, explanations = recording.problems
    assert events.startswith(f"{run / 'events.jsonl'}:2: this line (and 1 more) is not as it was recorded")
    assert facts == f"{run / 'facts.json'}: it is no JSON object, and is left out"
    assert explanations.startswith(f"{run / 'explanations.jsonl'}:1: this line is not")


def test_facts_of_another_kind_do_no_harm(read: Read, run: Path) -> None:
    (run / "facts.json").write_text('{"title": 5, "seconds": "long"}')
    assert read(run, "jpas")[:4] == ("jpas", "jpas", "jpas", 4.5)


def test_all_states_together_take_no_more_than_the_events(read: Read, run: Path) -> None:
    """Of 400 jobs that report in turn, while a plan names them all now and then."""
    jobs = [f"job-{number}" for number in range(400)]
    plan = event(0, "plan", 0.0, policy="fifo", classes=dict.fromkeys(jobs, 1), order=[jobs])
    report = [
        event(i, time=i / 100, id=jobs[i % 400], state="running", progress={"iterations_done": i, "last_metric": i / 7})
        for i in range(20_000)
    ]
    with (run / "events.jsonl").open("w") as file:
        for i, line in enumerate(report):
            file.write(plan.replace('"time": 0.0', f'"time": {i / 100}') if i % 1000 == 0 else line)
    recording = read(run, "jpas")
    events = recording.events
    size = (run / "events.jsonl").stat().st_size
    states = [len(events.state(number)) for number in range(len(events.parts))]
    assert 2 < len(states) < 10
    assert sum(states) < size
    assert events_of(recording)[-1]["id"] == 19_999
    assert events.moments == sorted(events.moments)


@pytest.mark.parametrize(
    "data", [{}, {"id": 5}, {"id": "a", "progress": 3, "description": []}, {"classes": []}, {"problem": 1}]
)
@pytest.mark.parametrize("kind", ["plan", "job", "stage", "host", "switch", "settings", "problem", "audit", "unknown"])
def test_events_that_no_controller_tells_do_no_harm(read: Read, run: Path, kind: str, data: dict[str, Any]) -> None:
    (run / "events.jsonl").write_text(event(1, kind, **data) + event(2, kind, **data))
    assert read(run, "jpas").events.count == 2
