"""A found job is told its DSCP when it starts: a real controller, a real agent, and the script before its command."""

from __future__ import annotations

import os
import pwd
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from controller.job_environment import lines, variables
from evaluation.bench.support.api_client import HOST, Controller
from evaluation.bench.support.waiting import wait_until
from host_reporter.jobs.found.ids import owner
from tests.support.agent.started import end, started, unique
from tests.support.launchers.scripts import WITH_ENVIRONMENT, copy

OWN = owner(os.getuid(), lambda user: pwd.getpwuid(user).pw_name)


class Host(NamedTuple):
    """A controller, and a host with an agent. ``script`` is what starts a command with its job's variables."""

    controller: Controller
    environment: Path
    script: Path


@pytest.fixture
def controller(tmp_path: Path) -> Iterator[Controller]:
    created = Controller(tmp_path, identity="dscp")
    try:
        yield created.start()
    finally:
        created.stop()


@pytest.fixture
def host(controller: Controller, tmp_path: Path) -> Iterator[Host]:
    environment = tmp_path / "environment"
    for made in ("progress", "jobs.d"):
        (tmp_path / made).mkdir()
    (tmp_path / "token").write_text(HOST)
    (tmp_path / "token").chmod(0o600)
    command = [
        sys.executable, "-m", "host_reporter.agent", "--controller", controller.url, "--host", "h1", "--no-marking",
        "--token-file", str(tmp_path / "token"), "--jobs-dir", str(tmp_path / "jobs.d"), "--period", "0.3",
        "--progress-dir", str(tmp_path / "progress"), "--environment-dir", str(environment), "--discover", "trainyard",
    ]  # fmt: skip
    log = tmp_path / "agent.log"
    with log.open("wb") as output, subprocess.Popen(command, stdout=output, stderr=output) as agent:
        try:
            wait_until((environment / "ready").exists, 60, what="the agent is there")
            yield Host(controller, environment, copy(WITH_ENVIRONMENT, tmp_path, environment, 60))
            agent.terminate()
            assert agent.wait(30) == 0
        finally:
            agent.kill()
    assert "Traceback" not in log.read_text()


def test_a_job_starts_with_its_own_dscp_and_its_file_goes_with_it(host: Host, tmp_path: Path) -> None:
    name = unique()
    job, out = f"{OWN}.{name}", tmp_path / "out"
    command = [str(host.script), job, "sh", "-c", f"env >{out}.part; mv {out}.part {out}; exec sleep 600"]
    with started({"TRAINYARD_JOB": name}, command) as process:
        wait_until(out.exists, 60, what="the command runs")
        known = host.controller.call("GET", f"/v1/jobs/{job}").json()
        assert set(lines(variables(known["dscp"], known["acknowledgement_dscp"]))) <= set(out.read_text().splitlines())
        assert (host.environment / f"{job}.env").exists()
        end(process)
        wait_until(lambda: not (host.environment / f"{job}.env").exists(), 60, what="the file goes with the job")
    assert (host.environment / "ready").exists()
