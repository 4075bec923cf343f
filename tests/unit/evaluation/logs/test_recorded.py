"""Each recording says what it is and what it should be read as, is small, and has nothing of a real machine."""

from __future__ import annotations

import datetime
import json
import re
import socket
from pathlib import Path
from typing import Any

import pytest

from evaluation.logs.catalogue import RECORDINGS
from evaluation.logs.environment import REQUIREMENTS
from evaluation.logs.keep import ABOUT, LIMIT_BYTES
from evaluation.logs.neutral import HOME
from evaluation.logs.run import OUTPUTS
from tests.support.paths import DATA, ROOT

RECORDED = DATA / "logs" / "recorded"
FOLDERS = sorted(RECORDED.iterdir())
OF_A_MACHINE = re.compile(
    rb"(?<!\w)/(?:work|tmp|root)/|" + re.escape(str(ROOT).encode()) + rb"|" +
    rb"\b" + re.escape(socket.gethostname().encode()) + rb"\.\d"
)  # fmt: skip


def files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def about(folder: Path) -> Any:
    return json.loads((folder / ABOUT).read_text())


def check_series(series: Any) -> None:
    assert set(series) == {"metric", "direction", "iterations", "counts", "points"}
    assert series["direction"] in {"max", "min"}
    assert series["counts"] in {"steps", "epochs"}
    iterations = [iteration for iteration, _ in series["points"]]
    assert iterations == sorted(set(iterations)) != []
    assert series["iterations"] is None or iterations[-1] <= series["iterations"]


def test_what_the_command_records_is_there_and_nothing_else() -> None:
    assert [folder.name for folder in FOLDERS] == sorted(recording.name for recording in RECORDINGS)
    assert {path.stem for path in REQUIREMENTS.iterdir()} == {recording.program for recording in RECORDINGS}


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_a_recording_says_what_it_is_and_what_it_should_be_read_as(folder: Path) -> None:
    told = about(folder)
    (recording,) = (recording for recording in RECORDINGS if recording.name == folder.name)
    assert told.pop("program") == recording.package
    assert all(told.pop(field) for field in ("version", "command"))
    assert datetime.date.fromisoformat(told.pop("date"))
    assert told.pop("streams") == recording.streams
    by_file = told.pop("files")
    check_series(told)
    for name, series in by_file.items():
        assert (folder / name).is_file()
        check_series(series)
    assert by_file, "a recording of which nothing can be read"
    assert {path.name for path in files(folder)} & set(OUTPUTS[recording.streams])


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_a_recording_is_small_and_of_no_machine(folder: Path) -> None:
    assert sum(path.stat().st_size for path in files(folder)) < LIMIT_BYTES
    for path in files(folder):
        content = path.read_bytes()
        assert OF_A_MACHINE.search(content) is None, path
        assert HOME.encode() in content or b"/home/" not in content, path


NUMBER = re.compile(rb"\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_what_a_file_should_be_read_as_is_printed_there(folder: Path) -> None:
    """Programs print two digits or more, and some print per cent."""
    for name, series in about(folder)["files"].items():
        content = (folder / name).read_bytes()
        numbers = [float(number) for number in NUMBER.findall(content)]
        for _, value in series["points"] if b"\0" not in content else ():
            close = [pytest.approx(abs(value), rel=0.01), pytest.approx(100 * abs(value), rel=0.01)]
            assert any(number == one for one in close for number in numbers), (name, value)


def test_the_guide_names_each_recording_and_its_version() -> None:
    guide = (ROOT / "docs" / "guides" / "formats-recorded.md").read_text()
    for folder in FOLDERS:
        (row,) = (line for line in guide.splitlines() if line.startswith("| ") and f"`{folder.name}`" in line)
        assert row.split(" | ")[1] == about(folder)["version"].partition("+")[0], row
