"""Recordings of a real controller, to which the reports of a simulated cluster come as they would in real time.

So the recording is real, and what other policies would have given the jobs is known.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from controller.model import Demand, Host, Role, Task
from controller.policies.registry import make
from evaluation.bench.support.api_client import Controller
from evaluation.bench.support.waiting import wait_until
from simulator.engine import simulate
from simulator.jobs import Compute, SimJob, Transfer, Workload
from simulator.limits import Limits
from simulator.network import PAYLOAD_SHARE
from simulator.outcome import Outcome
from tests.support.controller.api.cases import batch
from tests.support.simulator.recordings import description

LINK_BPS = 1e8
HOSTS = ("h1", "h2", "h3")
LIMITS = Limits(classes=7, period=0.5)
POLICY = "fair"
"""The policy that is recorded."""
_SECONDS_OF_A_REPORT = 0.25


def job(
    name: str, arrival: float, iterations: int, server: str, workers: Sequence[str], size: float, compute: float
) -> SimJob:
    """Returns a job with a parameter server."""
    pushes = tuple(Demand(worker, server, size) for worker in workers)
    pulls = tuple(Demand(server, worker, size) for worker in workers)
    return SimJob(
        name,
        ((Compute(compute), Transfer(pushes), Transfer(pulls)),),
        arrival=arrival,
        iterations=iterations,
        curve=tuple(1 - 0.9 ** (40 * k / iterations) for k in range(1, iterations + 1)),
        tasks=(Task(Role.PS, server), *(Task(Role.WORKER, worker) for worker in workers)),
    )


def workload(*jobs: SimJob) -> Workload:
    rate = LINK_BPS * PAYLOAD_SHARE
    return Workload("real", {name: Host(name, rate, rate) for name in HOSTS}, jobs)


def run(jobs: Workload, policy: str) -> Outcome:
    return simulate(jobs, make(policy, {}), LIMITS)


def record(jobs: Workload, folder: Path, declaring: Collection[str] = ()) -> str:
    """Returns the events of a controller while the jobs run. ``declaring`` declare how long they compute."""
    hosts = [
        {"name": name, "address": f"10.0.0.{i}", "ingress_bps": LINK_BPS, "egress_bps": LINK_BPS}
        for i, name in enumerate(HOSTS, start=1)
    ]
    yard = Controller(folder, token=False, policy=POLICY, hosts=hosts).start()
    file = folder / "events.jsonl"
    try:
        with _recorder(yard, file):
            wait_until(lambda: file.stat().st_size > 0, what="the first event")
            _play(yard, jobs, run(jobs, POLICY), declaring)
    finally:
        yard.stop()
    return file.read_text()


@contextmanager
def _recorder(yard: Controller, into: Path) -> Iterator[None]:
    """Record the events of a controller, as an operator does."""
    command = [sys.executable, "-m", "controller.cli.main", "events", "--json", "--since", "0", "--url", yard.url]
    with into.open("wb") as file, subprocess.Popen(command, stdout=file, stderr=subprocess.PIPE) as process:
        try:
            yield
            time.sleep(2.0)  # the last events may wait for a second
        finally:
            process.terminate()


def _play(yard: Controller, jobs: Workload, outcome: Outcome, declaring: Collection[str]) -> None:
    """Let the jobs run as they do in an outcome, in real time."""
    began = time.time()
    done: dict[str, int] = {}
    while any(done.get(each.id, 0) < each.iterations for each in jobs.jobs):
        for number, each in enumerate(jobs.jobs):
            if time.time() - began < each.arrival:
                continue
            if each.id not in done:
                _register(yard, each, 5000 + number, declares=each.id in declaring)
                done[each.id] = 0
            if done[each.id] < each.iterations:
                done[each.id] = _report(yard, each, outcome.jobs[each.id].iteration_ends, began, done[each.id])
        time.sleep(_SECONDS_OF_A_REPORT)


def _register(yard: Controller, each: SimJob, port: int, *, declares: bool) -> None:
    tasks = [{"role": task.role.value, "host": task.host} for task in each.tasks]
    tasks[0]["port"] = port
    body: dict[str, Any] = {"tasks": tasks, "demand": description(each)["demand"], "iterations": each.iterations}
    if declares:
        body["compute_seconds"] = sum(step.seconds for step in each.lanes[0] if isinstance(step, Compute))
    assert yard.call("PUT", f"/v1/jobs/{each.id}", body).status_code == 201


def _report(yard: Controller, each: SimJob, ends: Any, began: float, before: int) -> int:
    """Report the iterations that are done by now; returns how many are."""
    done = int(np.searchsorted(ends, time.time() - began, side="right"))
    points = [
        {"iteration": k, "time": began + float(ends[k - 1]), "metric": each.curve[k - 1]}
        for k in range(before + 1, done + 1)
    ]
    if points:
        news: dict[str, Any] = {"job": each.id, "points": points, "followed": True, "ended": done == each.iterations}
        answer = yard.call("POST", f"/v1/hosts/{each.tasks[0].host}/reports", batch(news)).json()
        assert answer["refused"] == [], answer
    return done
