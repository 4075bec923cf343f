"""Containers looked at while they wait: one of podman's own, and pods laid out as container runtimes lay them out.

The group and the folder of logs of a pod are made here, and so are the variables of its operator, as their
documentation says; the process, its descriptors and the lines of its log are real.
"""

from __future__ import annotations

import contextlib
import os
import secrets
from pathlib import Path
from typing import Any

from evaluation.bench.support.waiting import wait_until
from tests.support.launchers.containers.pod_scenarios import PodScenario
from tests.support.launchers.containers.podman import STARTED_IN, Containers
from tests.support.launchers.machine import cgroups
from tests.support.launchers.recording.launch import VARIABLE
from tests.support.launchers.recording.neutral import Neutral
from tests.support.launchers.recording.process_facts import launched

SCRIPT = "echo here $$; while [ ! -e /shared/release ]; do sleep 0.05; done"
CONTAINER = "0123456789abcdef" * 4
_API = {"KUBERNETES_SERVICE_HOST": "10.96.0.1", "KUBERNETES_SERVICE_PORT": "443"}


def record_container(containers: Containers, folder: Path) -> dict[str, Any]:
    """Returns the recording of a container of podman's own, in podman's own group."""
    log = folder / "ctr.log"
    about = "podman run: its group below podman's, its log in the runtime interface's format."
    return _record(containers, folder, log, "/libpod_parent", {}) | {"about": about}


def record_pod(containers: Containers, folder: Path, scenario: PodScenario) -> dict[str, Any]:
    """Returns the recording of a pod's container."""
    pod = scenario.pod
    log = pod.log(folder / "pods", "main")
    log.parent.mkdir(parents=True)
    group = pod.group(CONTAINER, scenario.driver, scenario.runtime)
    variables = {**_API, "HOSTNAME": pod.name, **scenario.variables}
    made = {"made": sorted([*variables, "cgroup"])}
    return _record(containers, folder, log, STARTED_IN, variables, group) | {"about": scenario.about} | made


def _record(
    containers: Containers, folder: Path, log: Path, parent: str, variables: dict[str, str], group: str | None = None
) -> dict[str, Any]:
    mark = secrets.token_hex(8)
    shared = folder / mark
    shared.mkdir()
    with contextlib.ExitStack() as stack:
        for path in (parent, *([group] if group else [])):
            stack.callback(cgroups.remove, f"/{path.split('/')[1]}")
        name = containers.start(SCRIPT, log, shared=shared, cgroup=parent, **{VARIABLE: mark}, **variables)
        process = wait_until(lambda: containers.process(name), 60, what="the container's start")
        wait_until(lambda: "here" in log.read_text(), what="the container's first line")
        if group is not None:
            cgroups.make(group)
            cgroups.join(group, process)
        (seen,) = (one for one in launched(VARIABLE, mark) if one.pid == process)
        (shared / "release").touch()
        assert containers.wait(name) == 0
        lines = log.read_text().splitlines()
        own = Path("/proc/self/cgroup").read_text().splitlines()
        names = {
            str(folder / "pods"): "/var/log/pods",
            str(folder): "/var/lib/containers",
            os.uname().nodename: "gpu01",
        }
        neutral = Neutral(names | _identifier(seen.cgroup), {}, own, [seen.pid])
        processes = [neutral.process(seen)]
        # Addresses of the cluster's own network stay as they are made.
        processes[0]["environment"] |= variables
        told = {"log": neutral.text(str(log)), "output": [neutral.text(line) for line in lines], "processes": processes}
        return {"command": ["podman", "run", "--log-driver=k8s-file", "sh", "-c", SCRIPT], **told}


def _identifier(groups: tuple[str, ...]) -> dict[str, str]:
    """podman's id of a container, made the same in each recording."""
    found = (line.rpartition("libpod-")[2] for line in groups if "libpod-" in line)
    return dict.fromkeys(found, CONTAINER)
