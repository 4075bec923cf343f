"""Folders of thousands of trials: what a look costs, and that nothing is overlooked for it."""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Collection
from pathlib import Path

import pytest

from host_reporter.jobs.job import JobFound, JobGone
from host_reporter.jobs.job_file import JobFile, read_job_file
from host_reporter.jobs.studies import study, trial_folder
from host_reporter.jobs.studies.study import MAX_LOOKED_AT
from host_reporter.jobs.studies.trials import Trials
from host_reporter.notices import Notices

MANY = 3000


def file(folder: Path, **values: object) -> JobFile:
    json_text = json.dumps({"id": "study", "spec": {}, "trials": {"folder": str(folder), **values}})
    return read_job_file(folder / "study.json", json_text, folder)


class World:
    """A folder of trials whose times are set by hand, and who looks at it."""

    def __init__(self, folder: Path, *, max_files: int = trial_folder.MAX_FILES, **values: object) -> None:
        self.folder = folder
        self.trials = Trials(Notices(logging.getLogger("test")), max_files=max_files)
        assert list(self.trials.add(file(folder, **values))) == []
        self.wall = time.time()

    def write(self, trial: str, age: float = 0.0, text: str = "x") -> None:
        path = self.folder / f"study.{trial}.jsonl"
        path.write_text(text)
        os.utime(path, (self.wall - age, self.wall - age))

    def settle(self) -> None:
        """As if the folder had been as it is for a while."""
        os.utime(self.folder, (self.wall - 100, self.wall - 100))

    def look(self, resting: Collection[str] = (), others: Collection[str] = ()) -> list[tuple[str, str]]:
        self.wall += 0.25
        changes = list(self.trials.scan(time.monotonic(), self.wall, resting, others))
        return [
            ("found", change.job.id.removeprefix("study."))
            if isinstance(change, JobFound)
            else ("gone", change.job_id.removeprefix("study."))
            for change in changes
        ]


def test_a_look_at_thousands_of_trials_that_are_over_asks_for_few(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(tmp_path)
    for number in range(MANY):
        world.write(f"t{number}", age=7200.0)
    world.write("new")
    world.settle()
    assert world.look() == [("found", "new")]
    looked_at, listed = [], []
    lstat, scandir = os.lstat, os.scandir
    monkeypatch.setattr(os, "lstat", lambda path: looked_at.append(path) or lstat(path))
    monkeypatch.setattr(os, "scandir", lambda path: listed.append(path) or scandir(path))
    for _ in range(10):
        looked_at.clear()
        assert world.look() == []
        assert len(looked_at) <= MAX_LOOKED_AT + 1
        assert sum("new" in path for path in looked_at) == 1, "what is followed is asked for at every look"
    assert listed == []
    # One of those that were over begins again; it is found when its turn comes.
    world.write("t7")
    all_changes = [change for _ in range(MANY // MAX_LOOKED_AT + 1) for change in world.look()]
    assert all_changes == [("found", "t7")]


def test_what_comes_and_goes_is_seen_at_the_next_look(tmp_path: Path) -> None:
    world = World(tmp_path)
    assert world.look() == []
    world.write("t0")
    assert world.look() == [("found", "t0")]
    # At once, within what a coarse clock tells apart.
    world.write("t1")
    assert world.look() == [("found", "t1")]
    world.settle()
    assert world.look() == []
    (tmp_path / "study.t0.jsonl").unlink()
    assert world.look() == [("gone", "t0")]
    assert world.look(resting=["study.t1"]) == [("gone", "t1")]
    world.write("t1", text="xx")
    assert world.look() == [("found", "t1")]


def test_who_waits_for_room_comes_in_the_order_of_their_files(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    world = World(tmp_path, most=2)
    for number in (3, 1, 4, 0, 2):
        world.write(f"t{number}", age=100.0 - number)
    assert world.look() == [("found", "t0"), ("found", "t1")]
    assert world.look() == []
    assert caplog.text.count("more than 2 trials at a time") == 1
    assert {job for job in world.trials.jobs if job.startswith("study.")} == {f"study.t{n}" for n in range(5)}
    assert world.look(resting=["study.t0"]) == [("gone", "t0"), ("found", "t2")]
    # One that has waited in vain until its tuner was gone is not begun.
    world.write("t3", age=7200.0)
    assert world.look() == []
    assert world.look(resting=["study.t1", "study.t2"]) == [("gone", "t1"), ("gone", "t2"), ("found", "t4")]


def test_thousands_that_wait_cost_no_more_than_those_that_are_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(tmp_path, most=1)
    for number in range(MANY):
        world.write(f"t{number}", age=float(number % 100))
    world.settle()
    assert len(world.look()) == 1
    looked_at = []
    lstat = os.lstat
    monkeypatch.setattr(os, "lstat", lambda path: looked_at.append(path) or lstat(path))
    assert world.look() == []
    assert len(looked_at) <= MAX_LOOKED_AT + 1


def test_a_trial_with_a_file_of_its_own_is_no_trial_of_the_studys(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.write("t0")
    world.write("t1")
    assert sorted(world.look()) == [("found", "t0"), ("found", "t1")]
    assert world.look(others=["study.t0"]) == []
    assert world.look(others=["study.t0"]) == []
    assert world.look() == [("found", "t0")], "its own file is gone"


def test_a_folder_with_too_many_files_is_said_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    world = World(tmp_path, max_files=5)
    for number in range(7):
        world.write(f"t{number}")
    world.settle()
    assert len(world.look()) == 5
    for _ in range(3):
        assert world.look() == []
    assert caplog.text.count("files: trials among the rest are not reported") == 1


def test_a_folder_that_cannot_be_looked_at_ends_no_trial(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(_path: object) -> None:
        raise PermissionError(13, "Permission denied")

    world = World(tmp_path)
    world.write("t0")
    world.settle()
    assert world.look() == [("found", "t0")]
    with monkeypatch.context() as patched:
        patched.setattr(study.os, "lstat", refuse)
        assert world.look() == []
        patched.setattr(os, "scandir", refuse)
        os.utime(tmp_path)
        assert world.look() == []
    assert "cannot be seen: Permission denied" in caplog.text
    world.write("t1")
    assert world.look() == [("found", "t1")]


def test_another_spec_is_that_of_the_trials_that_are_followed(tmp_path: Path) -> None:
    world = World(tmp_path, most=1)
    for number in range(3):
        world.write(f"t{number}", age=10.0 - number)
    assert world.look() == [("found", "t0")]
    (again,) = world.trials.add(file(tmp_path, most=2))
    assert isinstance(again, JobFound) and again.job.id == "study.t0"
    assert world.look() == [("found", "t1")]
    gone = list(world.trials.remove("study"))
    assert [change.job_id for change in gone if isinstance(change, JobGone)] == ["study.t0", "study.t1"]
