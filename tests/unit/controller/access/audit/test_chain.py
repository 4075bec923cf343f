from __future__ import annotations

from typing import Any

import pytest

from controller.access.audit.chain import Chain, Line
from controller.access.audit.record import BEGINNING, read
from controller.access.audit.verify import Verdict, Verifier


def chain(count: int, *, max_bytes: int = 2**20, keep: int | None = None) -> list[Line]:
    made = Chain(max_bytes, keep)
    return [line for i in range(count) for line in made.add({"time": float(i), "who": "ann", "after": {"i": i}})]


def files(lines: list[Line]) -> list[list[bytes]]:
    """The files that the lines make."""
    made: list[list[bytes]] = []
    for line in lines:
        if line.oldest is not None:
            made.append([])
        made[-1].append(line.data)
    return made


def verdict(*contents: list[bytes]) -> Verdict:
    verifier = Verifier()
    for n, content in enumerate(contents, 1):
        verifier.add_file(f"f{n}", content)
    return verifier.verdict()


def test_each_record_holds_the_hash_of_the_one_before() -> None:
    lines = chain(3)
    previous = BEGINNING
    for number, line in enumerate(lines, 1):
        found = read(line.data.rstrip(b"\n"))
        assert found is not None
        assert (found.number, found.previous) == (number, previous)
        previous = found.hash
    assert verdict(*files(lines)).breaks == ()
    assert lines[0].link.content["action"] == "file"


@pytest.mark.parametrize("at", [0, 2, 4])
def test_every_changed_byte_is_found(at: int) -> None:
    lines = [line.data for line in chain(4)]
    for position in range(0, len(lines[at]) - 1, 7):
        changed = bytearray(lines[at])
        changed[position] = changed[position] ^ 1
        result = verdict([*lines[:at], bytes(changed), *lines[at + 1 :]])
        assert result.breaks, bytes(changed)
        assert f"f1:{at + 1}: the line is not as it was written" in result.breaks[0]


def test_a_record_that_is_written_anew_breaks_the_chain_behind_it() -> None:
    lines = chain(4)
    forger = Chain(2**20, None, number=2, hash=lines[1].link.hash, starts=[1])
    forged = forger.add({"time": 1.0, "who": "bob", "after": {"i": 1}})
    result = verdict([lines[0].data, lines[1].data, forged[0].data, lines[3].data, lines[4].data])
    assert result.breaks == ("f1:4: record 4 does not hold the hash of record 3: one of them was replaced",)


@pytest.mark.parametrize(
    ("order", "said"),
    [
        ([0, 1, 3, 4], "f1:3: record 3 is missing"),
        ([0, 1, 4], "f1:3: records 3 to 4 are missing before it"),
        ([0, 1, 2, 2, 3, 4], "f1:4: record 3 stands after record 3"),
        ([0, 2, 1, 3, 4], "f1:2: record 2 is missing"),
    ],
)
def test_records_that_are_removed_or_moved_are_found(order: list[int], said: str) -> None:
    lines = [line.data for line in chain(4)]
    assert said in " ".join(verdict([lines[i] for i in order]).breaks)


def test_a_cut_off_line_before_the_first_record_of_all_is_no_break() -> None:
    lines = [line.data for line in chain(3)]
    at_the_beginning = verdict([b"{\n", *lines])
    assert at_the_beginning.breaks == ()
    assert at_the_beginning.notes == ("f1:1: the line is no record: a crash or a full disk has cut it off",)
    assert verdict([b"{\n", *lines[1:]]).breaks[0] == "f1:1: the line is not as it was written"


def test_a_line_that_a_crash_has_cut_off_is_no_break() -> None:
    lines = [line.data for line in chain(4)]
    at_the_end = verdict([*lines[:4], lines[4][:40]])
    assert at_the_end.breaks == ()
    assert at_the_end.notes == ("f1:5: the line is cut off, as a crash leaves it; its record is lost",)
    # The next start ends the line, and goes on from the last whole record.
    gone_on = verdict([*lines[:4], lines[4][:40] + b"\n", lines[4]])
    assert gone_on.breaks == ()
    assert "f1:5: the line is no record" in gone_on.notes[0]


def test_a_last_line_that_is_whole_and_wrong_is_a_break() -> None:
    lines = [line.data for line in chain(4)]
    assert verdict([*lines[:4], lines[4].replace(b"ann", b"bob")]).breaks


def test_rotation_keeps_the_chain_whole() -> None:
    made = files(chain(40, max_bytes=2000))
    assert len(made) > 4
    assert all(sum(map(len, file)) <= 2000 for file in made)
    result = verdict(*made)
    assert (result.breaks, result.notes) == ((), ())
    assert result.records == 40 + len(made)
    before = read(made[1][-1].rstrip(b"\n"))
    begin = read(made[2][0].rstrip(b"\n"))
    assert before is not None and begin is not None
    assert begin.previous == before.hash


def test_a_removed_file_is_found() -> None:
    made = files(chain(40, max_bytes=2000))
    missing = verdict(made[0], *made[2:])
    assert len(missing.breaks) == 1
    assert "are missing before it" in missing.breaks[0]
    assert "missing: the files were removed, or are not given" in verdict(*made[1:]).breaks[0]


def test_files_that_the_setting_deletes_are_told_from_files_that_others_remove() -> None:
    lines = chain(60, max_bytes=2000, keep=2)
    made = files(lines)
    oldest = lines[-1].oldest or max(line.oldest for line in lines if line.oldest is not None)
    kept = [file for file in made if (found := read(file[0].rstrip(b"\n"))) is not None and found.number >= oldest]
    assert len(kept) == 3
    result = verdict(*kept)
    assert result.breaks == ()
    assert result.notes == (
        f"records 1 to {oldest - 1} are not here: the controller has deleted old files (audit.keep)",
    )
    assert "are missing" in verdict(*kept[1:]).breaks[0]


def test_lost_records_are_said() -> None:
    made = Chain(2**20, None)
    lines = [*made.add({"time": 0.0}), *made.add({"time": 1.0, "lost": 7})]
    result = verdict([line.data for line in lines])
    assert result.breaks == ()
    assert "7 records before it were lost" in result.notes[0]


def test_lines_that_are_no_records_at_all() -> None:
    junk: list[Any] = [b"[]\n", b"{}\n", b'{"number":1}\n', b"\xff\n", b"12\n"]
    assert len(verdict(junk).breaks) == len(junk)
