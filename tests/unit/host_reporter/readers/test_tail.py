"""A followed file over rotation, truncation and absence: real files, every line once."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from host_reporter.readers.tail import READ_BYTES, Tail


@pytest.fixture
def tail(tmp_path: Path) -> Iterator[Tail]:
    followed = Tail(tmp_path / "log")
    yield followed
    followed.close()


def _write(path: Path, data: bytes) -> None:
    with path.open("ab") as file:
        file.write(data)


def test_a_file_that_is_not_there_yet_is_waited_for(tail: Tail) -> None:
    assert tail.poll() == (b"", False)
    assert tail.error is not None and "not there" in tail.error
    _write(tail.path, b"one\n")
    assert tail.poll() == (b"one\n", True)
    assert tail.error is None
    assert tail.poll() == (b"", False)
    _write(tail.path, b"two\n")
    assert tail.poll() == (b"two\n", False)


def test_rotation_by_rename_loses_no_line_of_either_file(tail: Tail) -> None:
    _write(tail.path, b"one\n")
    tail.poll()
    _write(tail.path, b"two\n")
    old = tail.path.rename(tail.path.with_suffix(".1"))
    tail.path.touch()
    assert tail.poll()[0] == b"two\n"
    # Until the writer opens the new file it still writes into the old one.
    _write(old, b"three\n")
    assert tail.poll()[0] == b"three\n"
    assert tail.poll()[0] == b""
    _write(old, b"four\n")
    _write(tail.path, b"five\n")
    assert tail.poll() == (b"four\n", False)
    assert tail.poll() == (b"five\n", True)


def test_truncation_starts_again(tail: Tail) -> None:
    _write(tail.path, b"iteration 1\niteration 2\n")
    tail.poll()
    tail.path.write_bytes(b"it 3\n")
    assert tail.poll() == (b"it 3\n", True)
    # Cut and grown beyond the old place between two looks.
    tail.path.write_bytes(b"other lines, and more of them than before\n")
    assert tail.poll() == (b"other lines, and more of them than before\n", True)


def test_a_file_written_anew_to_the_same_length_is_read_anew(tail: Tail) -> None:
    for i in range(10, 40):
        # Within one tick of the file system's clock, most of them.
        tail.path.write_bytes(b"iteration %d\n" % i)
        assert tail.poll() == (b"iteration %d\n" % i, True)
    head = b"a long beginning that is always the same " * 3
    for i in range(10, 20):
        tail.path.write_bytes(head + b"and an end %d\n" % i)
        assert tail.poll() == (head + b"and an end %d\n" % i, True)
    os.utime(tail.path, (1e9, 1e9))
    assert [tail.poll() for _ in range(3)] == [(b"", False)] * 3
    tail.path.write_bytes(head + b"and an end %d\n" % 99)
    assert tail.poll()[1]


def test_a_file_that_grew_anew_beyond_the_place_with_the_same_head_is_read_anew(tail: Tail) -> None:
    head = b"the same header of every log that this training writes, line after line\n"
    tail.path.write_bytes(head + b"iteration 100\n")
    tail.poll()
    tail.path.write_bytes(head + b"iteration 1\niteration 2\n")
    assert tail.poll() == (head + b"iteration 1\niteration 2\n", True)


def test_all_that_there_was_is_told_apart_from_what_comes_after(tail: Tail) -> None:
    tail.aim()
    assert tail.is_there, "there is nothing"
    _write(tail.path, b"x" * (READ_BYTES + 1))
    tail.aim()
    tail.poll()
    assert not tail.is_there
    _write(tail.path, b"y" * READ_BYTES)
    tail.poll()
    assert tail.is_there
    _write(tail.path, b"z" * 3 * READ_BYTES)
    tail.aim()
    os.truncate(tail.path, 1)
    tail.poll()
    assert tail.is_there, "what it was is gone"
    assert tail.last_bytes() == b"x"


@pytest.mark.parametrize("look", [Tail.last_bytes, lambda tail: tail.first_bytes(9)], ids=["its end", "its beginning"])
def test_a_look_before_the_first_poll_opens_the_file_and_takes_nothing_from_it(
    tail: Tail, look: Callable[[Tail], bytes]
) -> None:
    assert look(tail) == b"", "it is not there yet"
    _write(tail.path, b"one\n")
    assert look(tail) == b"one\n"
    assert tail.poll() == (b"one\n", True), "it is new to the reader"
    assert tail.poll() == (b"", False)


def test_a_deleted_file_is_kept_until_there_is_another(tail: Tail) -> None:
    _write(tail.path, b"one\n")
    tail.poll()
    tail.path.unlink()
    assert tail.poll() == (b"", False)
    _write(tail.path, b"two\n")
    assert tail.poll() == (b"two\n", True)


@pytest.mark.parametrize("kind", ["folder", "pipe", "nul", "long", "loop", "zero"])
def test_what_is_no_file_is_said_and_raises_nothing(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "log"
    if kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "loop":
        path.symlink_to(path)
    elif kind == "zero":
        path.symlink_to("/dev/zero")
    else:
        path = tmp_path / ("a\0b" if kind == "nul" else "x" * 300)
    tail = Tail(path)
    for _ in range(2):
        assert tail.poll() == (b"", False)
        assert tail.error is not None and "\n" not in tail.error
    tail.close()


def test_a_long_file_comes_in_pieces_whole(tail: Tail) -> None:
    data = b"".join(b"line %d\n" % i for i in range(900_000))
    tail.path.write_bytes(data)
    pieces = []
    while piece := tail.poll()[0]:
        pieces.append(piece)
    assert b"".join(pieces) == data
    assert max(map(len, pieces)) <= READ_BYTES


def test_a_hole_of_any_size_is_not_read_and_what_comes_into_it_is(tail: Tail) -> None:
    _write(tail.path, b"one\n")
    assert tail.poll()[0] == b"one\n"
    os.truncate(tail.path, 2**40)
    tail.aim()
    polls = [tail.poll()[0] for _ in range(5)]
    assert sum(map(len, polls)) <= READ_BYTES, "the hole is not gone through"
    assert tail.is_there, "nobody waits for its end"
    with tail.path.open("r+b") as file:
        file.seek(2**30)
        file.write(b"two\n")
    assert b"".join(tail.poll()[0] for _ in range(3)).strip(b"\0") == b"two\n"
