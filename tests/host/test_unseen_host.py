"""One host whole: a job's TCP is never taken for something else, and its UDP becomes a problem of the controller's.

The agent is a process, the controller is the real one, and eth0 is a cable to a network namespace of the test's own.
The agent compares over a shorter time than half a minute.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from evaluation.bench.support.api_client import HOST, Controller
from evaluation.bench.support.hosts.job_process import JobProcess
from evaluation.bench.support.waiting import wait_until
from tests.support.agent.cabled_host import INTERFACE, OWN, PEER, PORT, cabled_host, send_tcp, send_udp
from tests.support.controller.api.samples import Samples

SPEC = {"tasks": [{"role": "worker", "host": "h1"}, {"role": "worker", "host": "h2"}]}
WINDOW_SECONDS, INTERVAL_SECONDS = 5.0, 0.5
COMPARED_SECONDS = 9.0
"""The window of the agent, and what its looks and reports take."""

_AGENT = f"""
import sys
from host_reporter import agent
from host_reporter.unseen import observer, window
window.WINDOW_SECONDS, observer.INTERVAL_SECONDS = {WINDOW_SECONDS}, {INTERVAL_SECONDS}
sys.exit(agent.main())
"""


@pytest.fixture
def controller(tmp_path: Path) -> Iterator[Controller]:
    with cabled_host():
        hosts = [{"name": "h1", "address": OWN}, {"name": "h2", "address": PEER}]
        made = Controller(tmp_path, hosts=hosts).start()
        yield made
        made.stop()


@pytest.fixture
def job(controller: Controller, tmp_path: Path) -> Iterator[JobProcess]:
    """A job's process with a connection to the peer, which an agent follows."""
    jobs, token = tmp_path / "jobs.d", tmp_path / "token"
    jobs.mkdir()
    token.touch(mode=0o600)
    token.write_text(f"{HOST}\n")
    command = [sys.executable, "-c", _AGENT, "--controller", controller.url, "--host", "h1"]
    command += ["--token-file", str(token), "--jobs-dir", str(jobs), "--progress-dir", str(tmp_path)]
    command += ["--discover", "", "--no-marking", "--period", "0.3"]
    log = tmp_path / "agent.log"
    with JobProcess() as process, log.open("ab") as output:
        (jobs / "a.json").write_text(json.dumps({"id": "a", "spec": SPEC, "pid": process.pid}))
        agent = subprocess.Popen(command, stdout=output, stderr=output)
        try:
            process.do(f"connect {PEER} {PORT} {OWN}")
            yield process
        finally:
            agent.send_signal(signal.SIGTERM)
            agent.wait(15)
            # For who looks at a failure.
            sys.stdout.write(log.read_text())
    assert "Traceback" not in log.read_text()


def problems(controller: Controller) -> list[str]:
    return [each for each in controller.call("GET", "/v1/status").json()["problems"] if "no connection" in each]


def interface(controller: Controller) -> dict[str, Any]:
    (host,) = (each for each in controller.call("GET", "/v1/hosts").json()["hosts"] if each["name"] == "h1")
    return next((each for each in host["interfaces"] if each["interface"] == INTERFACE), {})


def test_tcp_is_no_problem_and_udp_is_until_it_ends(controller: Controller, job: JobProcess) -> None:
    wait_until(lambda: interface(controller), 60, what="what eth0 has carried")
    before = interface(controller)["sent"]
    tcp = threading.Thread(target=send_tcp, args=(COMPARED_SECONDS,))
    tcp.start()
    while tcp.is_alive():
        assert problems(controller) == []
        time.sleep(1.0)
    assert interface(controller)["sent"] > before + 1e6

    is_seen = threading.Event()
    udp = threading.Thread(target=send_udp, args=(120.0, is_seen))
    udp.start()
    try:
        wait_until(lambda: problems(controller), 60, every=0.5, what="the problem")
        assert_said_everywhere(controller)
    finally:
        is_seen.set()
        udp.join()
    wait_until(lambda: problems(controller) == [], 60, every=0.5, what="its end")
    assert interface(controller)["unseen_sent"] > 1e6


def assert_said_everywhere(controller: Controller) -> None:
    (said,) = problems(controller)
    assert said.startswith(f"bytes on {INTERFACE} of host h1 are of no connection that is seen, and switches ")
    assert "bit/s sent, of job a, which alone runs there, or of another program, by UDP, a tunnel" in said
    assert "received" not in said
    explained = controller.call("GET", "/v1/jobs/a/explain").json()["problems"]
    assert [each for each in explained if "of this job, which alone runs there" in each]
    found = Samples(controller.call("GET", "/metrics").text)
    assert found.by("interface", "trainyard_interface_unseen") == {INTERFACE: 1}
