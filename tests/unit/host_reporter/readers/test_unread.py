"""Lines that were not understood stay in a file that its owner alone can read."""

from __future__ import annotations

from pathlib import Path

import pytest

from host_reporter.readers import unread


def test_lines_are_kept_for_the_owner_alone_with_what_would_match(tmp_path: Path) -> None:
    path = tmp_path / "unread.log"
    path.touch(mode=0o644)
    handler = unread.open_file(path)
    unread.note("train.log", "tick 5 loss=0.5 \x1b[1mtoken=abc")
    unread.close_file(handler)
    unread.note("train.log", "later")
    text = path.read_text()
    assert "train.log: not understood: tick 5 loss=0.5 ?[1mtoken=abc; this pattern would match: tick" in text
    assert "later" not in text
    assert path.stat().st_mode & 0o777 == 0o600


def test_the_file_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unread, "MAX_FILE_BYTES", 2000)
    handler = unread.open_file(tmp_path / "unread.log")
    for i in range(100):
        unread.note("train.log", f"line {i} " + "x" * 100)
    unread.close_file(handler)
    files = sorted(tmp_path.iterdir())
    assert [file.name for file in files] == ["unread.log", "unread.log.1"]
    assert all(file.stat().st_size <= 2000 and file.stat().st_mode & 0o777 == 0o600 for file in files)


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "unread.log").symlink_to(tmp_path / "other")
    with pytest.raises(OSError, match=r"unread\.log"):
        unread.open_file(tmp_path / "unread.log")
    assert not (tmp_path / "other").exists()
