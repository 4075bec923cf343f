"""Job files and their folder: what is understood, what is refused in words, what appears, changes and goes away."""

from __future__ import annotations

import contextlib
import json
import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from host_reporter.jobs.job import JobFound
from host_reporter.jobs.job_file import JobFile, JobFileError, read_job_file
from host_reporter.jobs.jobs_dir import GONE_SECONDS, UNFINISHED_SECONDS, JobsDirectory
from host_reporter.notices import Notices

LOG = {"log": "train.log", "pattern": r"step (?P<iteration>\d+)"}
LAUGHS = "".join(f"{chr(k + 1)}: &{chr(k + 1)} [{','.join([f'*{chr(k)}'] * 9)}]\n" for k in range(97, 108))


def read(document: object, name: str = "a.json") -> JobFile:
    text = document if isinstance(document, str) else json.dumps(document)
    return read_job_file(Path("/jobs") / name, text, Path("/progress"))


def test_a_whole_job_file() -> None:
    job = read(
        {"id": "a", "spec": {"weight": 2, "tasks": [{"role": "ps", "host": "h1", "port": 5000}]}, "progress": LOG}
    )
    assert job.spec is not None
    assert job.spec.weight == 2.0
    assert job.followed == Path("/jobs/train.log"), "relative to the job file"


def test_without_progress_the_helper_tells_it() -> None:
    job = read({"id": "a"})
    assert job.spec is None
    assert job.followed == Path("/progress/a.jsonl")


def test_yaml_says_the_same() -> None:
    text = "id: a\nspec: {weight: 2}\nprogress: {jsonl: /x/p.jsonl}\n"
    assert read(text, "a.yaml").followed == Path("/x/p.jsonl")
    assert read(text, "a.yml").spec == read({"id": "a", "spec": {"weight": 2}}).spec


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ({}, "id: is missing; it must be given"),
        ({"id": "../x"}, "id: "),
        ({"id": "a", "extra": 1}, "extra: "),
        ({"id": "a", "spec": {"tasks": [{"role": "ps", "host": "h1", "port": 70000}]}}, "spec.tasks.0.port: "),
        ({"id": "a", "spec": {"tasks": [{"role": "boss", "host": "h1"}]}}, "spec.tasks.0.role: "),
        ({"id": "a", "spec": {"weight": float("nan")}}, "spec.weight: "),
        ({"id": "a", "progress": {}}, "progress: give either log or csv or jsonl or tensorboard"),
        (
            {"id": "a", "progress": {"log": "x", "format": "none"}},
            "progress.format: unknown format 'none'; there are: auto, ",
        ),
        ({"id": "a", "progress": {**LOG, "format": "general"}}, "format is for a log without pattern"),
        ({"id": "a", "progress": {"csv": "x", "format": "general"}}, "format is for a log without pattern"),
        ({"id": "a", "progress": {"log": "x", "fields": {"step": "s"}}}, "fields are for csv or jsonl"),
        ({"id": "a", "progress": {"csv": "x", "fields": {"metric": "m"}}}, "iteration, step or epoch"),
        ({"id": "a", "progress": {"log": "x", "tag": "t"}}, "tag is for tensorboard"),
        (
            {"id": "a", "progress": {"log": "x", "metric_from": {"log": "y", "csv": "z"}}},
            "progress.metric_from: give either",
        ),
        ({"id": "a", "progress": {"log": "x", "jsonl": "y", "pattern": "z"}}, "either"),
        ({"id": "a", "progress": {"jsonl": "y", "pattern": "z"}}, "for a log"),
        ({"id": "a", "progress": {"log": "x", "pattern": "(?P<metric>.)"}}, "progress.pattern: it needs a named group"),
        ({"id": "a", "progress": {"log": "x", "pattern": "("}}, "progress.pattern: "),
        ({"id": "a", "progress": {**LOG, "end_pattern": "["}}, "progress.end_pattern: "),
        ([1], "a.json"),
        ("{", "a.json"),
        ("[" * 100_000, ""),
    ],
)
def test_what_is_wrong_is_said_with_its_field(document: object, words: str) -> None:
    with pytest.raises(JobFileError) as refused:
        read(document)
    message = f"a.json: {refused.value}"
    assert words in message
    assert "\n" not in message


@pytest.mark.parametrize("name", ["a.json", "a.yaml"])
def test_each_fault_has_its_line(name: str) -> None:
    text = '{"id": "a",\n  "spec": {\n    "weight":\n      -1,\n    "tasks": [\n{"role": "boss", "host": "h1"}]}}'
    with pytest.raises(JobFileError) as refused:
        read(text.replace("  ", "\t") if name == "a.json" else text, name)
    assert refused.value.line == 6
    assert str(refused.value).startswith("spec.tasks.0.role: ")
    # JSON's readers tell where a value stands, YAML's where its key does.
    assert f"; line {4 if name == 'a.json' else 3}: spec.weight: " in str(refused.value)


def test_a_key_that_is_given_twice_is_refused_in_json_as_in_yaml() -> None:
    with pytest.raises(JobFileError, match=r"^id: given twice, first in line 1; keep one$") as refused:
        read('{"id": "a",\n"id": "b"}')
    assert refused.value.line == 2


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("spec: {}\nid: !!bool foo\n", 2, "'foo' is no bool"),
        ('\nid: !!int ""\n', 2, "is no int"),
        ("id: !!timestamp foo\n", 1, "is no timestamp"),
        ("id: !!python/name:os.system ''\n", 1, "is no"),
        ("id: a\nspec: " + "[" * 100_000, 2, "nested deeper than 50 levels"),
        ("[" * 100_000, 1, "nested deeper than 50 levels"),
        ("id: a\nspec: &x {tasks: [*x]}\n", 2, "contains itself"),
        ("id: a\nid: b\n", 2, "id: given twice, first in line 1; keep one"),
        ("id: a\n? [x]\n: 1\n", 2, "a key must be a word"),
        ("id: a\nspec: [\n", 3, "this is no valid YAML"),
        ("a: &a [x,x,x,x,x,x,x,x,x]\n" + LAUGHS, None, "more than 100000 values"),
        ("id: a\nprogress: {log: x,\n  pattern: '('}\n", 3, "progress.pattern: "),
        ('id: a\nprogress: {jsonl: "a\\0b"}\n', 2, "progress.jsonl: no file can have this name"),
        ('id: a\nprogress: {jsonl: ""}\n', 2, "progress.jsonl: no file can have this name"),
        ("id: a\nspec:\n  weight: 2024-99-99\n", 3, "is no timestamp"),
        ("id: a\nspec:\n  compute_seconds: 1e-1\n  weight: 0\n", 4, "spec.weight: "),
    ],
)
def test_whatever_a_yaml_file_holds_is_one_line_with_its_place(text: str, line: int | None, words: str) -> None:
    with pytest.raises(JobFileError) as refused:
        read(text, "a.yaml")
    assert words in str(refused.value)
    assert "\n" not in str(refused.value)
    assert line is None or refused.value.line == line


@given(st.text() | st.text("[]{}:,-&*! \n#'\"ab0?|>%@~<=\\ud8.e", max_size=60))
def test_no_text_raises_anything_else(text: str) -> None:
    for name in ("a.json", "a.yaml"):
        with contextlib.suppress(JobFileError):
            read(text, name)


@pytest.mark.parametrize("name", ["\ud800.jsonl", "a\0b.jsonl"])
def test_a_path_that_no_file_can_have(name: str) -> None:
    for progress in ({"jsonl": name}, {"log": name, "pattern": LOG["pattern"]}):
        with pytest.raises(JobFileError, match=r"no file can have this name"):
            read({"id": "a", "progress": progress})


class Folder:
    def __init__(self, path: Path) -> None:
        self.path = path / "jobs.d"
        self.path.mkdir()
        self.now, self.clock = 1e9, 50.0
        self.directory = JobsDirectory(self.path, path, Notices(logging.getLogger("test")))

    def write(self, name: str, document: object, *, age: float = 60.0) -> Path:
        """A file that was last changed so long ago."""
        path = self.path / name
        path.write_text(document if isinstance(document, str) else json.dumps(document))
        os.utime(path, (self.now - age, self.now - age))
        return path

    def scan(self, after: float = 0.0) -> list[Any]:
        self.now += after
        self.clock += after + 1e-6  # so that a sum of waits is no less than each
        return [
            ("+", c.job.id) if isinstance(c, JobFound) else ("-", c.job_id)
            for c in self.directory.scan(self.clock, self.now)
        ]


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


Complaints = Callable[[], list[str]]


@pytest.fixture
def complaints(caplog: pytest.LogCaptureFixture) -> Complaints:
    return lambda: [record.message for record in caplog.records if record.levelno >= logging.WARNING]


def test_a_job_appears_changes_and_goes_away(folder: Folder) -> None:
    folder.write("a.json", {"id": "a"})
    folder.write("note.txt", "no job file")
    folder.write(".a.json.swp.json", "hidden")
    assert folder.scan() == [("+", "a")]
    assert folder.scan() == []
    folder.write("a.json", {"id": "a", "spec": {"weight": 2}}, age=30)
    assert folder.scan() == [("+", "a")]
    (folder.path / "a.json").unlink()
    assert folder.scan() == []
    assert folder.directory.unsettled, "a look is due soon"
    assert folder.scan(after=GONE_SECONDS) == [("-", "a")]
    assert not folder.directory.unsettled


def test_an_editor_that_replaces_a_file_ends_no_job(folder: Folder) -> None:
    path = folder.write("a.json", {"id": "a"})
    folder.scan()
    path.unlink()
    assert folder.scan() == []
    folder.write("a.json", {"id": "a", "spec": {"weight": 3}}, age=1)
    assert folder.scan(after=GONE_SECONDS / 2) == [("+", "a")]
    assert folder.scan(after=GONE_SECONDS) == []


def test_a_renamed_file_ends_no_job(folder: Folder) -> None:
    path = folder.write("a.json", {"id": "a"})
    folder.scan()
    path.rename(folder.path / "b.json")
    changes = folder.scan() + folder.scan(after=GONE_SECONDS) + folder.scan(after=GONE_SECONDS)
    assert ("-", "a") not in changes
    (folder.path / "b.json").unlink()
    assert folder.scan() + folder.scan(after=GONE_SECONDS) == [("-", "a")], "but its end is still seen"


def test_a_file_that_names_another_job_ends_the_first(folder: Folder) -> None:
    folder.write("a.json", {"id": "a"})
    folder.scan()
    folder.write("a.json", {"id": "b"}, age=30)
    assert folder.scan() == [("-", "a"), ("+", "b")]


def test_two_files_of_one_job(folder: Folder, complaints: Complaints) -> None:
    first = folder.write("a.json", {"id": "a"})
    folder.write("b.json", {"id": "a"})
    assert folder.scan() == [("+", "a")]
    folder.scan(after=5)
    assert len(complaints()) == 1
    assert "b.json: id: a is the job of" in complaints()[0]
    first.unlink()
    changes = folder.scan() + folder.scan(after=GONE_SECONDS) + folder.scan(after=GONE_SECONDS)
    assert changes == [("-", "a"), ("+", "a")], "the other file is right now"


def both(folder: Folder) -> None:
    """Two files, followed, a of job a and b of job b."""
    folder.write("a.json", {"id": "a"})
    folder.write("b.json", {"id": "b"})
    assert folder.scan() == [("+", "a"), ("+", "b")]


def settled(folder: Folder) -> list[tuple[str, str]]:
    """What becomes of it in a while, through which nothing else changes."""
    return folder.scan() + folder.scan(after=GONE_SECONDS) + folder.scan(after=GONE_SECONDS)


def test_a_file_that_takes_anothers_name_ends_the_job_that_had_it(folder: Folder) -> None:
    both(folder)
    (folder.path / "b.json").rename(folder.path / "a.json")
    assert settled(folder) == [("-", "a")], "and b goes on"
    assert folder.directory.is_understood
    (folder.path / "a.json").unlink()
    assert settled(folder) == [("-", "b")]


def test_a_file_that_names_anothers_job_has_it_once_the_other_is_gone(folder: Folder, complaints: Complaints) -> None:
    both(folder)
    folder.write("a.json", {"id": "b"}, age=30)
    assert settled(folder) == []
    assert "a.json: id: b is the job of" in complaints()[0]
    assert not folder.directory.is_understood, "nobody knows what has become of job a"
    (folder.path / "b.json").unlink()
    assert settled(folder) == [("-", "b"), ("-", "a"), ("+", "b")]
    assert folder.directory.is_understood


def test_a_file_that_names_anothers_job_has_it_once_the_other_names_a_third(folder: Folder) -> None:
    both(folder)
    folder.write("a.json", {"id": "b"}, age=30)
    assert settled(folder) == []
    folder.write("b.json", {"id": "c"}, age=20)
    assert settled(folder) == [("-", "b"), ("+", "c"), ("-", "a"), ("+", "b")]


def test_a_bad_file_is_said_once_and_the_others_go_on(folder: Folder, complaints: Complaints) -> None:
    bad = folder.write("a.json", {"id": "a", "spec": {"weight": -1}})
    folder.write("b.json", {"id": "b"})
    assert folder.scan() == [("+", "b")]
    assert folder.scan(after=5) == []
    assert len(complaints()) == 1
    assert complaints()[0].startswith(f"{bad}:1: spec.weight: is the number -1; it should be greater than ")
    folder.write("a.json", {"id": "a"}, age=1)
    assert folder.scan() == [("+", "a")]


def test_a_job_whose_file_turns_bad_goes_on_as_it_was(folder: Folder, complaints: Complaints) -> None:
    folder.write("a.json", {"id": "a"})
    folder.scan()
    path = folder.write("a.json", "{", age=30)
    assert folder.scan() == []
    assert len(complaints()) == 1
    path.unlink()
    assert folder.scan() + folder.scan(after=GONE_SECONDS) == [("-", "a")]


def test_a_file_that_is_still_being_written_is_not_complained_of(folder: Folder, complaints: Complaints) -> None:
    folder.write("a.json", '{"id": "a', age=0.0)
    assert folder.scan() == []
    assert complaints() == []
    assert folder.scan(after=UNFINISHED_SECONDS + 0.1) == []
    assert len(complaints()) == 1, "it was not finished"


def test_a_folder_that_cannot_be_read_ends_no_job(folder: Folder, complaints: Complaints) -> None:
    folder.write("a.json", {"id": "a"})
    folder.scan()
    folder.path.rename(folder.path.with_name("away"))
    assert folder.scan() + folder.scan(after=60) == []
    assert len(complaints()) == 1
    assert "kept as they are" in complaints()[0]
    folder.path.with_name("away").rename(folder.path)
    assert folder.scan() == []
    (folder.path / "a.json").unlink()
    assert folder.scan() + folder.scan(after=GONE_SECONDS) == [("-", "a")]


def test_an_entry_that_cannot_be_looked_at_stops_no_other(folder: Folder, complaints: Complaints) -> None:
    loop = folder.path / "a.json"
    loop.symlink_to(loop.name)
    folder.write("b.json", {"id": "b"})
    assert folder.scan() == [("+", "b")]
    assert folder.scan(after=5) == []
    assert len(complaints()) == 1
    assert "a.json: it cannot be read: Too many levels of symbolic links" in complaints()[0]
    loop.unlink()
    folder.write("a.json", {"id": "a"}, age=1)
    assert folder.scan() == [("+", "a")]
    (folder.path / "b.json").unlink()
    (folder.path / "b.json").symlink_to("b.json")
    assert folder.scan() + folder.scan(after=60) == [], "what was understood goes on"


def test_a_file_whose_permissions_are_repaired_is_read(
    folder: Folder, complaints: Complaints, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Root may read anything, so that the refusal is made up here."""
    path = folder.write("a.json", {"id": "a"})
    with monkeypatch.context() as closed:

        def refuse(*_: object) -> str:
            raise PermissionError(13, "Permission denied")

        closed.setattr(JobsDirectory, "_text", refuse)
        assert folder.scan() + folder.scan(after=5) == []
    assert complaints() == [f"{path}: it cannot be read: Permission denied"]
    assert folder.scan() == [("+", "a")]


def test_the_walls_clock_delays_no_end(folder: Folder) -> None:
    folder.write("a.json", {"id": "a"})
    folder.scan()
    (folder.path / "a.json").unlink()
    assert folder.scan() == []
    folder.now -= 1000.0
    assert folder.scan(after=GONE_SECONDS) == [("-", "a")]


def test_what_is_no_file_or_too_large_is_refused(folder: Folder, complaints: Complaints) -> None:
    os.mkfifo(folder.path / "pipe.json")
    (folder.path / "folder.json").mkdir()
    (folder.path / "nowhere.json").symlink_to(folder.path / "nothing")
    folder.write("large.json", " " * (5 * 2**20))
    folder.write("a.json", {"id": "a"})
    for name in ("pipe.json", "folder.json"):
        os.utime(folder.path / name, (folder.now - 60, folder.now - 60))
    assert folder.scan() == [("+", "a")]
    assert any("large.json" in message for message in complaints())
