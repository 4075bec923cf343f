"""The folder that everybody may read and nobody else may change: on a real file system, with other users."""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from host_reporter.environment.folder import Folder, FolderError

NOBODY = 65534
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can make files of other users")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run" / "environment"


@pytest.fixture
def closed_umask() -> Iterator[None]:
    before = os.umask(0o077)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_file_is_readable_by_all_and_the_folder_is_not_listed(path: Path, closed_umask: None) -> None:
    path.parent.mkdir(mode=0o755)
    Folder(path).write("a.env", "A=1\n")
    assert (path / "a.env").read_text() == "A=1\n"
    assert (mode(path), mode(path / "a.env")) == (0o711, 0o644)


def test_a_reader_sees_a_file_whole_or_not_at_all(path: Path) -> None:
    folder = Folder(path)
    texts = {letter * 20_000 for letter in "ab"}
    seen: set[str] = set()
    folder.write("x.env", min(texts))
    done = threading.Event()

    def read() -> None:
        while not done.is_set():
            seen.add((path / "x.env").read_text())

    reader = threading.Thread(target=read)
    reader.start()
    for _ in range(25):
        for text in texts:
            folder.write("x.env", text)
    done.set()
    reader.join()
    assert seen <= texts
    assert [each.name for each in path.iterdir()] == ["x.env"], "nothing is left beside it"


def test_only_what_is_named_stays(path: Path) -> None:
    folder = Folder(path)
    for name in ("a.env", "b.env", ".b.env.0a1b2c3d"):
        folder.write(name, "")
    folder.keep_only({"a.env"})
    assert [each.name for each in path.iterdir()] == ["a.env"]
    folder.clear()
    assert list(path.iterdir()) == []


def test_a_folder_that_is_not_there_is_clear(path: Path) -> None:
    Folder(path).clear()
    assert not path.parent.exists()


def test_a_link_is_not_followed(path: Path, tmp_path: Path) -> None:
    aim = tmp_path / "aim"
    aim.mkdir()
    (aim / "kept").touch()
    path.parent.mkdir()
    path.symlink_to(aim)
    with pytest.raises(FolderError, match="a link or a file"):
        Folder(path).write("a.env", "")
    Folder(path).clear()
    assert [each.name for each in aim.iterdir()] == ["kept"]


def test_a_link_in_the_place_of_a_file_is_replaced_and_not_written_through(path: Path, tmp_path: Path) -> None:
    aim = tmp_path / "aim"
    aim.write_text("mine")
    path.mkdir(parents=True)
    (path / "a.env").symlink_to(aim)
    Folder(path).write("a.env", "A=1\n")
    assert aim.read_text() == "mine"
    assert not (path / "a.env").is_symlink()


@pytest.mark.parametrize("bits", [0o020, 0o002])
def test_a_folder_that_others_may_write_into_is_refused(path: Path, bits: int) -> None:
    path.mkdir(parents=True)
    path.chmod(0o755 | bits)
    with pytest.raises(FolderError, match="chmod go-w it"):
        Folder(path).write("a.env", "")
    assert list(path.iterdir()) == []


def test_a_way_that_others_may_exchange_is_refused(path: Path) -> None:
    path.parent.mkdir()
    path.parent.chmod(0o777)
    with pytest.raises(FolderError, match="each folder on the way must be root's or the agent's own"):
        Folder(path).write("a.env", "")
    path.parent.chmod(0o1777)
    Folder(path).write("a.env", "")


@needs_root
def test_another_users_folder_is_refused_and_left_alone(path: Path) -> None:
    path.mkdir(parents=True)
    (path / "theirs").touch()
    os.chown(path, NOBODY, NOBODY)
    with pytest.raises(FolderError, match="is another user's"):
        Folder(path).write("a.env", "")
    Folder(path).clear()
    assert [each.name for each in path.iterdir()] == ["theirs"]


@needs_root
def test_a_way_of_another_user_is_refused(path: Path) -> None:
    path.parent.mkdir()
    os.chown(path.parent, NOBODY, NOBODY)
    with pytest.raises(FolderError, match="others may exchange"):
        Folder(path).write("a.env", "")
