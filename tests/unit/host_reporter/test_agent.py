"""The agent as a process against the real controller, on loopback: what people see of it from the outside."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from evaluation.bench.support.api_client import HOST, Controller
from evaluation.bench.support.hosts.reporter_server import ReporterServer
from evaluation.bench.support.waiting import wait_until
from host_reporter.jobs import progress_dir
from host_reporter.options import OptionsError, read_options

PERIOD_SECONDS = 0.3
PATTERN = r"iteration (?P<iteration>\d+) accuracy (?P<metric>\S+)"


def spec(port: int, other: str = "h2") -> dict[str, Any]:
    return {"tasks": [{"role": "ps", "host": "h1", "port": port}, {"role": "worker", "host": other}]}


class Agent:
    """A host-reporter for h1 that leaves this machine's packets alone."""

    def __init__(
        self, folder: Path, url: str, *, prefix: Sequence[str] = (), enforce: Sequence[str] = ("--no-marking",)
    ) -> None:
        self.jobs, self.log, self._output = folder / "jobs.d", folder / "train.log", folder / "agent.log"
        self.jobs.mkdir()
        token = folder / "token"
        token.write_text(f"{HOST}\n")
        token.chmod(0o600)
        self._command = [*prefix, sys.executable, "-m", "host_reporter.agent", "--controller", url, "--host", "h1"]
        self._command += ["--token-file", str(token), "--jobs-dir", str(self.jobs), "--discover", "", *enforce]
        self._command += ["--period", f"{PERIOD_SECONDS}"]
        self._command += ["--progress-dir", str(folder)]
        self.start()

    def start(self) -> None:
        with self._output.open("ab") as output:
            self.process = subprocess.Popen(self._command, stdout=output, stderr=output)

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(15)

    @property
    def log_text(self) -> str:
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
    created = Controller(tmp_path_factory.mktemp("controller")).start()
    yield created
    created.stop()


@pytest.fixture
def agent(controller: Controller, tmp_path: Path) -> Iterator[Agent]:
    created = Agent(tmp_path, controller.url)
    yield created
    created.process.kill()
    created.process.wait()


def state(controller: Controller, job: str) -> dict[str, Any]:
    answer = controller.call("GET", f"/v1/jobs/{job}")
    return answer.json() if answer.ok else {"state": None, "iterations_done": -1}


def test_a_job_from_its_file_to_its_end(controller: Controller, agent: Agent) -> None:
    file = agent.job("whole", 5001)
    wait_until(lambda: state(controller, "whole")["state"], what="registered")
    agent.train(1, 2, 3)
    wait_until(lambda: state(controller, "whole")["iterations_done"] == 3, what="progress")
    took = []
    for i in range(4, 10):
        began = time.monotonic()
        agent.train(i)
        wait_until(lambda i=i: state(controller, "whole")["iterations_done"] == i, what="progress")
        took.append(time.monotonic() - began)
    # The best of them: this machine is shared.
    assert min(took) < 2 * PERIOD_SECONDS, "progress waits for no second period"
    assert state(controller, "whole")["last_metric"] == pytest.approx(0.0009)
    # Gone and there again under the same id: the old run ends before the new one begins.
    file.unlink()
    wait_until(lambda: state(controller, "whole")["state"] == "ended", what="end")
    agent.log.unlink()
    agent.job("whole", 5001)
    agent.train(1)
    wait_until(lambda: state(controller, "whole")["iterations_done"] == 1, what="a new run")
    assert state(controller, "whole")["state"] == "running"
    assert agent.stop() == 0
    assert state(controller, "whole")["state"] == "running", "an agent that stops ends no job"
    assert "Traceback" not in agent.log_text
    agent.start()
    agent.train(2)
    wait_until(lambda: state(controller, "whole")["iterations_done"] == 2, what="after the agent's restart")
    # What the log says while the agent is being stopped is still told.
    agent.train(3)
    assert agent.stop() == 0
    assert state(controller, "whole")["iterations_done"] == 3


@pytest.mark.parametrize("how", ["it says so", "its file goes"])
def test_a_job_that_ends_while_there_is_no_agent_ends_at_the_controller(
    controller: Controller, agent: Agent, how: str
) -> None:
    progress = agent.jobs.parent / "away.jsonl"
    progress.write_text('{"iteration": 1}\n')
    document = {"id": "away", "spec": spec(5020), "progress": {"jsonl": str(progress)}}
    file = agent.jobs / "away.json"
    file.write_text(json.dumps(document))
    agent.job("stays", 5021)
    agent.train(1)
    for job in ("away", "stays"):
        wait_until(lambda job=job: state(controller, job)["state"] == "running", what="told of")
    # Without a farewell: what was not told by now is not told.
    agent.process.kill()
    agent.process.wait()
    if how == "it says so":
        with progress.open("a") as told:
            told.write('{"iteration": 2, "metric": 0.5}\n{"ended": true}\n')
    else:
        file.unlink()
    assert controller.call("PUT", "/v1/jobs/next", spec(5020)).status_code == 409
    agent.start()
    wait_until(lambda: state(controller, "away")["state"] == "ended", what=agent.log_text)
    assert controller.call("PUT", "/v1/jobs/next", spec(5020)).status_code == 201
    assert state(controller, "stays")["state"] == "running"
    # Once, and not a second time: the next run of the same job is not ended by it.
    assert controller.call("DELETE", "/v1/jobs/next").status_code == 204
    assert controller.call("PUT", "/v1/jobs/away", spec(5020)).status_code == 201
    time.sleep(1.5)
    assert state(controller, "away")["state"] == "waiting"
    assert controller.call("DELETE", "/v1/jobs/away").status_code == 204
    assert agent.stop() == 0
    assert "Traceback" not in agent.log_text


def test_bad_files_cost_a_line_each_and_nothing_else(controller: Controller, agent: Agent) -> None:
    bad = {
        "broken.yaml": b"id: [",
        "empty.yaml": b"",
        "text.json": b"hello",
        "latin.yaml": b"id: \xe9",
        "nul.json": json.dumps({"id": "nul", "progress": {"jsonl": "/tmp/a\0b"}}).encode(),
        "dates.yaml": b"2024-99-99: 1",
        "key.yaml": b"2024-01-01: 1",
        "surrogate.json": b'{"id": "s", "progress": {"jsonl": "\\ud800.jsonl"}}',
        "bool.yaml": b"id: !!bool foo",
        "int.yaml": b'id: !!int ""',
        "stamp.yaml": b"id: !!timestamp foo",
        "abyss.yaml": b"[" * 100_000,
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
    (agent.jobs / "loop.json").symlink_to("loop.json")
    agent.job("good", 5002)
    agent.train(7)
    with agent.log.open("ab") as log:
        log.write(b"\xff\x00 iteration x accuracy y\niteration 1e999 accuracy 1\n" + b"z" * 2**20)
    wait_until(lambda: state(controller, "good")["iterations_done"] == 7, what="the good job goes on")
    wait_until(lambda: all(name in agent.log_text for name in set(bad) - {"unknown.json"}), what=agent.log_text)
    wait_until(lambda: "nosuch" in agent.log_text, what="the controller's refusal is told")
    # After two more looks at the folder nothing was said twice.
    time.sleep(2.1)
    lines = agent.log_text.splitlines()
    for name in set(bad) - {"unknown.json"}:
        assert sum(name in line for line in lines) == 1, (name, lines)
    # A file that is repaired is taken.
    (agent.jobs / "broken.yaml").write_text("id: mended\nspec: {tasks: [{role: ps, host: h1, port: 5005}]}\n")
    wait_until(lambda: state(controller, "mended")["state"], what="mended")
    assert agent.process.poll() is None
    assert agent.stop() == 0
    assert "Traceback" not in agent.log_text


def test_reports_outlive_a_controller_that_loses_its_memory(agent: Agent, controller: Controller) -> None:
    agent.job("kept", 5003)
    agent.train(1, 2)
    wait_until(lambda: state(controller, "kept")["iterations_done"] == 2, what="before")
    controller.stop(kill=True)
    agent.train(3)
    agent.log.rename(agent.log.with_suffix(".1"))
    agent.train(4)
    wait_until(lambda: "reports are kept" in agent.log_text, what="the agent says that the controller is away")
    controller.start()
    wait_until(lambda: state(controller, "kept")["iterations_done"] == 4, what="after")
    wait_until(lambda: "answers" in agent.log_text, what="and that it is back")
    assert agent.stop() == 0
    assert "Traceback" not in agent.log_text


def test_a_pattern_without_end_holds_up_no_other_job_no_lease_and_no_stop(tmp_path: Path) -> None:
    server = ReporterServer()
    agent = Agent(tmp_path, server.url)
    try:
        agent.job("good", 5010)
        wait_until(lambda: "good" in server.jobs, what="registered")
        log = tmp_path / "bad.log"
        log.write_text("iteration 7 " + "word " * 40 + "!\n")
        progress = {"log": str(log), "pattern": r"(?P<iteration>\d+) (\w+\s?)+$"}
        (agent.jobs / "bad.json").write_text(json.dumps({"id": "bad", "spec": spec(5011), "progress": progress}))
        wait_until(lambda: "takes too long" in agent.log_text, what=agent.log_text)
        reports = len(server.reports)
        agent.train(5)
        wait_until(lambda: server.points.get("good") == [5], what="the other job goes on")
        wait_until(lambda: len(server.reports) > reports + 2, what="and the lease is renewed")
        assert agent.stop() == 0
        assert agent.log_text.count("takes too long") == 1
    finally:
        agent.process.kill()
        agent.process.wait()
        server.stop()


@pytest.mark.parametrize("first", [signal.SIGTERM, signal.SIGINT])
def test_more_signals_while_it_stops_change_nothing(tmp_path: Path, first: signal.Signals) -> None:
    """The controller takes connections and never answers, so that stopping takes its time."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        agent = Agent(tmp_path, f"http://127.0.0.1:{silent.getsockname()[1]}")
        try:
            agent.job("a", 5012)
            wait_until(lambda: "following" in agent.log_text, what="up")
            agent.process.send_signal(first)
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP) * 20:
                time.sleep(0.03)
                if agent.process.poll() is None:
                    agent.process.send_signal(number)
            assert agent.process.wait(15) == 0, agent.log_text
        finally:
            agent.process.kill()
            agent.process.wait()
    assert agent.log_text.splitlines()[-1].endswith("stopped"), agent.log_text


def test_a_job_whose_file_goes_just_before_the_agent_stops_ends_at_once(controller: Controller, agent: Agent) -> None:
    files = {name: agent.job(name, port) for name, port in (("over", 5030), ("goes-on", 5031))}
    agent.train(1)
    for job in files:
        wait_until(lambda job=job: state(controller, job)["iterations_done"] == 1, what="told of")
    agent.train(2)
    files["over"].unlink()
    assert agent.stop() == 0
    assert (state(controller, "over")["state"], state(controller, "goes-on")["state"]) == ("ended", "running")
    for job in files:
        assert state(controller, job)["iterations_done"] == 2
        controller.call("DELETE", f"/v1/jobs/{job}")


def test_a_hang_up_ends_no_agent_and_costs_a_line(controller: Controller, agent: Agent) -> None:
    agent.job("hung", 5032)
    wait_until(lambda: state(controller, "hung")["state"], what="up")
    agent.process.send_signal(signal.SIGHUP)
    wait_until(lambda: "SIGHUP is ignored" in agent.log_text, what=agent.log_text)
    agent.train(1)
    wait_until(lambda: state(controller, "hung")["iterations_done"] == 1, what="it goes on")
    assert agent.stop() == 0
    assert agent.log_text.count("SIGHUP") == 1


def test_a_wrong_token_that_is_repaired_is_taken_without_a_restart(controller: Controller, agent: Agent) -> None:
    agent.process.kill()
    agent.process.wait()
    token = agent.jobs.parent / "token"
    token.write_text("no-token-of-anyones")
    agent.start()
    agent.job("repaired", 5013)
    wait_until(lambda: "reports are kept" in agent.log_text, what="the refusal is told")
    assert state(controller, "repaired")["state"] is None
    token.write_text(HOST)
    wait_until(lambda: state(controller, "repaired")["state"], what=agent.log_text)
    wait_until(lambda: "answers" in agent.log_text, what=agent.log_text)


def test_without_the_right_to_mark_and_to_order_it_says_so_and_reports(tmp_path: Path) -> None:
    """As root without any capability, or as whoever runs this: its packets and interfaces stay as they are."""
    server = ReporterServer()
    server.set_plan(
        {"host": "h1", "epoch": 1, "policy": "fifo", "mode": "classified", "class_dscp": [59], "class_floor": 0.01}
        | {"other_floor": 0.1, "egress_bps": 1e9}
        | {"marks": [{"job": "a", "service_class": 0, "dscp": 59, "local_port": 5014, "remote": "192.0.2.1"}]}
    )
    powerless = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"] if os.geteuid() == 0 else []
    agent = Agent(tmp_path, server.url, prefix=powerless, enforce=["--interface", "lo"])
    try:
        agent.job("a", 5014)
        agent.train(3)
        wait_until(lambda: server.points.get("a") == [3], what=agent.log_text)
        wait_until(lambda: "traffic is not marked" in agent.log_text, what=agent.log_text)
        wait_until(lambda: "does not order its traffic" in agent.log_text, what=agent.log_text)
        assert agent.stop() == 0
        assert "Traceback" not in agent.log_text
    finally:
        agent.process.kill()
        agent.process.wait()
        server.stop()


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


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("period: !!bool foo\n", ":1: period: 'foo' is no bool"),
        ("period: 5\nhost: " + "[" * 100_000, ":2: nested deeper than 50 levels"),
        ("period: 5\nbogus: 1\n", ":2: bogus: unknown key"),
        ("period: 5\nperiod: 6\n", ":2: period: given twice, first in line 1; keep one"),
        ("\nperiod: .nan\n", ":2: period: "),
        ("- a\n", ":1: it must be keys with values"),
        ("rate_bps: 1e9\n", "give --interface too"),
    ],
)
def test_a_wrong_options_file_is_named_with_its_line(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "options.yaml"
    path.write_text(text)
    with pytest.raises(OptionsError) as refused:
        read_options(["--config", str(path)], {})
    assert words in str(refused.value)
    assert "\n" not in str(refused.value)


def test_the_progress_folder_is_opened_to_all_users_if_it_is_roots(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As root does; who is not root is told what is wrong, by the same look."""
    user = os.geteuid()
    created = tmp_path / "run" / "progress"
    created.mkdir(parents=True, mode=0o755)
    monkeypatch.setattr(os, "geteuid", lambda: 1)
    assert "1777" in str(progress_dir.prepare(created, is_ours=True))
    assert progress_dir.prepare(created, is_ours=False) is None, "another folder is as its operator wants it"
    assert progress_dir.prepare(tmp_path / "none", is_ours=True) is None
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    link = tmp_path / "link"
    link.symlink_to(created)
    assert "cannot be used" in str(progress_dir.prepare(link, is_ours=True)), "a link could lead anywhere"
    trouble = progress_dir.prepare(created, is_ours=True)
    if user == 0:
        assert trouble is None
        assert created.stat().st_mode & 0o7777 == 0o1777
        assert progress_dir.prepare(tmp_path / "new" / "progress", is_ours=False) is None
        assert (tmp_path / "new" / "progress").stat().st_mode & 0o7777 == 0o1777
        os.chown(created, 65534, 65534)
        trouble = progress_dir.prepare(created, is_ours=True)
    assert "1777" in str(trouble), "it is someone else's"
