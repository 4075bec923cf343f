"""Files that are opened are those that were checked, whatever is put in their place meanwhile."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from host_reporter.readers import opening
from host_reporter.readers.opening import open_regular
from tests.support.own_resources import open_below

OTHER = os.getuid() + 1


def content(descriptor: int) -> bytes:
    with os.fdopen(descriptor, "rb") as file:
        return file.read()


def make_fifo(path: Path) -> None:
    os.mkfifo(path)


def make_link(path: Path) -> None:
    path.with_name("target").write_text("secret\n")
    path.symlink_to("target")


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (make_fifo, "no ordinary file"),
        (Path.mkdir, "no ordinary file"),
        (lambda path: path.symlink_to("/dev/zero"), "no ordinary file"),
        (make_link, "a link, which is not followed"),
    ],
)
def test_what_is_no_ordinary_file_is_refused_at_once(tmp_path: Path, make: Callable[[Path], None], reason: str) -> None:
    make(tmp_path / "file")
    with pytest.raises(OSError, match=reason):
        open_regular(tmp_path / "file", follow_links="zero" in str((tmp_path / "file").resolve()))


@pytest.mark.parametrize(
    ("mode", "or_public", "reason"),
    [
        (0o600, True, "not everybody may read it"),
        (0o604, True, "not everybody may read it"),
        (0o644, True, None),
        (0o644, False, "belongs to another user"),
    ],
)
def test_the_file_of_another_user(tmp_path: Path, mode: int, or_public: bool, reason: str | None) -> None:
    file = tmp_path / "file"
    file.write_text("line\n")
    file.chmod(mode)
    assert content(open_regular(file, owner=os.getuid())) == b"line\n"
    if reason is None:
        assert content(open_regular(file, owner=OTHER, or_public=or_public)) == b"line\n"
        return
    with pytest.raises(OSError, match=reason):
        open_regular(file, owner=OTHER, or_public=or_public)


def test_a_descriptor_that_is_exchanged_after_the_check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own").write_text("own\n")
    (tmp_path / "secret").write_text("secret\n")
    os.mkfifo(tmp_path / "fifo")
    check = opening.check_regular
    for other in ("secret", "fifo"):
        shown = os.open(tmp_path / "own", os.O_WRONLY)

        def check_and_exchange(status: os.stat_result, *, owner: int | None, or_public: bool) -> None:
            check(status, owner=owner, or_public=or_public)
            exchanged = os.open(tmp_path / other, os.O_PATH)  # noqa: B023 - it is called in this turn
            os.dup2(exchanged, shown)  # noqa: B023 - as above
            os.close(exchanged)

        monkeypatch.setattr(opening, "check_regular", check_and_exchange)
        try:
            assert content(open_regular(Path(f"/proc/self/fd/{shown}"), owner=os.getuid())) == b"own\n"
        finally:
            os.close(shown)


def test_no_descriptor_is_left_open(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for owner in (OTHER, os.getuid()):
        try:
            os.close(open_regular(tmp_path / "file", owner=owner))
        except OSError:
            assert owner == OTHER
    assert not open_below(tmp_path)
