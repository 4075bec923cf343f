"""A real controller with jobs that meet at ports, a study, a switch that counts traffic, and a problem."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from evaluation.bench.support.openflow.bare_switch_process import DPID, SETTINGS, bare_switch
from evaluation.bench.support.waiting import wait_until
from tests.support.controller.api.cases import batch, spec
from tests.support.controller.api.roles_yard import RolesYard

PROBLEM = "queues are not proven"
"""What the status says of a switch that cannot be probed."""
TRIALS = ("trial-1", "trial-2", "trial-3")
_HOSTS = ("h1", "h2", "h3")


class Cluster(RolesYard):
    """Sincronia serves ``vision-small`` before ``speech-night`` before ``vision-large``: all send from h2 to h1."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        hosts = [
            {"name": name, "address": f"10.0.0.{number}", "switch": DPID, "port": number}
            for number, name in enumerate(_HOSTS, 1)
        ]
        defaults = SETTINGS | {"policy": "sincronia", "period_seconds": 1.0, "lease_seconds": 600.0, "hosts": hosts}
        super().__init__(folder, **(defaults | settings))

    def register(self) -> None:
        """Register the jobs and the study, let them report, and wait for a plan with all."""
        waiting = {
            "vision-small": spec(5000, demand=_from_h2(1e6), user="ann", model="resnet50", target=0.9),
            "speech-night": spec(5001, demand=_from_h2(3e6), user="cem", model="conformer"),
            "vision-large": spec(5002, demand=_from_h2(5e6), user="ann", model="resnet152", family="imagenet"),
            "lonely": {"tasks": [{"role": "worker", "host": "h3"}], "demand": [_demand("h3", "h2", 1e6)]},
        }
        study = {
            name: spec(5010 + number, demand=[_demand("h1", "h3", 1e6 * (number + 1))], user="dan", stage="rung-1")
            for number, name in enumerate(TRIALS)
        }
        for name, body in (waiting | study).items():
            answer = self.call("PUT", f"/v1/jobs/{name}", body)
            assert answer.ok, answer.text
        for step in range(1, 4):
            self.report(step, *waiting.keys() - {"lonely"}, *study)
        everybody = waiting.keys() | study.keys()
        wait_until(lambda: self.plan().get("classes", {}).keys() == everybody, what="a plan with all")

    def report(self, iteration: float, *jobs: str, ended: bool = False) -> None:
        """Let host h1 report progress of jobs, or their end."""

        def part(name: str) -> dict[str, Any]:
            point = {"iteration": iteration, "time": time.time(), "metric": _metric(name, iteration)}
            return {"job": name, "points": [point], "ended": ended}

        parts = [part(name) for name in jobs]
        answer = self.by("h1", "POST", "/v1/hosts/h1/reports", batch(*parts))
        assert answer.ok, answer.text

    def plan(self) -> Any:
        """Returns the plan in force; a problem document where there is none."""
        return self.call("GET", "/v1/plan").json()


@contextmanager
def running_cluster(folder: Path, **settings: Any) -> Iterator[Cluster]:
    """The cluster with its switch and its jobs."""
    folder.mkdir(exist_ok=True)
    cluster = Cluster(folder, **settings)
    try:
        cluster.start()
        with bare_switch(cluster, len(_HOSTS)):
            cluster.register()
            yield cluster
    finally:
        cluster.stop()


def _from_h2(size: float) -> list[dict[str, Any]]:
    return [_demand("h2", "h1", size)]


def _demand(src: str, dst: str, size: float) -> dict[str, Any]:
    return {"src": src, "dst": dst, "bytes": size}


def _metric(job: str, iteration: float) -> float:
    """Returns an accuracy that rises with the iterations. Trials with a higher number are better."""
    best = 0.6 + 0.1 * TRIALS.index(job) if job in TRIALS else 0.95
    return best * iteration / (iteration + 2.0)
