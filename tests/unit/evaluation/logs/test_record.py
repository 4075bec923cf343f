"""What a run writes becomes a recording: its streams, without anything of the machine, bounded."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from evaluation.logs import __main__ as command
from evaluation.logs.environment import make
from evaluation.logs.errors import RecordingError
from evaluation.logs.keep import ABOUT, LIMIT_BYTES, keep
from evaluation.logs.neutral import Neutral
from evaluation.logs.recording import Recording, Streams, training
from evaluation.logs.run import run
from evaluation.logs.truth import OUTPUT, VARIABLE, Series, Truth

NEUTRAL = Neutral({"/tmp/x": "/home/user/run", "/tmp/x/venv": "/home/user/venv"}, "vm", ["192.0.2.2", "fd00::2"])
SAYS = "import sys; print('out', sys.stdout.isatty()); print('err', file=sys.stderr)"


def says(folder: Path, streams: Streams) -> dict[str, str]:
    run((sys.executable, "-c", SAYS), streams, folder, os.environ)
    return {path.name: path.read_bytes().decode() for path in folder.iterdir()}


def test_the_streams_of_a_run_go_where_a_launcher_puts_them(tmp_path: Path) -> None:
    folders = [tmp_path / name for name in ("apart", "joined", "terminal")]
    for folder in folders:
        folder.mkdir()
    assert says(folders[0], "apart") == {"stdout.log": "out False\n", "stderr.log": "err\n"}
    assert set(says(folders[1], "joined")["output.log"].split("\n")) == {"out False", "err", ""}
    assert says(folders[2], "terminal") == {"terminal.log": "out True\r\nerr\r\n"}


def test_a_command_that_fails_says_what_it_said(tmp_path: Path) -> None:
    with pytest.raises(RecordingError, match=r"(?s)failed \(exit status 3\).*no such thing"):
        run((sys.executable, "-c", "print('no such thing'); raise SystemExit(3)"), "apart", tmp_path, os.environ)


@pytest.mark.parametrize(
    ("text", "neutral"),
    [
        ("/tmp/x/a and /tmp/x/venv/lib", "/home/user/run/a and /home/user/venv/lib"),
        ("events.vm.12 of vm, vmlinux, my-vm", "events.gpu01.12 of gpu01, vmlinux, my-vm"),
        ("ip=192.0.2.2:80 1192.0.2.21 [fd00::2]", "ip=10.0.0.1:80 1192.0.2.21 [10.0.0.1]"),
    ],
)
def test_nothing_of_the_machine_is_left(text: str, neutral: str) -> None:
    assert NEUTRAL.text(text) == neutral


def test_a_build_setting_does_not_name_the_machine_that_built_a_library() -> None:
    toolset = Path("/opt", "rh", "tools-1.2", "root")
    assert NEUTRAL.text(f"CXX_COMPILER={toolset}/usr/bin/c++, X=1") == "CXX_COMPILER=/usr/bin/c++, X=1"


def series() -> dict[str, object]:
    return {"metric": "loss", "direction": "min", "iterations": 2, "counts": "steps", "points": [[1, 0.5], [2, 0.25]]}


def test_a_recording_has_what_its_patterns_name_and_what_it_should_be_read_as(tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    (ran / "logs" / "2026_1").mkdir(parents=True)
    (ran / "stdout.log").write_text("step 1 in /tmp/x on vm\n")
    (ran / "stderr.log").touch()
    (ran / "logs" / "2026_1" / "a.csv").write_text("step,loss\r\n1,0.5\r\n")
    (ran / "logs" / "2026_1" / "b.bin").write_bytes(b"\0")
    recording = Recording("a", "p", "p", ("p",), "apart", ("logs/*/*.csv",), rename=((r"^logs/[^/]+/", "logs/run/"),))
    keep(recording, ran, tmp_path / "kept", NEUTRAL, series() | {"files": {"logs/run/a.csv": series()}})
    kept = tmp_path / "kept"
    assert sorted(str(path.relative_to(kept)) for path in kept.rglob("*.*")) == [ABOUT, "logs/run/a.csv", "stdout.log"]
    assert (kept / "stdout.log").read_text() == "step 1 in /home/user/run on gpu01\n"
    assert (kept / "logs" / "run" / "a.csv").read_bytes() == b"step,loss\r\n1,0.5\r\n"
    assert "  [2, 0.25]\n" in (kept / ABOUT).read_text()
    assert json.loads((kept / ABOUT).read_text())["points"] == [[1, 0.5], [2, 0.25]]


@pytest.mark.parametrize(
    ("name", "content", "error"),
    [
        ("stdout.log", b"x" * LIMIT_BYTES, "make it shorter"),
        ("stdout.log", b"\xff of /tmp/x", "has /tmp/x of this machine"),
        ("other.log", b"x", "knows of stdout.log, which is not kept"),
    ],
)
def test_what_cannot_be_kept_is_refused_and_the_recording_stays(
    tmp_path: Path, name: str, content: bytes, error: str
) -> None:
    (tmp_path / "ran").mkdir()
    for each in ("stdout.log", "stderr.log"):
        (tmp_path / "ran" / each).touch()
    (tmp_path / "ran" / name).write_bytes(content)
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "old").touch()
    with pytest.raises(RecordingError, match=error):
        keep(
            Recording("a", "p", "p", ("p",)),
            tmp_path / "ran",
            tmp_path / "kept",
            NEUTRAL,
            {"files": {"stdout.log": {}}},
        )
    assert (tmp_path / "kept" / "old").exists()


def test_a_training_says_what_its_logs_should_be_read_as(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "truth.json"
    loss = Series("loss", "min", 2)
    loss.add(1, 0.5)
    loss.add(2, 0.25)
    Truth(loss).write()
    assert not path.exists()
    monkeypatch.setenv(VARIABLE, str(path))
    Truth(loss, {OUTPUT: None, "a.csv": loss}).write()
    assert json.loads(path.read_text()) == series() | {"files": {OUTPUT: None, "a.csv": series()}}


def test_an_environment_needs_its_requirements() -> None:
    with pytest.raises(RecordingError, match=r"requirements/logs/nothing\.txt is missing"):
        make("nothing")


def test_an_unknown_name_is_wrong_input(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        command.main(["kerass"])
    assert ended.value.code == 2
    assert "no program or recording is called kerass" in capsys.readouterr().err
    assert training("trainers.keras3", "--verbose", "1")[1:] == (
        "-m",
        "evaluation.logs.trainings.trainers.keras3",
        "--verbose",
        "1",
    )
