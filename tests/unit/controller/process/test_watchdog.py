"""A loop that stands still is seen, told of and left to systemd: a real controller, and a socket of the test's own."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from controller.process import watchdog
from controller.process.sd_notify import Notifier
from evaluation.bench.support.free_port import free_port
from evaluation.bench.support.waiting import wait_until
from tests.support.paths import ROOT, SUPPORT

STILL_SECONDS = 0.6
"""What counts as standing still here; the product waits longer, see the test of that."""


class Systemd:
    """The other end of sd_notify."""

    def __init__(self, name: str) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind("\0" + name[1:] if name.startswith("@") else name)

    def told(self, seconds: float) -> list[str]:
        """What is said from now on for so long."""
        found: list[str] = []
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            self._socket.settimeout(left)
            try:
                found += self._socket.recv(4096).decode().split("\n")
            except TimeoutError:
                break
        return found

    def read_until(self, state: str) -> list[str]:
        """What is said until ``state`` is."""
        found: list[str] = []
        self._socket.settimeout(60)
        while state not in found:
            found += self._socket.recv(4096).decode().split("\n")
        return found

    def close(self) -> None:
        self._socket.close()


@pytest.fixture
def systemd() -> Iterator[tuple[str, Systemd]]:
    name = f"@trainyard-test-{os.getpid()}-{time.monotonic_ns()}"
    made = Systemd(name)
    yield name, made
    made.close()


def start(folder: Path, name: str, **environment: str) -> subprocess.Popen[bytes]:
    config = folder / "conf.yaml"
    config.write_text(f"api: {{port: {free_port()}}}\nopenflow: {{port: 0}}\n")
    program = SUPPORT / "controller" / "process" / "standing_still.py"
    with (folder / "log").open("wb") as log:
        return subprocess.Popen(
            [sys.executable, "-W", "ignore", str(program)],
            env=os.environ
            | {"TRAINYARD_CONFIG": str(config), "NOTIFY_SOCKET": name, "PYTHONPATH": str(ROOT)}
            | environment,
            stdout=log,
            stderr=log,
        )


def test_a_loop_that_stands_still_is_told_of_and_no_longer_said_to_live(
    tmp_path: Path, systemd: tuple[str, Systemd]
) -> None:
    name, service = systemd
    environment = {"STAND_STILL_SECONDS": "3", "STILL_SECONDS": f"{STILL_SECONDS}", "WATCHDOG_USEC": "20000000"}
    process = start(tmp_path, name, **environment)
    try:
        service.read_until("READY=1")
        for _ in range(2):
            service.read_until("WATCHDOG=1")
        process.send_signal(signal.SIGUSR1)
        time.sleep(2 * STILL_SECONDS)
        service.told(0.01)
        assert "WATCHDOG=1" not in service.told(0.6), "the loop stands still"
        log = (tmp_path / "log").read_text()
        assert "trainyard: the event loop has stood still for " in log
        assert "in stand_still_here" in log
        service.read_until("WATCHDOG=1")
        process.send_signal(signal.SIGTERM)
        assert "STOPPING=1" in service.read_until("STOPPING=1")
        assert process.wait(20) == 0
    finally:
        process.kill()
        process.wait()
    log = (tmp_path / "log").read_text()
    assert "the event loop goes on, after it has stood still for " in log
    assert log.count("in stand_still_here") == 1, "once for each time"
    assert "Traceback" not in log


def test_what_keeps_the_interpreter_itself_is_told_too(tmp_path: Path) -> None:
    path = str(tmp_path / "socket")
    service = Systemd(path)
    process = start(tmp_path, path, STILL_SECONDS=f"{STILL_SECONDS}")
    try:
        assert service.read_until("READY=1") == ["READY=1"], "nobody asked for signs of life"
        process.send_signal(signal.SIGUSR1)
        wait_until(lambda: "in stand_still_here" in (tmp_path / "log").read_text())
        assert service.told(0.1) == []
    finally:
        process.kill()
        process.wait()
        service.close()


def test_five_seconds_or_half_of_what_systemd_waits() -> None:
    def still_seconds(**environment: str) -> float:
        return watchdog.Watchdog(Notifier({"NOTIFY_SOCKET": "/nowhere"} | environment)).still_seconds

    assert still_seconds() == still_seconds(WATCHDOG_USEC="30000000") == 5.0
    assert still_seconds(WATCHDOG_USEC="4000000") == 2.0


@pytest.mark.parametrize(
    ("environment", "seconds"),
    [
        ({"WATCHDOG_USEC": "2500000"}, 2.5),
        ({"WATCHDOG_USEC": "2500000", "WATCHDOG_PID": str(os.getpid())}, 2.5),
        ({"WATCHDOG_USEC": "2500000", "WATCHDOG_PID": "1"}, None),
        ({"WATCHDOG_USEC": "0"}, None),
        ({"WATCHDOG_USEC": "soon"}, None),
        ({}, None),
    ],
)
def test_what_systemd_asks_for(environment: dict[str, str], seconds: float | None) -> None:
    assert Notifier({"NOTIFY_SOCKET": "/run/notify"} | environment).watchdog_seconds == seconds
    assert Notifier(environment).watchdog_seconds is None, "nobody listens"


def test_states_go_in_one_datagram_and_nowhere_without_complaint(tmp_path: Path) -> None:
    path = str(tmp_path / "socket")
    service = Systemd(path)
    Notifier({"NOTIFY_SOCKET": path}).say("READY=1", "STATUS=it works")
    assert service.told(0.2) == ["READY=1", "STATUS=it works"]
    service.close()
    for environment in ({}, {"NOTIFY_SOCKET": path}, {"NOTIFY_SOCKET": "@nobody-is-here"}):
        Notifier(environment).say("READY=1")
