"""An agent as a process, and what the controller knows through it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evaluation.bench.support.api_client import HOST, Controller
from evaluation.bench.support.waiting import wait_until


class Agent:
    """A host-reporter for h1 that leaves this machine's packets alone. It finds jobs of the launchers ``discover``."""

    def __init__(self, folder: Path, url: str, discover: str = "") -> None:
        self.jobs, self.progress, self._output = folder / "jobs.d", folder / "progress", folder / "agent.log"
        self.jobs.mkdir()
        self.progress.mkdir()
        token = folder / "token"
        token.write_text(HOST)
        token.chmod(0o600)
        command = [sys.executable, "-m", "host_reporter.agent", "--controller", url, "--host", "h1"]
        command += ["--token-file", str(token), "--jobs-dir", str(self.jobs), "--progress-dir", str(self.progress)]
        command += ["--discover", discover]
        with self._output.open("ab") as output:
            self._process = subprocess.Popen(
                [*command, "--no-marking", "--period", "0.2"], stdout=output, stderr=output
            )

    def stop(self) -> None:
        self._process.terminate()
        try:
            assert self._process.wait(30) == 0, self.said
        finally:
            self._process.kill()
            self._process.wait()

    @property
    def said(self) -> str:
        return self._output.read_text()


@dataclass
class Yard:
    controller: Controller
    agent: Agent

    @property
    def progress(self) -> Path:
        return self.agent.progress

    def job(self, name: str, port: int, **values: Any) -> None:
        """Write a job file: a job that listens on a port of this host."""
        spec: dict[str, Any] = {"tasks": [{"role": "ps", "host": "h1", "port": port}, {"role": "worker", "host": "h2"}]}
        document = {"id": name, "spec": spec} | values
        self._write(name, document)

    def remove(self, name: str) -> None:
        """Remove a job file, which ends its job."""
        (self.agent.jobs / f"{name}.json").unlink()

    def study(self, name: str) -> None:
        """Write a study's job file: its trials move a megabyte an iteration, by ports that nobody declares."""
        spec = {"tasks": [{"role": "peer", "host": host} for host in ("h1", "h2")]}
        demand = [{"src": "h1", "dst": "h2", "bytes": 1e6}]
        self._write(name, {"id": name, "trials": {}, "spec": spec | {"demand": demand}})

    def state(self, job: str) -> dict[str, Any]:
        answer = self.controller.call("GET", f"/v1/jobs/{job}")
        return answer.json() if answer.ok else {"state": None, "iterations_done": -1, "spec": {}}

    def jobs(self, prefix: str) -> dict[str, dict[str, Any]]:
        found = self.controller.call("GET", "/v1/jobs").json()["jobs"]
        return {state["id"]: state for state in found if state["id"].startswith(prefix)}

    def wait(self, condition: Callable[[], Any], seconds: float = 60.0) -> Any:
        try:
            return wait_until(condition, seconds)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.agent.said}") from error

    def wait_ended(self, job: str) -> dict[str, Any]:
        """The job's last state."""
        self.wait(lambda: self.state(job)["state"] == "ended")
        return self.state(job)

    def _write(self, name: str, document: dict[str, Any]) -> None:
        scratch = self.agent.jobs / f".{name}"
        scratch.write_text(json.dumps(document))
        scratch.rename(self.agent.jobs / f"{name}.json")
        # What is over before the agent looks for the first time is none of its business.
        self.wait(lambda: f" {name}: following " in self.agent.said)
