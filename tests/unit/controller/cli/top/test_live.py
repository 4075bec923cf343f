"""``trainyard top`` in a pseudo-terminal: a resize, keys, the end, and a restart of the controller."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from evaluation.bench.support.api_client import Controller
from evaluation.bench.support.free_port import free_port
from evaluation.bench.support.waiting import wait_until
from tests.support.controller.api.cases import batch, spec

SWITCHED, BACK = "\x1b[?1049h", "\x1b[?1049l"
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")
_SIZES_AND_COLOURS = ("COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR")
_SHELLS_KEYS = termios.ICANON | termios.ECHO


class TopProcess:
    """The command in a terminal of its own, whose output is collected."""

    def __init__(self, url: str, columns: int = 100, rows: int = 24, **environment: str) -> None:
        self._terminal, child = pty.openpty()
        self.resize(columns, rows)
        self.before = self.shells_keys
        kept = {name: value for name, value in os.environ.items() if name not in _SIZES_AND_COLOURS}
        # setsid makes the terminal that of the command, so that Ctrl-C comes as a signal.
        command = ["setsid", "--ctty", sys.executable, "-m", "controller.cli.main", "top", "--url", url]
        self.process = subprocess.Popen(
            command, stdin=child, stdout=child, stderr=child, env=kept | {"TERM": "xterm-256color"} | environment
        )
        os.close(child)
        self.text = ""
        self._thread = threading.Thread(target=self._collect)
        self._thread.start()

    def _collect(self) -> None:
        with contextlib.suppress(OSError):  # the other end is closed
            while part := os.read(self._terminal, 65_536):
                self.text += part.decode(errors="replace")

    def resize(self, columns: int, rows: int) -> None:
        fcntl.ioctl(self._terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def press(self, keys: bytes) -> None:
        os.write(self._terminal, keys)

    @property
    def frames(self) -> list[list[str]]:
        """The lines of each frame that was shown whole, without colours."""
        parts = self.text.partition(SWITCHED)[2].partition(BACK)[0].split("\x1b[H")[1:]
        return [_CONTROL.sub("", part).replace("\r", "").split("\n") for part in parts]

    def wait(self, text: str, seconds: float = 30.0) -> list[str]:
        """Returns the first new frame that has a text."""
        seen = len(self.frames)

        def found() -> list[str] | None:
            new = self.frames[max(seen - 1, 0) : -1]  # the last one may not have come as a whole
            return next((frame for frame in new if any(text in line for line in frame)), None)

        frame = wait_until(found, seconds, what=f"a frame with {text}")
        assert frame is not None
        return frame

    @property
    def shells_keys(self) -> int:
        return int(termios.tcgetattr(self._terminal)[3]) & _SHELLS_KEYS

    def status(self) -> int:
        """Wait for the end; the exit status."""
        status = self.process.wait(20.0)
        self._thread.join(10)  # all that it has shown is there
        return status

    def close(self) -> None:
        """End the command, if it still runs."""
        self.process.kill()
        self.process.wait()
        self._thread.join(10)
        os.close(self._terminal)


Start = Callable[..., TopProcess]


@pytest.fixture
def start() -> Iterator[Start]:
    """Returns what starts the command."""
    started: list[TopProcess] = []

    def begin(url: str, **environment: str) -> TopProcess:
        started.append(TopProcess(url, **environment))
        return started[-1]

    yield begin
    for top in started:
        top.close()


def with_a_job(folder: Path) -> Controller:
    controller = Controller(folder, token=False, journal=str(folder / "journal")).start()
    assert controller.call("PUT", "/v1/jobs/first", spec(5000)).ok
    return controller


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Controller]:
    """A controller that all tests may use which do not stop it, and leave its first job as it is."""
    controller = with_a_job(tmp_path_factory.mktemp("running"))
    yield controller
    controller.stop()


@pytest.fixture
def yard(tmp_path: Path) -> Iterator[Controller]:
    """A controller of the test's own."""
    controller = with_a_job(tmp_path)
    yield controller
    controller.stop()


def report(yard: Controller, job: str, iteration: float) -> None:
    points = [{"iteration": iteration, "time": time.time(), "metric": 0.5}]
    assert yard.call("POST", "/v1/hosts/h1/reports", batch({"job": job, "points": points})).json()["refused"] == []


def test_it_is_live_follows_the_size_and_ends_by_q(yard: Controller, start: Start) -> None:
    top = start(yard.url)
    top.wait("first")
    assert top.shells_keys == 0, "keys come as they are pressed, and are not shown"
    report(yard, "first", 25.0)
    assert any("###" in line or "███" in line for line in top.wait("50 %"))
    yard.call("PUT", "/v1/jobs/second", spec(5001))
    top.wait("second")
    for number in range(20):
        yard.call("PUT", f"/v1/jobs/more-{number}", spec(6000 + number))
    top.resize(60, 12)
    small = top.wait("16 more")
    assert len(small) <= 12 and max(map(len, small)) <= 60
    top.press(b"x")
    top.press(b"q")
    assert top.status() == 0
    assert "Traceback" not in top.text
    assert top.text.rstrip().endswith(BACK), "what was shown before is there again"


def test_it_shows_at_most_two_frames_a_second_whatever_is_pressed(running: Controller, start: Start) -> None:
    top = start(running.url)
    top.wait("first")
    began, shown = time.monotonic(), len(top.frames)
    for _ in range(30):
        top.press(b"x")
        time.sleep(0.05)
    frames, seconds = len(top.frames) - shown, time.monotonic() - began
    top.press(b"Q")
    assert top.status() == 0
    assert 1 <= frames <= 2 * seconds + 1


@pytest.mark.parametrize(("end", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_it_and_the_terminal_is_as_before(
    running: Controller, start: Start, end: signal.Signals, status: int
) -> None:
    top = start(running.url)
    top.wait("first")
    if end is signal.SIGINT:
        top.press(b"\x03")
    else:
        top.process.send_signal(end)
    wait_until(lambda: BACK in top.text, what="the screen before")
    wait_until(lambda: top.shells_keys == top.before, what="the modes before")
    assert top.status() == status
    assert "Traceback" not in top.text


def test_it_outlives_a_restart_of_the_controller(yard: Controller, start: Start) -> None:
    top = start(yard.url)
    top.wait("first")
    yard.stop()
    frame = top.wait("controller gone since")
    assert "trying again" in frame[0] and any("first" in line for line in frame), "what was known stays"
    said = re.compile(r"controller gone since ([0-9]+) s")
    wait_until(lambda: len(set(said.findall(top.text))) >= 2, what="a time that goes on")
    yard.start()
    yard.call("PUT", "/v1/jobs/later", spec(5001))
    assert not any("controller gone" in line for line in top.wait("later"))
    top.press(b"q")
    assert top.status() == 0


def test_without_a_controller_the_terminal_is_left_alone(start: Start) -> None:
    top = start(f"http://127.0.0.1:{free_port()}")
    assert top.status() == 1
    assert "no controller answers" in top.text and SWITCHED not in top.text


def test_colours_are_shown_only_where_they_are_wanted(running: Controller, start: Start) -> None:
    colourful, plain = start(running.url), start(running.url, NO_COLOR="1")
    for top in (colourful, plain):
        top.wait("first")
        top.press(b"q")
        assert top.status() == 0
    colours = re.compile(r"\x1b\[[0-9;]*3[1-7]")
    assert colours.search(colourful.text) and not colours.search(plain.text)


def test_a_dumb_terminal_is_refused(running: Controller, start: Start) -> None:
    top = start(running.url, TERM="dumb")
    assert top.status() == 2
    assert "--once prints one picture" in top.text
