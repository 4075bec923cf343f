"""Trainers as they are run: a process a host, on loopback."""

from __future__ import annotations

import itertools
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

from simulator.workloads import curves
from tests.support.paths import ROOT
from topologies.trainer.job_recorder import PATTERN
from topologies.trainer.results import JobResult, read_result

CURVE = max(curves.index(), key=lambda curve: curve.iterations)
_networks = itertools.count(1)


def job(name: str, architecture: str, hosts: tuple[str, ...], **changes: object) -> dict[str, object]:
    return {
        "id": name, "arrival": 0.0, "architecture": architecture, "hosts": list(hosts), "port": 5001, "model": "small",
        "model_bytes": 30_001, "compute_seconds": 0.005, "iterations": 8, "curve": CURVE.name,
    } | changes  # fmt: skip


class Lab:
    """Trainers of some hosts, and the folder that they write to."""

    def __init__(self, folder: Path, jobs: list[dict[str, object]], limit: float = 60.0, **more: object) -> None:
        self.folder = folder / "run"
        self.file = folder / "experiment.json"
        self.file.write_text(json.dumps({"name": "test", "hosts": 4, "limit_seconds": limit, "jobs": jobs} | more))
        self.base = f"127.{1 + os.getpid() % 250}.{200 + next(_networks)}.0"
        self.trainers: dict[str, subprocess.Popen[str]] = {}

    def start(self, *hosts: str, options: tuple[str, ...] = (), meet: Path | None = None) -> None:
        when = ("--start", repr(time.time())) if meet is None else ("--meet", str(meet))
        for host in hosts:
            self.trainers[host] = subprocess.Popen(
                [sys.executable, "-m", "topologies.trainer", "--experiment", str(self.file), "--host", host,
                 *when, "--dir", str(self.folder), "--address-base", self.base, *options],
                cwd=ROOT, stderr=subprocess.PIPE, text=True,
            )  # fmt: skip

    def wait(self, host: str) -> tuple[int, str]:
        _, errors = self.trainers[host].communicate(timeout=20)
        return self.trainers[host].returncode, errors

    def result(self, name: str) -> JobResult:
        return read_result(self.folder / "done" / f"{name}.json")

    def job_file(self, host: str, name: str) -> Path:
        return self.folder / "jobs.d" / host / f"{name}.json"

    def iterations_logged(self, name: str) -> int:
        log = self.folder / "logs" / f"{name}.log"
        return len(re.findall(PATTERN, log.read_text())) if log.exists() else 0
