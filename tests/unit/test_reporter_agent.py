"""The agent as a process against the real controller, on loopback: what people see of it from the outside."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from api_client import HOST, Controller

PATTERN = r"iteration (?P<iteration>\d+) accuracy (?P<metric>\S+)"


def spec(port: int, other: str = "h2") -> dict[str, Any]:
    return {"tasks": [{"role": "ps", "host": "h1", "port": port}, {"role": "worker", "host": other}]}


def wait(condition: Callable[[], Any], what: str, seconds: float = 15.0) -> Any:
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, what
        time.sleep(0.01)
    return found


class Agent:
    """A host-reporter for h1 that leaves this machine's packets alone."""

    def __init__(self, folder: Path, url: str) -> None:
        self.jobs, self.log, self._output = folder / "jobs.d", folder / "train.log", folder / "agent.log"
        self.jobs.mkdir()
        token = folder / "token"
        token.write_text(f"{HOST}\n")
        token.chmod(0o600)
        self._command = [sys.executable, "-m", "host_reporter.agent", "--controller", url, "--host", "h1"]
        self._command += ["--token-file", str(token), "--jobs-dir", str(self.jobs), "--period", "0.3", "--no-marking"]
        self._command += ["--progress-dir", str(folder)]
        self.start()

    def start(self) -> None:
        with self._output.open("ab") as output:
            self.process = subprocess.Popen(self._command, stdout=output, stderr=output)

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(15)

    @property
    def said(self) -> str:
        return self._output.read_text()

    def job(self, name: str, port: int) -> Path:
        path = self.jobs / f"{name}.json"
        document = {"id": name, "spec": spec(port), "progress": {"log": str(self.log), "pattern": PATTERN}}
        path.with_suffix(".new").write_text(json.dumps(document))
        return path.with_suffix(".new").rename(path)

    def train(self, *iterations: int) -> None:
        with self.log.open("a") as log:
            log.writelines(f"2026-01-01 12:00:00,123 INFO iteration {i} accuracy 0.{i:04d}\n" for i in iterations)


@pytest.fixture(scope="module")
def controller(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Controller]:
    made = Controller(tmp_path_factory.mktemp("controller")).start()
    yield made
    made.stop()


@pytest.fixture
def agent(controller: Controller, tmp_path: Path) -> Iterator[Agent]:
    made = Agent(tmp_path, controller.url)
    yield made
    made.process.kill()
    made.process.wait()


def state(controller: Controller, job: str) -> dict[str, Any]:
    answer = controller.call("GET", f"/v1/jobs/{job}")
    return answer.json() if answer.ok else {"state": None, "iterations_done": -1}


def test_a_job_from_its_file_to_its_end(controller: Controller, agent: Agent) -> None:
    file = agent.job("whole", 5001)
    wait(lambda: state(controller, "whole")["state"], "registered")
    agent.train(1, 2, 3)
    wait(lambda: state(controller, "whole")["iterations_done"] == 3, "progress")
    took = []
    for i in range(4, 10):
        began = time.monotonic()
        agent.train(i)
        wait(lambda i=i: state(controller, "whole")["iterations_done"] == i, "progress")
        took.append(time.monotonic() - began)
    # The best of them: this machine is shared, but nothing waits for a period.
    assert min(took) < 0.1, took
    assert state(controller, "whole")["last_metric"] == pytest.approx(0.0009)
    # Gone and there again under the same id: the old run ends before the new one begins.
    file.unlink()
    wait(lambda: state(controller, "whole")["state"] == "ended", "end")
    agent.log.unlink()
    agent.job("whole", 5001)
    agent.train(1)
    wait(lambda: state(controller, "whole")["iterations_done"] == 1, "a new run")
    assert state(controller, "whole")["state"] == "running"
    assert agent.stop() == 0
    assert state(controller, "whole")["state"] == "running", "an agent that stops ends no job"
    assert "Traceback" not in agent.said
    agent.start()
    agent.train(2)
    wait(lambda: state(controller, "whole")["iterations_done"] == 2, "after the agent's restart")
    # What the log says while the agent is being stopped is still told.
    agent.train(3)
    assert agent.stop() == 0
    assert state(controller, "whole")["iterations_done"] == 3


def test_bad_files_cost_a_line_each_and_nothing_else(controller: Controller, agent: Agent) -> None:
    bad = {
        "broken.yaml": b"id: [",
        "empty.yaml": b"",
        "text.json": b"hello",
        "latin.yaml": b"id: \xe9",
        "nul.json": json.dumps({"id": "nul", "progress": {"jsonl": "/tmp/a\0b"}}).encode(),
        "dates.yaml": b"2024-99-99: 1",
        "key.yaml": b"2024-01-01: 1",
        "deep.json": b"[" * 100_000,
        "laughs.yaml": b"a: &a [x,x,x,x,x,x,x,x,x]\n"
        + b"".join(b"%c: &%c [%s]\n" % (k + 1, k + 1, b",".join([b"*%c" % k] * 9)) for k in range(97, 108)),
        "spec.json": json.dumps({"id": "spec", "spec": {"weight": -1}}).encode(),
        "unknown.json": json.dumps({"id": "unknown", "spec": spec(5004, "nosuch")}).encode(),
        "pattern.json": json.dumps({"id": "p", "progress": {"log": "x", "pattern": "("}}).encode(),
    }
    for name, content in bad.items():
        (agent.jobs / name).write_bytes(content)
    os.mkfifo(agent.jobs / "pipe.json")
    agent.job("good", 5002)
    agent.train(7)
    with agent.log.open("ab") as log:
        log.write(b"\xff\x00 iteration x accuracy y\niteration 1e999 accuracy 1\n" + b"z" * 2**20)
    wait(lambda: state(controller, "good")["iterations_done"] == 7, "the good job goes on")
    quiet = {"nul.json"}
    wait(lambda: all(name in agent.said for name in set(bad) - quiet - {"unknown.json"}), agent.said)
    wait(lambda: "nosuch" in agent.said, "the controller's refusal is told")
    # After two more looks at the folder nothing was said twice.
    time.sleep(2.1)
    lines = agent.said.splitlines()
    for name in set(bad) - quiet - {"unknown.json"}:
        assert sum(name in line for line in lines) == 1, (name, lines)
    # A file that is repaired is taken.
    (agent.jobs / "broken.yaml").write_text("id: mended\nspec: {tasks: [{role: ps, host: h1, port: 5005}]}\n")
    wait(lambda: state(controller, "mended")["state"], "mended")
    assert agent.process.poll() is None
    assert agent.stop() == 0
    assert "Traceback" not in agent.said


def test_reports_outlive_a_controller_that_loses_its_memory(agent: Agent, controller: Controller) -> None:
    agent.job("kept", 5003)
    agent.train(1, 2)
    wait(lambda: state(controller, "kept")["iterations_done"] == 2, "before")
    controller.stop(kill=True)
    agent.train(3)
    agent.log.rename(agent.log.with_suffix(".1"))
    agent.train(4)
    wait(lambda: "reports are kept" in agent.said, "the agent says that the controller is away")
    controller.start()
    wait(lambda: state(controller, "kept")["iterations_done"] == 4, "after")
    wait(lambda: "answers" in agent.said, "and that it is back")
    assert agent.stop() == 0
    assert "Traceback" not in agent.said


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--controller", "ftp://x"], "controller"),
        (["--controller", "http://h:99999"], "controller"),
        (["--token-file", "/nonexistent"], "token_file"),
        (["--period", "nan"], "period"),
        (["--host", "a b"], "host"),
        (["--rate-bps", "1e8"], "interface"),
        (["--config", "/nonexistent"], "/nonexistent"),
    ],
)
def test_wrong_options_get_one_line(arguments: list[str], words: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "host_reporter.agent", *arguments],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert done.stderr.startswith("host-reporter: ")
    assert words in done.stderr
