"""Found jobs at the real controller: registered as a part, followed, begun again by the same processes, and ended."""

from __future__ import annotations

import os
import pwd
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from evaluation.bench.support.api_client import HOST, Controller
from evaluation.bench.support.waiting import wait_until
from host_reporter.jobs.found.ids import owner
from tests.support.agent.started import end, started, unique

OWN = owner(os.getuid(), lambda user: pwd.getpwuid(user).pw_name)


@pytest.fixture(scope="module")
def controller(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Controller]:
    created = Controller(tmp_path_factory.mktemp("controller")).start()
    yield created
    created.stop()


@pytest.fixture
def progress(controller: Controller, tmp_path: Path) -> Iterator[Path]:
    """The helper's folder of an agent that finds jobs."""
    folder = tmp_path / "progress"
    for made in (folder, tmp_path / "jobs.d"):
        made.mkdir()
    (tmp_path / "token").write_text(HOST)
    (tmp_path / "token").chmod(0o600)
    command = [
        sys.executable, "-m", "host_reporter.agent", "--controller", controller.url, "--host", "h1", "--no-marking",
        "--token-file", str(tmp_path / "token"), "--jobs-dir", str(tmp_path / "jobs.d"), "--period", "0.3",
        "--progress-dir", str(folder), "--discover", "trainyard,torchrun",
    ]  # fmt: skip
    with (tmp_path / "agent.log").open("wb") as log, subprocess.Popen(command, stdout=log, stderr=log) as agent:
        yield folder
        agent.kill()


def state(controller: Controller, job: str) -> dict[str, Any]:
    answer = controller.call("GET", f"/v1/jobs/{job}")
    return answer.json() if answer.ok else {"state": None, "iterations_done": -1, "parts": {}}


def test_a_job_from_its_processes_to_the_controller(controller: Controller, progress: Path) -> None:
    name = unique()
    job = f"{OWN}.{name}"
    environment = {"TRAINYARD_JOB": name, "RANK": "0", "WORLD_SIZE": "2", "LOCAL_RANK": "0"}
    file = progress / f"{name}.jsonl"
    with started(environment) as process:
        wait_until(lambda: state(controller, job)["parts"], what="the part is registered")
        part = state(controller, job)["parts"]["h1"]
        assert (part["launcher"], part["is_first"], part["world_size"], part["ranks"]) == ("trainyard", True, 2, 1)
        file.write_text('{"iteration": 3, "metric": 0.5}\n')
        wait_until(lambda: state(controller, job)["iterations_done"] == 3, what="its progress is known")
        with file.open("a") as more:
            more.write('{"ended": true}\n')
        wait_until(lambda: state(controller, job)["state"] == "ended", what="its run ends by its own word")
        with file.open("a") as more:
            more.write('{"iteration": 1, "metric": 0.1}\n')
        wait_until(lambda: state(controller, job)["state"] == "running", what="the same processes begin another run")
        wait_until(lambda: state(controller, job)["iterations_done"] == 1)
        end(process)
        wait_until(lambda: state(controller, job)["state"] == "ended", what="it ends with its processes")
