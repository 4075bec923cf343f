"""The agent with 100 jobs and 5,000 sockets that it finds by itself, beside the same agent with their job files.

Twice: jobs in cgroups as Slurm makes them, whose job files name the cgroup, and jobs that TRAINYARD_JOB names, whose
job files name the process. Both agents look at the same processes and sockets. They run by turns, in one run.
"""

from __future__ import annotations

import json
import secrets
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from evaluation.bench.figures import Bench, Figure
from evaluation.bench.hosts.agent import Server, cpu_seconds
from evaluation.bench.hosts.agent_load import JOBS, groups, running_jobs, socket_count
from evaluation.bench.support.hosts.own_namespace import own_namespace
from evaluation.bench.support.waiting import wait_until

WARM_UP_SECONDS = 20.0
SECONDS = 15.0
ROUNDS = 2
LIMIT = 1.2
"""Found jobs cost at most so many times what job files cost."""


def run(folder: Path, _data: Path | None) -> Bench:
    """Measure. Raises RuntimeError where the sockets could not be made."""
    try:
        with own_namespace():
            by_cgroup = _by_cgroup(folder)
            by_environment = _by_environment(folder)
    except PermissionError as error:
        raise RuntimeError("a network namespace cannot be made; run it as root") from error
    arms = {"cgroup": by_cgroup, "environment": by_environment}
    figures = tuple(_figure(name, rounds) for name, rounds in arms.items() if rounds)
    return Bench(figures=figures, details={"rounds": arms})


def _figure(name: str, rounds: Sequence[Mapping[str, Any]]) -> Figure:
    ratios = [each["found_percent"] / each["files_percent"] for each in rounds]
    return Figure(
        f"Processor time of the agent with 100 jobs found by their {name}, as a share of what it needs with job files",
        metric=f"agent_found_by_{name}_ratio",
        unit="times",
        value=fmean(each["found_percent"] for each in rounds) / fmean(each["files_percent"] for each in rounds),
        baseline=1.0,
        baseline_name="the same agent with job files",
        ci95=(1 - max(ratios), 1 - min(ratios)),
        limit=LIMIT,
    )


def _by_cgroup(folder: Path) -> list[dict[str, Any]]:
    """Returns the rounds with jobs in Slurm's cgroups; empty where no cgroup can be made."""
    with groups() as place:
        if place is None:
            return []
        with running_jobs(place):
            files = {f"job{n}": {"cgroup": f"/{place.name}/job_{n}"} for n in range(JOBS)}
            return [_round(folder, files, "slurm") for _ in range(ROUNDS)]


def _by_environment(folder: Path) -> list[dict[str, Any]]:
    """Returns the rounds with jobs that their environment names."""
    with running_jobs(None, f"bench{secrets.token_hex(4)}-") as pids:
        files = {f"job{n}": {"pid": pid} for n, pid in enumerate(pids)}
        return [_round(folder, files, "trainyard") for _ in range(ROUNDS)]


def _round(folder: Path, files: Mapping[str, Mapping[str, Any]], launcher: str) -> dict[str, Any]:
    with_files = _measure(folder, files, "")
    found = _measure(folder, {}, launcher)
    return {"files_percent": with_files, "found_percent": found, "sockets": socket_count()}


def _measure(folder: Path, files: Mapping[str, Mapping[str, Any]], launcher: str) -> float:
    """Returns the processor time of an agent in percent of a core, once it knows all jobs and their connections."""
    server = Server()
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        jobs = Path(scratch) / "jobs.d"
        jobs.mkdir()
        spec = {"tasks": [{"role": "peer", "host": "h1"}]}
        for name, place in files.items():
            (jobs / f"{name}.json").write_text(json.dumps({"id": name, "spec": spec, **place}))
        command = [sys.executable, "-m", "host_reporter.agent", "--controller", server.url, "--host", "h1"]
        command += ["--jobs-dir", str(jobs), "--progress-dir", scratch, "--period", "1", "--no-marking"]
        command += ["--discover", launcher]
        with (Path(scratch) / "log").open("w") as log, subprocess.Popen(command, stdout=log, stderr=log) as agent:
            try:
                wait_until(lambda: len(server.jobs) >= JOBS, 60, what=f"{JOBS} jobs are registered")
                time.sleep(WARM_UP_SECONDS)
                began, before = time.monotonic(), cpu_seconds(agent.pid)
                time.sleep(SECONDS)
                return 100 * (cpu_seconds(agent.pid) - before) / (time.monotonic() - began)
            finally:
                agent.send_signal(signal.SIGTERM)
                agent.wait(20)
                server.stop()
