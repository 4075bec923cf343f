"""A real controller and a real agent of this host, which is told of no job: what it knows it has found."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from evaluation.bench.support.api_client import HOST, Controller
from evaluation.bench.support.waiting import wait_until
from tests.support.launchers.machine.network import ADDRESS

SECONDS = 60.0


class FoundJobs:
    """The controller's view of this host's jobs. ``logs``: a folder that the agent sees as ``/var/log``.

    ``environment``: the folder of jobs' variables. ``settings``: more of the controller's settings.
    """

    def __init__(self, folder: Path, progress: Path, *, environment: Path | None = None, **settings: Any) -> None:
        hosts = [{"name": "h1", "address": ADDRESS}, {"name": "h2", "address": "10.0.0.2"}]
        self.controller = Controller(folder, policy="fifo", period_seconds=0.2, hosts=hosts, **settings)
        self.logs = folder / "var-log"
        (self.logs / "pods").mkdir(parents=True)
        for made in (self.logs, self.logs / "pods"):
            made.chmod(0o755)
        self._log = folder / "agent.log"
        self._folder, self._progress, self._environment = folder, progress, environment or folder / "environment"
        self._agent: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        try:
            self.controller.start()
            self._agent = self._start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        try:
            if self._agent is not None:
                self._agent.terminate()
                assert self._agent.wait(30) == 0, self.said
        finally:
            if self._agent is not None:
                self._agent.kill()
                self._agent.wait()
            self.controller.stop()
        assert "Traceback" not in self.said, self.said

    @property
    def said(self) -> str:
        return self._log.read_text() if self._log.exists() else ""

    def ids(self) -> set[str]:
        """The jobs that the controller knows."""
        return {job["id"] for job in self.controller.call("GET", "/v1/jobs").json()["jobs"]}

    def job(self, name: str) -> dict[str, Any]:
        """A job as the controller knows it."""
        answer = self.controller.call("GET", f"/v1/jobs/{name}")
        return dict(answer.json()) if answer.ok else {"state": None, "iterations_done": None, "parts": {}}

    def wait_for(self, name: str, **values: Any) -> dict[str, Any]:
        """Wait until a job has these values. Returns it."""

        def has_them() -> bool:
            assert self._agent is not None and self._agent.poll() is None, "the agent has ended"
            job = self.job(name)
            return all(job.get(field) == value for field, value in values.items())

        try:
            wait_until(has_them, SECONDS, what=f"{name} with {values}", every=0.1)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.job(name)}\njobs: {self.ids()}\n{self.said[-4000:]}") from error
        return self.job(name)

    def _start(self) -> subprocess.Popen[bytes]:
        token = self._folder / "token"
        token.touch(0o600)
        token.write_text(HOST)
        jobs = self._folder / "jobs.d"
        jobs.mkdir()
        command = [sys.executable, "-m", "host_reporter.agent", "--controller", self.controller.url, "--host", "h1"]
        command += ["--token-file", str(token), "--jobs-dir", str(jobs), "--progress-dir", str(self._progress)]
        command += ["--environment-dir", str(self._environment)]
        with self._log.open("ab") as output:
            return subprocess.Popen(
                [*self._sees_own_logs(), *command, "--no-marking", "--period", "0.2"], stdout=output, stderr=output
            )

    def _sees_own_logs(self) -> Sequence[str]:
        """The pods' logs are where the kubelet has them, without touching this machine's."""
        return ("unshare", "--mount", "sh", "-c", 'mount --bind "$0" /var/log && exec "$@"', str(self.logs))
