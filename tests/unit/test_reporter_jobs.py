"""Job files and their folder: what is understood, what is refused in words, what appears, changes and goes away."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from host_reporter.job_file import JobFile, JobFileError, read_job_file
from host_reporter.jobs_dir import GONE_SECONDS, UNFINISHED_SECONDS, Found, JobsDirectory
from host_reporter.notices import Notices
from host_reporter.parse import Ended, Point

LOG = {"log": "train.log", "pattern": r"step (?P<iteration>\d+)"}


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
    assert job.parse("step 12") == Point(12)


def test_without_progress_the_helper_tells_it() -> None:
    job = read({"id": "a"})
    assert job.spec is None
    assert job.followed == Path("/progress/a.jsonl")
    assert job.parse('{"ended": true}') == Ended()


def test_yaml_says_the_same() -> None:
    text = "id: a\nspec: {weight: 2}\nprogress: {jsonl: /x/p.jsonl}\n"
    assert read(text, "a.yaml").followed == Path("/x/p.jsonl")
    assert read(text, "a.yml").spec == read({"id": "a", "spec": {"weight": 2}}).spec


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ({}, "id: Field required"),
        ({"id": "../x"}, "id: "),
        ({"id": "a", "extra": 1}, "extra: "),
        ({"id": "a", "spec": {"tasks": [{"role": "ps", "host": "h1", "port": 70000}]}}, "spec.tasks.0.port: "),
        ({"id": "a", "spec": {"tasks": [{"role": "boss", "host": "h1"}]}}, "spec.tasks.0.role: "),
        ({"id": "a", "spec": {"weight": float("nan")}}, "spec.weight: "),
        ({"id": "a", "progress": {}}, "progress: give either log (with pattern) or jsonl"),
        ({"id": "a", "progress": {"log": "x"}}, "pattern"),
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


class Folder:
    def __init__(self, path: Path) -> None:
        self.path = path / "jobs.d"
        self.path.mkdir()
        self.now = 1e9
        self.directory = JobsDirectory(self.path, path, Notices(logging.getLogger("test")))

    def write(self, name: str, document: object, *, age: float = 60.0) -> Path:
        """A file that was last changed so long ago."""
        path = self.path / name
        path.write_text(document if isinstance(document, str) else json.dumps(document))
        os.utime(path, (self.now - age, self.now - age))
        return path

    def scan(self, after: float = 0.0) -> list[Any]:
        self.now += after
        return [("+", c.job.id) if isinstance(c, Found) else ("-", c.job_id) for c in self.directory.scan(self.now)]


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


def test_a_bad_file_is_said_once_and_the_others_go_on(folder: Folder, complaints: Complaints) -> None:
    bad = folder.write("a.json", {"id": "a", "spec": {"weight": -1}})
    folder.write("b.json", {"id": "b"})
    assert folder.scan() == [("+", "b")]
    assert folder.scan(after=5) == []
    assert complaints() == [f"{bad}: spec.weight: Input should be greater than 0"]
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
