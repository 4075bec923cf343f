"""A host-reporter in a process of its own, on this host, under a controller that a test plays."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from controller.wire import HostPlan
from evaluation.bench.support.hosts.reporter_server import ReporterServer
from tests.support.host.repaired import NIC


class Agent:
    """A host-reporter, whose controller has this period and gives this plan."""

    def __init__(self, folder: Path, server: ReporterServer, *options: str) -> None:
        self._log = folder / "log"
        (folder / "jobs.d").mkdir(exist_ok=True)
        command = [sys.executable, "-m", "host_reporter.agent", "--controller", server.url, "--host", "h1"]
        command += ["--jobs-dir", str(folder / "jobs.d"), "--progress-dir", str(folder), "--interface", NIC]
        command += ["--discover", ""]
        # Of the reports; that of the controller is told in the answer to the first.
        command += ["--period", "1", *options]
        with self._log.open("ab") as log:
            self.process = subprocess.Popen(command, stderr=log)

    def said(self, words: str = "somebody else has changed") -> list[str]:
        return [line for line in self._log.read_text().splitlines() if words in line]


def give(server: ReporterServer, wanted: HostPlan) -> None:
    server.set_plan(wanted.model_dump(mode="json"))
