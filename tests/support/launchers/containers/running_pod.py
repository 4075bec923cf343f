"""A pod whose container trains: laid out as its runtime lays it out, and its process and log real."""

from __future__ import annotations

import secrets
from pathlib import Path
from types import TracebackType
from typing import Self

from evaluation.bench.support.waiting import wait_until
from tests.support.launchers.containers.pod_scenarios import PODS as RECORDED
from tests.support.launchers.containers.pod_scenarios import PodScenario
from tests.support.launchers.containers.podman import STARTED_IN, Containers
from tests.support.launchers.containers.pods import Pod
from tests.support.launchers.jobs.training import HALF, ITERATIONS
from tests.support.launchers.machine import cgroups

PODS = {
    **RECORDED,
    "pod-containerd-master": PodScenario(
        "The master of a PyTorchJob: containerd, cgroup driver systemd.",
        Pod("team-a", "bert-master-0", "5d4c3b2a-1908-4f7e-8d6c-5b4a39281706"),
        "systemd",
        "containerd",
        {"RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "bert-master-0", "MASTER_PORT": "23456"},
    ),
}
_TIMES = "consumed samples: 64 | elapsed time per iteration (ms): 20.0"
_LINE = f" iteration $i/ {ITERATIONS} | {_TIMES} | learning rate: 1.5E-04 | lm loss: 2.${{i}}E+00 |"
_WRITE = f'while [ $i -le $last ]; do echo "{_LINE}"; i=$((i + 1)); sleep 0.02; done'
_WAIT = "while [ ! -e /shared/release ]; do sleep 0.05; done"
SCRIPT = (
    f"i=1; last=0; {_WAIT.replace('release', 'begin')}; last={HALF}; {_WRITE}; {_WAIT}; last={ITERATIONS}; {_WRITE}"
)


class RunningPod:
    """It writes the first half of its log, and the second after ``finish``. ``logs``: a node's ``/var/log/pods``."""

    def __init__(self, containers: Containers, logs: Path, place: Path, scenario: PodScenario) -> None:
        self._containers, self._scenario = containers, scenario
        self._log = scenario.pod.log(logs, "main")
        self._log.parent.mkdir(parents=True)
        self._shared = place / f"shared-{scenario.pod.name}"
        self._shared.mkdir()
        self._group = scenario.pod.group(secrets.token_hex(32), scenario.driver, scenario.runtime)

    def __enter__(self) -> Self:
        try:
            self._name = self._containers.start(
                SCRIPT, self._log, shared=self._shared, cgroup=STARTED_IN, **self._scenario.variables
            )
            process = wait_until(lambda: self._containers.process(self._name), 60, what="the container's start")
            cgroups.make(self._group)
            cgroups.join(self._group, process)
            (self._shared / "begin").touch()
        except BaseException:
            self._remove()
            raise
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._remove()

    def finish(self) -> None:
        """Let it write the rest, and wait for its end."""
        (self._shared / "release").touch()
        assert self._containers.wait(self._name) == 0, self._containers.said(self._name)

    def _remove(self) -> None:
        self._containers.close()
        for path in (STARTED_IN, "/" + self._group.split("/")[1]):
            cgroups.remove(path)
