"""Jobs without any job file, over several hosts: each agent finds its part, and the controller orders the whole.

Each host has processes of its own (a PID namespace), as a machine has. A job is two ranks with torchrun's variables:
rank 0 on h1, which receives and writes a log, and rank 1 on another host, which sends.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from evaluation.bench.support.waiting import wait_until
from tests.support.agent.started import unique
from tests.support.lab import rank_traffic
from tests.support.lab.agents_network import agents_network, agents_report
from tests.support.lab.network_helpers import LINK_BPS, PERIOD_SECONDS, flows
from tests.support.lab.pid_namespace import PidNamespace
from topologies.emulation import Emulation
from topologies.lab.controller_process import URL, ControllerProcess
from topologies.lab.queue_proof import classes

if TYPE_CHECKING:
    from tests.lab.conftest import Stage

SERVERS = 3
HOSTS = tuple(f"h{number}" for number in range(1, SERVERS + 1))
PORT = 29500
"""MASTER_PORT of the first job; the next has the next one."""


@dataclass
class Yard:
    """The network, its controller, and on every host an agent that is told of no job."""

    emulation: Emulation
    controller: ControllerProcess
    spaces: dict[str, PidNamespace] = field(default_factory=dict)
    jobs: dict[str, Path] = field(default_factory=dict)
    """By job: the file that ends it when it is there."""

    def start_agent(self, host: str) -> None:
        folder = self.emulation.folder / host
        for name in ("jobs.d", "progress", "state"):
            (folder / name).mkdir(parents=True, exist_ok=True)
        token = folder / "token"
        token.touch(mode=0o600)
        token.write_text(self.controller.host_token(host))
        command = [sys.executable, "-m", "host_reporter.agent", "--controller", URL, "--host", host]
        command += ["--token-file", str(token), "--jobs-dir", str(folder / "jobs.d"), "--discover", "torchrun"]
        command += ["--progress-dir", str(folder / "progress"), "--state-dir", str(folder / "state")]
        command += ["--interface", f"{host}-eth0", "--rate-bps", f"{LINK_BPS:.0f}", "--period", f"{PERIOD_SECONDS}"]
        with (folder / "agent.log").open("wb") as out:
            self.emulation.popen(None, self.spaces[host].inside(*command), stdout=out, stderr=out)

    def begin(self, sender: str) -> str:
        """Start a job between h1 and another host. Returns its id."""
        run = unique()
        folder = self.emulation.folder / run
        folder.mkdir()
        release = folder / "release"
        variables = {"TORCHELASTIC_RUN_ID": run, "WORLD_SIZE": "2", "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1"}
        variables |= {"MASTER_ADDR": self.emulation.address("h1"), "MASTER_PORT": str(PORT + len(self.jobs))}
        for rank, host in enumerate(("h1", sender)):
            command = self.spaces[host].inside(sys.executable, "-S", rank_traffic.__file__, str(release))
            with (folder / f"{rank}.log").open("wb") as out:
                environment = os.environ | variables | {"RANK": str(rank)}
                self.emulation.popen(None, command, stdout=out, stderr=out, env=environment)
        self.jobs[f"root.torchrun-{run}"] = release
        return f"root.torchrun-{run}"

    def state(self, job: str) -> dict[str, Any]:
        """Returns the job as the controller knows it; empty: it does not."""
        known = {each["id"] for each in self.controller.call("GET", "/v1/jobs")["jobs"]}
        return dict(self.controller.call("GET", f"/v1/jobs/{job}")) if job in known else {}

    def parts(self, job: str) -> set[str]:
        return set(self.state(job).get("parts") or ())

    def said(self) -> str:
        """Returns the last words of all agents."""
        logs = {host: (self.emulation.folder / host / "agent.log") for host in HOSTS}
        return "\n".join(f"{host}: {log.read_text()[-1500:]}" for host, log in logs.items() if log.exists())


@pytest.fixture(scope="module")
def network(stage: Stage) -> Iterator[Yard]:
    stage.clear()
    with ExitStack() as stack:
        emulation, controller = stack.enter_context(agents_network(SERVERS, mode="classified", without=HOSTS))
        built = Yard(emulation, controller)
        for host in HOSTS:
            space = PidNamespace(lambda command, host=host: emulation.popen(host, command))  # type: ignore[misc]
            stack.callback(space.close)
            built.spaces[host] = space
            built.start_agent(host)
        wait_until(lambda: agents_report(controller), 60, what=f"a report of every agent\n{built.said()}")
        yield built


@pytest.fixture
def yard(network: Yard) -> Iterator[Yard]:
    """The network without jobs."""
    yield network
    for job, release in network.jobs.items():
        release.touch()
        if network.state(job):
            network.controller.call("DELETE", f"/v1/jobs/{job}")


def pairs(switch: str) -> set[frozenset[str]]:
    """The pairs of addresses whose TCP traffic the switch has rules for."""
    found = (re.search(r"nw_src=([\d.]+).*nw_dst=([\d.]+)", rule) for rule in flows(switch) if "tcp" in rule)
    return {frozenset(match.groups()) for match in found if match is not None}


def test_jobs_of_torchrun_are_joined_of_their_parts_ordered_and_ended_without_any_file(yard: Yard) -> None:
    address = yard.emulation.address
    first = yard.begin("h2")
    wait_until(lambda: yard.parts(first) == {"h1", "h2"}, 30, what=f"both parts of the first job\n{yard.said()}")
    second = yard.begin("h3")
    wait_until(lambda: yard.parts(second) == {"h1", "h3"}, 30, what=f"both parts of the second job\n{yard.said()}")
    told = yard.state(first)
    assert {host: part["launcher"] for host, part in told["parts"].items()} == {"h1": "torchrun", "h2": "torchrun"}
    assert [host for host, part in told["parts"].items() if part["is_first"]] == ["h1"]
    assert yard.parts(first) == {"h1", "h2"}, "h3 has found no part of it: it sees its own processes alone"
    # In the order of their arrival, a class each; the switch tells the pairs of hosts apart.
    wait_until(lambda: classes(yard.controller, [first, second]) == {first: 0, second: 1}, 30, what=yard.said())
    wanted = {frozenset((address("h1"), address(sender))) for sender in ("h2", "h3")}
    wait_until(lambda: pairs("s1") >= wanted, 30, what="rules for both jobs' traffic")
    # What rank 0 prints is its progress.
    wait_until(lambda: yard.state(first)["iterations_done"] >= 5, 60, what=f"progress of the first job\n{yard.said()}")
    assert yard.state(first)["spec"]["metric"]["direction"] == "min"
    # With the processes the job ends, and the other one is the first.
    yard.jobs[first].touch()
    wait_until(lambda: yard.state(first)["state"] == "ended", 30, what=f"the first job's end\n{yard.said()}")
    wait_until(lambda: classes(yard.controller, [second]) == {second: 0}, 30, what="the second job's turn")
    wait_until(
        lambda: pairs("s1") == wanted - {frozenset((address("h1"), address("h2")))}, 30, what="its rules are gone"
    )
    yard.jobs[second].touch()
    wait_until(lambda: yard.state(second)["state"] == "ended", 30, what=f"the second job's end\n{yard.said()}")


def test_a_job_that_is_registered_whole_wins_over_its_parts(yard: Yard) -> None:
    """What an operator declares under the found job's id counts, on all its hosts."""
    job = yard.begin("h2")
    wait_until(lambda: yard.parts(job) == {"h1", "h2"}, 30, what=f"both parts\n{yard.said()}")
    tasks = [{"role": "worker", "host": host} for host in ("h1", "h2")]
    yard.controller.call("PUT", f"/v1/jobs/{job}", {"tasks": tasks, "weight": 2.0})
    wait_until(lambda: not yard.parts(job), 30, what="the parts count no more")
    wait_until(lambda: yard.state(job)["spec"]["weight"] == 2.0, 10, what="what was declared counts")
    assert yard.state(job)["state"] == "running"
