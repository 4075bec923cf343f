"""What is opened in the place of a file: neither a pipe nor a device, and nothing without end."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from controller.documents import text_file
from controller.documents.regular_file import check_regular, read_regular


def a_pipe(path: Path) -> Path:
    os.mkfifo(path)
    return path


def a_large_file(path: Path) -> Path:
    path.touch()
    os.truncate(path, 2**30)
    return path


def test_what_is_no_regular_file_is_refused_at_once(tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to("/dev/zero")
    for path, words in (
        (a_pipe(tmp_path / "pipe"), "it is no regular file"),
        (link, "it is no regular file"),
        (tmp_path, "Is a directory"),
        (a_large_file(tmp_path / "large"), "it is larger than 16777216 bytes"),
        (tmp_path / "none", "No such file or directory"),
    ):
        for reader in (read_regular, check_regular):
            with pytest.raises(OSError, match=words):
                reader(path)


def test_a_link_to_a_file_is_that_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"content")
    (tmp_path / "link").symlink_to("file")
    assert read_regular(tmp_path / "link", most_bytes=7) == b"content"
    check_regular(tmp_path / "link", most_bytes=7)
    with pytest.raises(OSError, match="larger than 6 bytes"):
        read_regular(tmp_path / "link", most_bytes=6)


def test_a_text_may_come_from_a_pipe_only_where_somebody_waits_for_it(tmp_path: Path) -> None:
    pipe = a_pipe(tmp_path / "pipe")
    with pytest.raises(text_file.FileError, match="pipe: cannot be read: it is no regular file"):
        text_file.read(pipe, only_regular=True)
    with pytest.raises(text_file.FileError, match="cannot be read: No such file"):
        text_file.read(text_file.STDIN, only_regular=True)
