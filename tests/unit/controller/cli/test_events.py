"""``trainyard events``: a line an event, over restarts of the controller."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from controller.cli.events_command import describe
from controller.cli.main import main
from evaluation.bench.support.api_client import Controller
from evaluation.bench.support.free_port import free_port
from evaluation.bench.support.waiting import wait_until
from tests.support.controller.api.cases import spec


class Command:
    """The command as a process, whose lines are collected."""

    def __init__(self, yard: Controller, *arguments: str) -> None:
        command = [sys.executable, "-m", "controller.cli.main", "events", "--url", yard.url, *arguments]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=os.environ)
        self.out: list[str] = []
        self.err: list[str] = []
        self._threads = [
            threading.Thread(target=self._collect, args=pair)
            for pair in ((self.process.stdout, self.out), (self.process.stderr, self.err))
        ]
        for thread in self._threads:
            thread.start()

    @staticmethod
    def _collect(pipe: Iterator[bytes], into: list[str]) -> None:
        for line in pipe:
            into.append(line.decode().rstrip("\n"))

    def wait(self, text: str) -> str:
        """Returns the first line on stdout that has a text."""
        return self._wait(self.out, text)

    def wait_error(self, text: str) -> str:
        """Returns the first line on stderr that has a text."""
        return self._wait(self.err, text)

    @staticmethod
    def _wait(lines: list[str], text: str) -> str:
        found = wait_until(lambda: [line for line in list(lines) if text in line], 30.0, what=f"a line with {text}")
        return found[0]

    def end(self) -> int:
        self.process.send_signal(signal.SIGINT)
        status = self.process.wait(10)
        for thread in self._threads:
            thread.join()
        assert self.process.stdout is not None and self.process.stderr is not None
        self.process.stdout.close()
        self.process.stderr.close()
        return status


def test_lines_go_on_over_a_restart(tmp_path: Path) -> None:
    yard = Controller(tmp_path, token=False, journal=str(tmp_path / "journal")).start()
    plain, machine = Command(yard, "--since", "0"), Command(yard, "--json")
    try:
        plain.wait("start")
        wait_until(lambda: "trainyard_event_streams 2.0" in yard.call("GET", "/metrics").text)
        yard.call("PUT", "/v1/jobs/a", spec(5000))
        assert plain.wait("plan ").endswith("no jobs")
        assert plain.wait("a: waiting, class 0").endswith("job       a: waiting, class 0, iteration 0 of 50")
        machine.wait('"id":"a"')
        yard.stop()
        assert machine.wait_error("no controller answers").endswith("trying again")
        yard.start()
        assert "were missed" in plain.wait("gap ")
        yard.call("PUT", "/v1/jobs/b", spec(5001))
        machine.wait('"id":"b"')
        plain.wait("b: waiting")
    finally:
        yard.stop()
        statuses = [command.end() for command in (plain, machine)]
    assert statuses == [130, 130]
    documents = [json.loads(line) for line in machine.out]
    ids = [document["id"] for document in documents]
    assert ids == sorted(set(ids))
    assert {"plan", "job", "audit", "gap"} <= {document["event"] for document in documents}
    assert "Traceback" not in "".join(plain.err + machine.err)


def test_where_there_is_no_controller_it_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["events", "--url", f"http://127.0.0.1:{free_port()}"]) == 1
    assert "no controller answers" in capsys.readouterr().err


def test_what_is_no_id_is_wrong_input(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    yard = Controller(tmp_path, token=False).start()
    try:
        assert main(["events", "--url", yard.url, "--since", "x"]) == 2
        assert "'x' is no id of an event" in capsys.readouterr().err
    finally:
        yard.stop()


@pytest.mark.parametrize(
    ("event", "data", "line"),
    [
        (
            "plan",
            {"epoch": 3, "policy": "jpas", "order": [["a", "b"], ["c"]], "classes": {"a": 0, "b": 0, "c": 2}},
            "epoch 3, jpas: a (0) = b (0) > c (2)",
        ),
        ("plan", {"epoch": None, "policy": "jpas", "order": [["a"]], "classes": {"a": 1}}, "jpas: a (1)"),
        ("stage", {"id": "s", "state": "ended", "jobs": []}, "s: ended: no jobs"),
        ("host", {"name": "h1", "state": "silent"}, "h1: silent"),
        ("switch", {"dpid": "01", "ready": False, "reason": "gone"}, "01: not ready: gone"),
        ("switch", {"dpid": "01", "ready": True, "problems": ["p"]}, "01: ready; p"),
        ("problem", {"state": "gone", "problem": "paused"}, "gone: paused"),
        ("gap", {"first": 2, "last": 5}, "the events 2 to 5 were missed"),
        ("settings", {"policy": "las"}, '{"policy": "las"}'),
        ("job", {"id": "a", "state": "removed", "progress": None}, "a: removed"),
        (
            "job",
            {
                "id": "a",
                "state": "running",
                "service_class": None,
                "progress": {"iterations_done": 5.0, "iterations_total": None, "last_metric": 0.25},
                "targets": {"t90": {"iteration": 70.4}, "t95": {"iteration": None}},
            },
            "a: running, class -, iteration 5, metric 0.25, t90 at 70",
        ),
    ],
)
def test_an_event_in_a_line(event: str, data: dict[str, object], line: str) -> None:
    assert describe(event, data) == line
