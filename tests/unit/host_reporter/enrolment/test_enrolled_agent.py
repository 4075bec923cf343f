"""An agent as a process that enrols at a real controller, in a network namespace where it has an address."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from evaluation.bench.support.hosts.own_namespace import own_namespace
from evaluation.bench.support.waiting import wait_until
from host_reporter.enrolment import enrol as enrolling
from host_reporter.enrolment.enrol import enrol
from host_reporter.notices import Notices
from host_reporter.uplink.connection import Address, Connection
from tests.support.controller.api.roles_yard import RolesYard

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="a network namespace needs root")
ADDRESS = "10.0.0.7"


class Agent:
    """A host-reporter h7 that leaves this machine's packets alone."""

    def __init__(self, folder: Path, yard: RolesYard) -> None:
        self.enrol = folder / "enrol-token"
        self.enrol.write_text(yard.tokens["rack"])
        self.enrol.chmod(0o600)
        (folder / "jobs.d").mkdir(exist_ok=True)
        self.token = folder / "state/h7.token"
        self._output = folder / "agent.log"
        command = [sys.executable, "-m", "host_reporter.agent", "--host", "h7", "--no-marking", "--period", "0.3"]
        command += ["--controller", f"http://{ADDRESS}:{yard.port}", "--enrol-token-file", str(self.enrol)]
        self._command = [*command, "--state-dir", str(folder / "state"), "--jobs-dir", str(folder / "jobs.d")]
        self._command += ["--progress-dir", str(folder)]
        self.start()

    def start(self) -> None:
        with self._output.open("ab") as output:
            self._process = subprocess.Popen(self._command, stdout=output, stderr=output)

    def stop(self) -> int:
        self._process.send_signal(signal.SIGTERM)
        return self._process.wait(15)

    @property
    def log(self) -> str:
        return self._output.read_text()


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    with own_namespace(ADDRESS):
        yield tmp_path


def host(yard: RolesYard) -> dict[str, Any]:
    return next((each for each in yard.call("GET", "/v1/hosts").json()["hosts"] if each["name"] == "h7"), {})


def test_an_agent_asks_is_approved_reports_and_needs_the_enrolment_token_no_more(folder: Path) -> None:
    yard = RolesYard(folder, enrolment={}, api={"host": "0.0.0.0"})
    agent = None
    try:
        yard.start()
        agent = Agent(folder, yard)
        wait_until(lambda: host(yard).get("state") == "pending", 60, what="a request")
        assert (host(yard)["addresses"], host(yard)["asked_from"], host(yard)["mac"]) == ([ADDRESS], ADDRESS, None)
        assert "waits to be approved" in agent.log
        assert yard.call("PUT", "/v1/hosts/h7", {"decision": {"state": "approved"}}).ok
        wait_until(lambda: host(yard)["agent"] == "reporting", 60, what="a report")
        assert agent.token.stat().st_mode & 0o777 == 0o600
        assert agent.token.read_text().strip() not in yard.log() + agent.log
        assert agent.stop() == 0
        agent.enrol.write_text("another-token-that-nobody-knows")
        before = len(agent.log)
        agent.start()
        wait_until(lambda: f"host h7 reports to http://{ADDRESS}" in agent.log[before:], 60, what="a new start")
        assert "enrol" not in agent.log[before:]
    finally:
        if agent is not None:
            agent.stop()
        yard.stop()


def test_a_host_with_ipv6_alone_enrols_over_ipv6(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(enrolling, "IPV4_SECONDS", 0.2)
    with own_namespace("fd00::7"):
        yard = RolesYard(tmp_path, enrolment={"approve": "at-once"}, api={"host": "::"})
        try:
            yard.start()
            token = tmp_path / "enrol-token"
            token.write_text(yard.tokens["rack"])
            address = Address(f"http://[fd00::7]:{yard.port}", token)
            notices = Notices(logging.getLogger("test"))
            own = enrol(address, tmp_path, "h7", notices, interfaces=(), rates={})
            with closing(Connection(own)) as connection:
                assert connection.request("GET", "/v1/hosts/h7/peers").status == 200
            found = host(yard)
            assert (found["state"], found["addresses"], found["asked_from"]) == ("approved", ["fd00::7"], "fd00::7")
        finally:
            yard.stop()


def test_where_the_settings_say_so_it_is_approved_at_once(folder: Path) -> None:
    yard = RolesYard(folder, enrolment={"approve": "at-once"}, api={"host": "0.0.0.0"})
    agent = None
    try:
        yard.start()
        agent = Agent(folder, yard)
        wait_until(lambda: host(yard).get("agent") == "reporting", 60, what="a report")
        assert host(yard)["decided_by"] == "at-once"
    finally:
        if agent is not None:
            agent.stop()
        yard.stop()
