"""Files that ``trainyard predict`` is to write are looked at first."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from deepprophet import targets
from deepprophet.errors import InputError


def test_a_file_that_can_be_written_is_left_as_it_is(tmp_path: Path) -> None:
    there = tmp_path / "there.json"
    there.write_text("old")
    for path in (there, tmp_path / "new.json"):
        targets.check(path, "--registration")
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("there.json", "old")]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("folder", "it is a folder; name a file"),
        ("missing/x.png", "there is no folder .*missing; make it first, or name another"),
        ("file/x.png", "there is no folder .*file; make it first, or name another"),
        ("nobody/x.png", "no file can be made in .*nobody: "),
    ],
)
def test_what_cannot_be_written_is_told(tmp_path: Path, name: str, said: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    # Nobody makes files there, root neither.
    (tmp_path / "nobody").symlink_to("/proc/self")
    with pytest.raises(InputError, match=f"^--timeline {tmp_path / name}: {said}"):
        targets.check(tmp_path / name, "--timeline")


def test_a_file_that_may_not_be_written_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.json"
    path.touch()
    # As the system answers for a file of somebody else's; root is never told so.
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(InputError, match="it is there and may not be written to"):
        targets.check(path, "--registration")
