"""Found jobs at a controller that is killed and begins anew with its journal, while the agent and the jobs go on."""

from __future__ import annotations

import os
import pwd
import subprocess
import sys
from pathlib import Path
from typing import Any

from evaluation.bench.support.api_client import HOST, Controller
from evaluation.bench.support.waiting import wait_until
from host_reporter.jobs.found.ids import owner
from tests.support.agent.started import started, unique

OWN = owner(os.getuid(), lambda user: pwd.getpwuid(user).pw_name)
RANK = {"RANK": "0", "WORLD_SIZE": "2", "LOCAL_RANK": "0"}


def state(controller: Controller, name: str) -> dict[str, Any]:
    answer = controller.call("GET", f"/v1/jobs/{OWN}.{name}")
    return answer.json() if answer.ok else {"state": None, "iterations_done": -1, "parts": {}}


def agent_of(controller: Controller, folder: Path) -> subprocess.Popen[bytes]:
    for made in ("progress", "jobs.d"):
        (folder / made).mkdir()
    (folder / "token").write_text(HOST)
    (folder / "token").chmod(0o600)
    command = [
        sys.executable, "-m", "host_reporter.agent", "--controller", controller.url, "--host", "h1", "--no-marking",
        "--token-file", str(folder / "token"), "--jobs-dir", str(folder / "jobs.d"), "--period", "0.3",
        "--progress-dir", str(folder / "progress"), "--discover", "trainyard",
    ]  # fmt: skip
    with (folder / "agent.log").open("wb") as log:
        return subprocess.Popen(command, stdout=log, stderr=log)


def test_jobs_go_on_end_and_begin_while_the_controller_is_away(tmp_path: Path) -> None:
    (tmp_path / "controller").mkdir()
    controller = Controller(tmp_path / "controller", journal=str(tmp_path / "journal.sqlite")).start()
    agent = agent_of(controller, tmp_path)
    stays, ends, begins = unique(), unique(), unique()

    def write(name: str, *steps: int) -> None:
        with (tmp_path / "progress" / f"{name}.jsonl").open("a") as file:
            file.writelines(f'{{"iteration": {step}, "metric": {1 / step}}}\n' for step in steps)

    try:
        with started({"TRAINYARD_JOB": stays} | RANK):
            with started({"TRAINYARD_JOB": ends} | RANK):
                for name in (stays, ends):
                    write(name, 1, 2, 3)
                    wait_until(lambda name=name: state(controller, name)["iterations_done"] == 3, 60)
                before = state(controller, stays)
                controller.stop(kill=True)
                write(stays, 4, 5)
                write(ends, 4)
            with started({"TRAINYARD_JOB": begins} | RANK):
                write(begins, 7)
                controller.start()
                wait_until(lambda: state(controller, stays)["iterations_done"] == 5, 60, what="the job goes on")
                wait_until(lambda: state(controller, begins)["iterations_done"] == 7, 60, what="a job has begun")
                wait_until(lambda: state(controller, ends)["state"] == "ended", 60, what="a job has ended")
                after = state(controller, stays)
                assert (after["state"], after["arrival"]) == ("running", before["arrival"])
                assert after["parts"].keys() == {"h1"}
                assert after["parts"]["h1"]["launcher"] == before["parts"]["h1"]["launcher"] == "trainyard"
                assert not [problem for problem in after.get("problems", ()) if "refused" in str(problem)]
                write(stays, 6)
                wait_until(lambda: state(controller, stays)["iterations_done"] == 6, 60)
        wait_until(lambda: state(controller, stays)["state"] == "ended", 60)
        assert "Traceback" not in (tmp_path / "agent.log").read_text() + controller.log()
    finally:
        agent.kill()
        agent.wait()
        controller.stop()
