from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from controller.access.audit.chain import Chain, Line
from controller.access.audit.files import AuditError, AuditFiles, files_of, lines_of, read_chain, read_since
from controller.access.audit.verify import Verdict, Verifier


def verdict(path: Path) -> Verdict:
    verifier = Verifier()
    for file in files_of(path):
        verifier.add_file(file.name, lines_of(file))
    return verifier.verdict()


def more(chain: Chain, count: int) -> list[Line]:
    return [line for i in range(count) for line in chain.add({"time": 1.0, "who": "ann", "after": {"i": i}})]


def append(path: Path, count: int, *, max_bytes: int = 2**20, keep: int | None = None) -> None:
    """Begin, write and end, as a controller does."""
    chain = read_chain(path, max_bytes, keep)
    files = AuditFiles(path)
    lines = more(chain, count)
    assert files.write(lines) == (len(lines), None)
    files.close()


@contextmanager
def largest_file(size: int) -> Iterator[None]:
    """Let no file grow above ``size``: a write beyond it fails, as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_restart_goes_on_with_the_chain(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    for _ in range(3):
        append(path, 4)
    result = verdict(path)
    assert (result.breaks, result.notes, result.records) == ((), (), 13)
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("is_copied", [True, False])
def test_records_go_on_in_the_file_that_is_there_when_somebody_has_replaced_it(tmp_path: Path, is_copied: bool) -> None:
    path = tmp_path / "audit.jsonl"
    chain = read_chain(path, 2**20, None)
    files = AuditFiles(path)
    assert files.write(more(chain, 4)) == (5, None)
    content = path.read_bytes()
    path.unlink()
    if is_copied:
        path.write_bytes(content)
    assert files.write(more(chain, 2)) == (2, None)
    files.close()
    result = verdict(path)
    assert result.records == (7 if is_copied else 2)
    assert bool(result.breaks) is not is_copied, "what was removed is missing, and no later record"


def test_rotation_over_restarts(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    for _ in range(10):
        append(path, 7, max_bytes=1500, keep=3)
    assert len(files_of(path)) == 4
    result = verdict(path)
    assert result.breaks == ()
    assert "audit.keep" in result.notes[0]
    files_of(path)[0].unlink()
    assert "are missing" in verdict(path).breaks[0]
    # A later rotation does not hide that.
    append(path, 5, max_bytes=1500, keep=9)
    assert "are missing" in verdict(path).breaks[0]


def test_a_file_in_the_middle_that_is_removed(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    append(path, 40, max_bytes=1500)
    files_of(path)[2].unlink()
    assert "are missing before it" in verdict(path).breaks[0]


def test_a_crash_in_the_middle_of_a_line(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    append(path, 4)
    whole = path.read_bytes()
    path.write_bytes(whole[:-30])
    assert (verdict(path).breaks, verdict(path).records) == ((), 4)
    append(path, 2)
    result = verdict(path)
    assert (result.breaks, result.records) == ((), 6)
    assert "a crash or a full disk" in result.notes[0]
    # Where only the line feed is missing, the record counts.
    path.write_bytes(path.read_bytes()[:-1])
    append(path, 1)
    assert (verdict(path).breaks, verdict(path).records) == ((), 7)


@pytest.mark.parametrize("length", [1, 12, 100])
def test_a_crash_in_the_first_line_of_all_is_a_note(tmp_path: Path, length: int) -> None:
    path = tmp_path / "audit.jsonl"
    append(path, 1)
    for _ in range(2):
        path.write_bytes(path.read_bytes()[:length])
        append(path, 1)
        result = verdict(path)
        assert (result.breaks, result.records) == ((), 2)
        assert result.first is not None and result.first.number == 1
        assert "a crash or a full disk" in result.notes[0]


def test_a_first_line_that_is_whole_is_no_cut_off_one(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    append(path, 1)
    changed = path.read_bytes().splitlines()[0].replace(b"done", b"none")
    for content in (changed + b"\n", changed + b"\n" + changed, changed + b" " * 5000, b"milk"):
        path.write_bytes(content)
        with pytest.raises(AuditError, match="holds no record of an audit"):
            read_chain(path, 2**20, None)


def test_a_crash_between_two_files(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    append(path, 4)
    path.rename(tmp_path / "audit.jsonl.000000000001")
    append(path, 4)
    assert verdict(path).breaks == ()
    assert len(files_of(path)) == 2


def test_a_disk_that_is_full_and_then_is_not(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    chain = read_chain(path, 2**20, None)
    files = AuditFiles(path)
    lines = more(chain, 10)
    with largest_file(1000):
        done, failure = files.write(lines)
        assert 0 < done < len(lines)
        assert failure is not None and str(path) in failure
        assert files.write(lines[done:])[0] == 0
    rest = lines[done:]
    assert files.write(rest) == (len(rest), None)
    result = verdict(path)
    assert (result.breaks, result.records) == ((), len(lines))


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    path = tmp_path / "none" / "audit.jsonl"
    chain = read_chain(path, 2**20, None)
    files = AuditFiles(path)
    lines = more(chain, 1)
    done, failure = files.write(lines)
    assert done == 0
    assert failure is not None and "its folder is not there" in failure
    path.parent.mkdir()
    assert files.write(lines) == (2, None)
    assert verdict(path).breaks == ()


def test_a_file_of_something_else_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("milk\n")
    with pytest.raises(AuditError, match="holds no record of an audit"):
        read_chain(path, 2**20, None)
    assert path.read_text() == "milk\n"


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    path.mkdir()
    with pytest.raises(AuditError, match="cannot be read"):
        read_chain(path, 2**20, None)


def test_records_are_found_in_all_files(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    append(path, 40, max_bytes=1500)
    (tmp_path / "audit.jsonl.bak").write_text("nothing of ours")
    numbers = [record.number for record in read_since(path, 0, 1000)]
    assert numbers == list(range(1, len(numbers) + 1))
    for since in range(0, len(numbers), 3):
        assert [record.number for record in read_since(path, since, 5)] == numbers[since : since + 5]
