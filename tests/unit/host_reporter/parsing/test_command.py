"""``trainyard parse``: what is read, by which format, and why lines do not match."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from controller.cli.main import main
from host_reporter.formats.outputs.advice import suggestion
from tests.support.agent.event_files import write_scalars
from tests.support.agent.logs import SAMPLES

LOG = "".join(f"step {i} loss {1 / i}\n" for i in range(1, 101))


@pytest.fixture
def log(tmp_path: Path) -> Path:
    (tmp_path / "log").write_text(LOG + "bye\n")
    return tmp_path / "log"


def test_one_document_for_programs(capsys: pytest.CaptureFixture[str]) -> None:
    path = SAMPLES / "megatron-lm.log"
    assert main(["parse", "--json", str(path)]) == 0
    document = json.loads(capsys.readouterr().out)
    assert any(line.startswith("(min, max)") for line in document.pop("unmatched"))
    assert document == {
        "file": str(path),
        "preset": "megatron-lm",
        "sure": True,
        "metric": "validation loss",
        "direction": "min",
        "iterations": 500000,
        "points": [
            {"iteration": 100.0, "metric": 9.87102, "time": None},
            {"iteration": 200.0, "metric": 8.240515, "time": None},
            {"iteration": 200.0, "metric": 8.21334, "time": None},
            {"iteration": 300.0, "metric": None, "time": None},
        ],
        "lines": 13,
        "matched": 5,
        "problems": [],
    }


def test_a_new_run_and_a_run_that_diverged(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"iteration": 5}\n{"ended": true}\n{"iteration": 1}\n{"iteration": 2, "metric": NaN}\n')
    assert main(["parse", "--json", str(path)]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["preset"], document["sure"]) == ("progress-file", True)
    assert document["points"] == [
        {"iteration": 5.0, "metric": None, "time": None},
        {"iteration": 1.0, "metric": None, "time": None, "run": 2},
        {"iteration": 2.0, "metric": None, "time": None, "diverged": True},
    ]


def test_for_people_the_middle_is_left_out(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["parse", str(log)]) == 0
    shown = capsys.readouterr().out
    assert "general, which is a guess" in shown
    assert "loss, smaller is better" in shown
    assert "101, of which 100 are understood" in shown
    assert "80 more" in shown
    assert "  bye" in shown
    assert main(["parse", "--all", str(log)]) == 0
    assert "more" not in capsys.readouterr().out


def test_a_pattern_of_ones_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "log").write_text("tick 5 is 0.5 good\n")
    assert main(["parse", str(tmp_path / "log")]) == 1
    told = capsys.readouterr()
    assert r"tick\s+(?P<iteration>\d+)" in told.out
    assert "no line so far matches a known format" in told.err
    pattern = r"tick (?P<iteration>\d+) is (?P<metric>\S+)"
    assert main(["parse", "--try", pattern, "--direction", "max", "--json", str(tmp_path / "log")]) == 0
    assert json.loads(capsys.readouterr().out)["points"] == [{"iteration": 5.0, "metric": 0.5, "time": None}]
    assert main(["parse", "--try", "(", str(tmp_path / "log")]) == 2
    assert main(["parse", "--try", "tick", str(tmp_path / "log")]) == 2
    assert "named group" in capsys.readouterr().err


def test_what_cannot_be_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["parse", str(tmp_path / "none")]) == 2
    assert "there is no such file" in capsys.readouterr().err
    assert main(["parse", "--format", "none", __file__]) == 2
    assert "unknown format 'none'; there are: auto, " in capsys.readouterr().err
    (tmp_path / "empty").touch()
    assert main(["parse", "--json", str(tmp_path / "empty")]) == 1
    document = json.loads(capsys.readouterr().out)
    assert (document["preset"], document["points"]) == (None, [])
    assert document["problems"] == ["there is nothing in it"]


def test_a_folder_of_event_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_scalars(tmp_path / "logs" / "train", {1: {"loss": 0.5}})
    assert main(["parse", "--json", str(tmp_path / "logs")]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["preset"], document["metric"]) == ("tensorboard", "loss")
    assert document["points"] == [{"iteration": 1.0, "metric": 0.5, "time": 1001.0}]


@pytest.mark.parametrize(
    ("line", "pattern"),
    [
        ("tick 5 loss=0.5", r"tick\s+(?P<iteration>\d+).*?loss=(?P<metric>[^\s,;]+)"),
        ("n: 12 | quality: 3.5", r"n:\s+(?P<iteration>\d+)"),
        ("nothing here", None),
        ("", None),
    ],
)
def test_a_pattern_is_proposed(line: str, pattern: str | None) -> None:
    assert suggestion(line) == pattern
