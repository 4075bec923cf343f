"""Unmodified jobs on ephemeral ports that nobody declares: found, ordered, classified and marked, in every mode alike.

A job is a receiver on h1 and a sender on another host, both in the job's cgroup. Both jobs want all of h1's link.
"""

from __future__ import annotations

import functools
import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from evaluation.bench.support.hosts.job_process import in_group
from evaluation.bench.support.waiting import wait_until
from tests.support.lab.agents_network import agents_network
from tests.support.lab.network_helpers import LINK_BPS, PERIOD_SECONDS, flows, saved_marks
from tests.support.lab.tcp_receiver import RECEIVER
from tests.support.rounds import first_that
from topologies.emulation import Emulation
from topologies.lab.controller_process import ControllerProcess
from topologies.lab.queue_proof import classes

if TYPE_CHECKING:
    from tests.lab.conftest import Stage

SERVERS = 4
CONNECTIONS = 8
MODES: dict[str, dict[str, Any]] = {
    "classified": {"mode": "classified"},
    "marked": {"mode": "marked"},
    "degraded": {"table_budget": 1, "rails": 2, "addresses": "both"},
}
"""Settings of the controller, and of the testbed. The last has no room for the jobs' flows at the switch, and so is
marked too. There jobs send over IPv6 on the second of two rails."""

# Sends for ever, over so many connections, and says when it has them.
_SENDER = r"""
import socket, sys, threading, time
def send(peer):
    while True:
        peer.sendall(bytes(65536))
peers = [socket.create_connection((sys.argv[1], int(sys.argv[2]))) for _ in range(int(sys.argv[3]))]
print("connected", flush=True)
for peer in peers:
    threading.Thread(target=send, args=(peer,), daemon=True).start()
time.sleep(3600)
"""


@dataclass
class Job:
    """A job's processes. ``files``: of the agents on its hosts."""

    name: str
    receiver: subprocess.Popen[str]
    sender: subprocess.Popen[str]
    files: list[Path] = field(default_factory=list)

    def received(self) -> int:
        assert self.receiver.stdin is not None and self.receiver.stdout is not None
        self.receiver.stdin.write("\n")
        self.receiver.stdin.flush()
        return int(self.receiver.stdout.readline())

    def end(self) -> None:
        for process in (self.sender, self.receiver):
            process.kill()
            process.wait()
            for stream in (process.stdin, process.stdout):
                assert stream is not None
                stream.close()


@dataclass
class Yard:
    """The network, its controller and an agent on every host."""

    emulation: Emulation
    controller: ControllerProcess
    mode: str
    jobs: list[Job] = field(default_factory=list)

    @property
    def address(self) -> str:
        """Where h1 receives: its last address on its last rail."""
        return self.emulation.plugs("h1")[-1].addresses[-1]

    def begin(self, name: str, sender: str, connections: int) -> Job:
        """A job and the files that tell the agents of it."""
        group = self.emulation.cgroup(name)
        address = self.address
        receiver = self._start(group, "h1", RECEIVER, address, "0")
        assert receiver.stdout is not None
        port = receiver.stdout.readline().strip()
        job = Job(name, receiver, self._start(group, sender, _SENDER, address, port, str(connections)))
        self.jobs.append(job)
        spec = {"tasks": [{"role": "worker", "host": host} for host in ("h1", sender)]}
        for host, more in (("h1", {"spec": spec}), (sender, {})):
            file = self.emulation.folder / "jobs.d" / host / f"{name}.json"
            file.with_suffix(".new").write_text(json.dumps({"id": name, "cgroup": str(group), **more}))
            job.files.append(file.with_suffix(".new").rename(file))
        return job

    def _start(self, group: Path, host: str, program: str, *arguments: str) -> subprocess.Popen[str]:
        # Into the group where the hierarchy is seen, and only then into the host.
        inside = ["mnexec", "-a", str(self.emulation.pid(host))]
        command = [*in_group(group), *inside, sys.executable, "-S", "-c", program]
        return self.emulation.popen(
            None, [*command, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def state(self, job: str) -> dict[str, Any]:
        return next((its for its in self.controller.call("GET", "/v1/jobs")["jobs"] if its["id"] == job), {})

    def rates(self, *jobs: Job, seconds: float = 4.0) -> list[float]:
        """What arrives for each, in bit/s."""
        before, began = [job.received() for job in jobs], time.monotonic()
        time.sleep(seconds)
        after, took = [job.received() for job in jobs], time.monotonic() - began
        return [8 * (now - then) / took for now, then in zip(after, before, strict=True)]

    def marked_groups(self, host: str) -> int:
        """The rules by cgroup in force for the packets of the jobs."""
        saved = saved_marks(self.emulation, host, self.address)
        # The chain that is idle keeps the rules of before.
        active = re.search(r"^-A TRAINYARD -g (TRAINYARD-[AB])", saved, re.MULTILINE)
        rules = [line for line in saved.splitlines() if active is not None and line.startswith(f"-A {active[1]} ")]
        return sum("--path" in rule for rule in rules)

    def clear(self) -> None:
        for job in self.jobs:
            job.end()
            for file in job.files:
                file.unlink(missing_ok=True)
        self.jobs.clear()
        wait_until(lambda: not any(its["state"] == "running" for its in self._all()), 20, what="the jobs' end")
        for its in self._all():
            self.controller.call("DELETE", f"/v1/jobs/{its['id']}")

    def _all(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.controller.call("GET", "/v1/jobs")["jobs"]
        return found


@pytest.fixture(scope="module", params=MODES)
def network(stage: Stage, request: pytest.FixtureRequest) -> Iterator[Yard]:
    stage.clear()
    with agents_network(SERVERS, **MODES[request.param]) as (emulation, controller):
        yield Yard(emulation, controller, request.param)


@pytest.fixture
def yard(network: Yard) -> Iterator[Yard]:
    yield network
    network.clear()


def job_rules(switch: str) -> list[str]:
    """The switch's rules that name a pair of hosts."""
    pair = re.compile("tcp.*(nw|ipv6)_src=.*(nw|ipv6)_dst=")
    return [rule for rule in flows(switch) if pair.search(rule)]


def test_two_jobs_on_undeclared_ports_are_found_and_served_in_their_order(yard: Yard) -> None:
    first = yard.begin("first", "h2", CONNECTIONS)
    wait_until(lambda: yard.state("first").get("connections", 0) >= CONNECTIONS, 20, what="finding the first job")
    second = yard.begin("second", "h3", CONNECTIONS)
    wait_until(lambda: yard.state("second").get("connections", 0) >= CONNECTIONS, 20, what="finding the second job")
    wait_until(lambda: classes(yard.controller, ["first", "second"]) == {"first": 0, "second": 1})
    # At the hosts all that a job sends is marked by its cgroup, one rule each; both directions, each by its own host.
    marked = {"h1": 2, "h2": 1, "h3": 1}
    wait_until(lambda: {host: yard.marked_groups(host) for host in marked} == marked, 20, what="the marks")
    time.sleep(2.0)  # what is in the queues

    def is_in_order(rates: Sequence[float]) -> bool:
        return rates[0] > 0.8 * LINK_BPS and rates[1] < 0.15 * LINK_BPS

    rates = first_that(is_in_order, lambda: yard.rates(first, second))
    assert is_in_order(rates), rates
    rules = job_rules(yard.emulation.bridges[-1])
    if yard.mode == "classified":
        # Both directions of each job, and one rule for all connections through a port.
        assert len(rules) == 4, rules
    else:
        assert rules == [], "the switch holds a rule a class"
    status = yard.controller.status()
    assert status.mode == ("classified" if yard.mode == "classified" else "marked")
    assert any("marks alone" in problem for problem in status.problems) == (yard.mode == "degraded")
    # The first ends: the second has the link, and the mark of the first is gone.
    first.end()
    yard.jobs.remove(first)
    for file in first.files:
        file.unlink()
    wait_until(lambda: classes(yard.controller, ["second"]) == {"second": 0}, 20)
    (alone,) = first_that(lambda rates: rates[0] > 0.7 * LINK_BPS, lambda: yard.rates(second))
    assert alone > 0.7 * LINK_BPS, alone
    wait_until(lambda: yard.marked_groups("h2") == 0, 20)


def test_a_new_connection_is_served_within_two_periods(yard: Yard) -> None:
    yard.begin("early", "h2", 1)
    wait_until(lambda: yard.state("early").get("connections", 0) >= 1, 20)
    later = yard.begin("later", "h3", 1)
    wait_until(lambda: classes(yard.controller, ["early", "later"]) == {"early": 0, "later": 1}, 20)
    lates: list[Job] = []

    def seconds_until_served() -> float:
        for before in lates:
            before.end()
        # A process of the first job that comes late, and talks to another one through a port that nobody has seen.
        group = yard.emulation.cgroup("early")
        receiver = yard._start(group, "h1", RECEIVER, yard.address, "0")
        assert receiver.stdout is not None
        port = receiver.stdout.readline().strip()
        sender = yard._start(group, "h2", _SENDER, yard.address, port, "2")
        lates[:] = [Job("late", receiver, sender)]
        assert sender.stdout is not None and sender.stdout.readline() == "connected\n"
        began = time.monotonic()
        if yard.mode != "classified":
            # All that its processes send was marked before; nobody has to hear of a connection.
            assert yard.marked_groups("h2") == 1 and job_rules(yard.emulation.bridges[-1]) == []
            return 0.0
        # Both directions have a rule.
        rules = functools.partial(job_rules, yard.emulation.bridges[-1])
        wait_until(lambda: sum(f"={port}" in rule for rule in rules()) == 2, every=0.02)
        return time.monotonic() - began

    try:
        took = first_that(lambda seconds: seconds < 2 * PERIOD_SECONDS, seconds_until_served)
        assert took < 2 * PERIOD_SECONDS
        time.sleep(1.0)  # what the other has in the queues
        ahead, behind = first_that(lambda rates: rates[0] > 5 * rates[1], lambda: yard.rates(lates[0], later))
        assert ahead > 5 * behind, (ahead, behind)
    finally:
        for late in lates:
            late.end()
