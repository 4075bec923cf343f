"""Event files below the folder that is named: which run, which metric, and what is said where the tag is another."""

from __future__ import annotations

import math
import os
import time
from dataclasses import replace
from pathlib import Path

from host_reporter.formats.events import Described, Point
from host_reporter.formats.outputs.line_reader import Declared
from host_reporter.readers.auto import auto_source
from host_reporter.readers.event_files.runs import EventFolders, newest_folder
from tests.support.agent.event_files import write_scalars
from tests.support.agent.sources import at, events, points


def aged(path: Path, seconds: float) -> None:
    os.utime(path, (time.time() - seconds,) * 2)


def test_of_several_scalars_of_a_step_one_is_the_metric(tmp_path: Path) -> None:
    write_scalars(tmp_path / "version_0", {s: {"lr": 0.1, "train_loss": 2.0 / s, "val_loss": 3.0} for s in (1, 2)})
    source = EventFolders(tmp_path, Declared())
    found = events(source)
    assert [e for e in found if isinstance(e, Point)] == [Point(1, 3.0, 1001.0), Point(2, 3.0, 1002.0)]
    assert [e for e in found if isinstance(e, Described)] == [Described("val_loss", "min", None, "tensorboard")]
    source.close()


def test_the_newest_run_and_of_it_the_validation(tmp_path: Path) -> None:
    aged(write_scalars(tmp_path / "run-1" / "validation", {9: {"epoch_loss": 9.0}}), 100)
    aged(write_scalars(tmp_path / "run-2" / "validation", {1: {"epoch_loss": 0.5}}), 20)
    aged(write_scalars(tmp_path / "run-2" / "train", {1: {"epoch_loss": 0.4}, 2: {"epoch_loss": 0.3}}), 10)
    assert newest_folder(tmp_path) == tmp_path / "run-2" / "validation"
    source = EventFolders(tmp_path, Declared())
    assert points(source) == [(1, 0.5)]
    source.close()


def test_a_newer_run_is_followed_once_it_begins(tmp_path: Path) -> None:
    aged(write_scalars(tmp_path / "version_0", {s: {"loss": 1.0} for s in (10, 500)}), 100)
    source = EventFolders(tmp_path, Declared())
    assert points(source) == [(10, 1.0), (500, 1.0)]
    write_scalars(tmp_path / "version_1", {10: {"loss": 2.0}})
    source.aim()
    assert points(source) == [(10, 2.0)], "it is a new run of the job"
    source.close()


def test_a_declared_tag_and_what_there_is_in_its_place(tmp_path: Path) -> None:
    write_scalars(tmp_path, {1: {"train/loss": 0.5, "eval/f1": 0.25}})
    assert points(EventFolders(tmp_path, Declared("eval/f1"))) == [(1, 0.25)]
    source = EventFolders(tmp_path, Declared("eval/accuracy"))
    assert points(source) == []
    problem = str(source.problem(final=True))
    assert "none of its scalars is called eval/accuracy; there are train/loss, eval/f1" in problem


def test_a_scalar_that_is_not_finite_has_diverged(tmp_path: Path) -> None:
    write_scalars(tmp_path, {1: {"loss": 0.5}, 2: {"loss": math.nan}})
    found = [e for e in events(EventFolders(tmp_path, Declared())) if isinstance(e, Point)]
    assert found == [Point(1, 0.5, 1001.0), Point(2, None, 1002.0, diverged=True)]


def test_nothing_there_is_said(tmp_path: Path) -> None:
    assert events(EventFolders(tmp_path, Declared())) == []
    assert "no event file in it or below it" in str(EventFolders(tmp_path, Declared()).problem())
    assert "not there yet" in str(EventFolders(tmp_path / "x", Declared()).problem())


def test_event_files_of_another_user_are_not_read(tmp_path: Path) -> None:
    """A user may put a link to another user's folder in the place of the one that his job has open."""
    file = write_scalars(tmp_path / "theirs", {1: {"loss": 0.5}})
    (tmp_path / "mine").symlink_to(tmp_path / "theirs")
    place = at(tmp_path / "mine", kind="tensorboard", follow_links=False, owner=os.getuid())
    assert points(auto_source(place)) == [(1, 0.5)], "his own files are"
    source = auto_source(replace(place, owner=os.getuid() + 1))
    assert points(source) == []
    assert str(source.problem()).endswith(f"{file.name}: it belongs to another user than the job's")


def test_a_folder_of_a_container_is_not_looked_for_on_the_host(tmp_path: Path) -> None:
    source = EventFolders(Path(f"/proc/self/root{tmp_path}/x"), Declared(), follow_links=False)
    write_scalars(tmp_path / "x", {1: {"loss": 0.5}})
    assert points(source) == [(1, 0.5)]
    next((tmp_path / "x").iterdir()).write_bytes(b"damaged" * 100)
    events(source)
    assert str(source.problem()).startswith(f"/proc/self/root{tmp_path}/x: a part of an event file is damaged")
    source.close()
