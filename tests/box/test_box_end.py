"""A real box ends with whoever started it, by whatever way that went, and leaves neither a process nor a file."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from evaluation.bench.support.waiting import wait_until
from tests.support.paths import ROOT

BOX = (sys.executable, "-m", "topologies.box.box", "--memory", "512M", "--", "sh", "-c")


def processes(wanted: Callable[[int, int], bool]) -> list[int]:
    """The processes whose parent and session are wanted."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            fields = (place / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if fields[0] != "Z" and wanted(int(fields[1]), int(fields[3])):
            found.append(int(place.name))
    return found


def left_in(folder: Path) -> list[Path]:
    """What a box has left; the locks by which boxes share out processors stay, empty."""
    return [path for path in folder.iterdir() if path.suffix != ".lock"]


@pytest.mark.parametrize(
    ("number", "status"),
    [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGKILL, -9)],
    ids=["INT", "TERM", "KILL"],
)
def test_a_box_ends_with_its_caller(number: signal.Signals, status: int, tmp_path: Path) -> None:
    command = [*BOX, "echo up; sleep 300"]
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    with subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE) as caller:
        try:
            assert caller.stdout is not None
            assert caller.stdout.readline() == b"up\n"
            (kernel,) = processes(lambda parent, session: parent == caller.pid and session != os.getsid(0))
            assert len(processes(lambda _parent, session: session == kernel)) > 1
            caller.send_signal(number)
            assert caller.wait(30) == status
        finally:
            caller.kill()
    wait_until(lambda: not (processes(lambda _parent, session: session == kernel) or left_in(tmp_path)), 30.0)


def test_a_box_ends_when_nobody_reads_what_it_says(tmp_path: Path) -> None:
    command = [*BOX, "while :; do echo more; done"]
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    with subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as caller:
        try:
            assert caller.stdout is not None
            assert caller.stderr is not None
            assert caller.stdout.readline() == b"more\n"
            (kernel,) = processes(lambda parent, session: parent == caller.pid and session != os.getsid(0))
            caller.stdout.close()
            assert caller.wait(30) == 141
            assert caller.stderr.read() == b""
            assert left_in(tmp_path) == []
        finally:
            caller.kill()
    # A killed process takes a moment to go.
    wait_until(lambda: not processes(lambda _parent, session: session == kernel), 30.0)


def test_what_the_command_says_and_how_it_ends_come_back(tmp_path: Path) -> None:
    command = [*BOX, "echo out; echo err >&2; exit 7"]
    done = subprocess.run(
        command, cwd=ROOT, env=os.environ | {"TMPDIR": str(tmp_path)}, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (7, "out\n", "err\n")
    assert left_in(tmp_path) == []
