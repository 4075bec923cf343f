"""What a controller leaves alone: a switch that it only observes, and, while it is paused, switches and hosts."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from evaluation.bench.support.free_port import free_port
from evaluation.bench.support.waiting import wait_until
from tests.support.lab.agents_network import agents_network
from tests.support.lab.controller_program import Controller, job
from tests.support.lab.network_helpers import gate_is_open
from tests.support.lab.switch_fixtures import Bridge, sh
from topologies.emulation import Emulation
from topologies.lab.agents import Agents, TrainerSite
from topologies.lab.controller_process import ControllerProcess
from topologies.lab.queue_proof import job_spec

if TYPE_CHECKING:
    from tests.lab.conftest import Stage

MOST_SECONDS = 2.0
"""What the product promises from the pause to a network and hosts without anything of it."""


@pytest.fixture
def bridge(stage: Stage) -> Iterator[Bridge]:
    """A switch that works, with rules and queues of its operator's."""
    stage.clear()
    made = Bridge(free_port())
    made.rules("add-flow", "table=0,priority=5,cookie=0xabc,ip,nw_dst=10.0.0.2,actions=NORMAL")
    made.rules("add-flow", "table=0,priority=1,cookie=0xabc,actions=NORMAL")
    sh("ovs-vsctl", "set", "port", made.port(1), "qos=@q", "--", "--id=@q", "create", "qos", "type=linux-htb",
       "other-config:max-rate=10000000", "queues:0=@a", "--", "--id=@a", "create", "queue",
       "other-config:min-rate=1000000")  # fmt: skip
    yield made
    made.close()
    sh("ovs-vsctl", "--all", "destroy", "qos", "--", "--all", "destroy", "queue")


def state(bridge: Bridge) -> tuple[object, ...]:
    """Everything on a switch that a controller could change."""
    tables = [sh("ovs-vsctl", "--format=json", "list", table) for table in ("qos", "queue", "port")]
    groups = sh("ovs-ofctl", "-O", "OpenFlow13", "dump-groups", bridge.name).splitlines()[1:]
    meters = sh("ovs-ofctl", "-O", "OpenFlow13", "dump-meters", bridge.name).splitlines()[1:]
    return bridge.flows(ours=False), tables, groups, meters


def test_an_observed_switch_stays_as_it_is(bridge: Bridge, tmp_path: Path) -> None:
    controller = Controller(tmp_path, enforce=[])
    try:
        before = state(bridge)
        assert len(bridge.flows(ours=False)) == 2
        sh("ovs-vsctl", "set", "controller", bridge.name, f'target="tcp:127.0.0.1:{controller.openflow_port}"')
        wait_until(lambda: controller.get("/v1/status")["switches"], 20, what="the connection")
        for name, port in (("first", 7001), ("second", 7002)):
            assert controller.call("PUT", f"/v1/jobs/{name}", job(port)).status_code == 201
        wait_until(lambda: controller.get("/v1/plan")["classes"] == {"first": 0, "second": 1}, 10)
        controller.call("PATCH", "/v1/settings", {"policy": "fair"})
        controller.call("PATCH", "/v1/settings", {"pause": True})
        controller.call("PATCH", "/v1/settings", {"pause": False})
        planned = controller.get("/v1/status")["plan_causes"]["period"]
        wait_until(lambda: controller.get("/v1/status")["plan_causes"]["period"] >= planned + 5, 20)
        assert controller.get("/readyz")["status"] == "observing"
        assert state(bridge) == before
        assert controller.get("/v1/status")["switches"][0]["reason"].startswith("observed only")
        assert bridge.pings()
    finally:
        assert controller.stop() == 0
    assert state(bridge) == before


@pytest.fixture(scope="module")
def network(stage: Stage) -> Iterator[tuple[Emulation, ControllerProcess]]:
    stage.clear()
    with agents_network(3) as made:
        yield made


def seconds_until(condition: Callable[[], bool]) -> float:
    began = time.monotonic()
    wait_until(condition, 30)
    return time.monotonic() - began


def time_of(words: str, log: Path) -> float:
    """Returns when a line with these words was logged, in seconds since the Unix epoch."""
    line = next(line for line in log.read_text().splitlines() if words in line)
    return datetime.strptime(line[:23], "%Y-%m-%d %H:%M:%S,%f").astimezone().timestamp()


def test_a_pause_is_over_the_whole_network_within_two_seconds(
    network: tuple[Emulation, ControllerProcess], capsys: pytest.CaptureFixture[str]
) -> None:
    emulation, controller = network

    def installed(host: str) -> str:
        command = "iptables-legacy-save -t mangle; iptables-nft-save -t mangle; tc qdisc show"
        lines = emulation.run(host, ["sh", "-c", f"{command}; :"]).splitlines()
        return "\n".join(line for line in lines if "TRAINYARD" in line or "7472:" in line)

    def is_enforced() -> bool:
        marks_and_trees = [installed(host) for host in emulation.hosts]
        return (
            gate_is_open("s1") and all("7472:" in each for each in marks_and_trees) and "5301" in str(marks_and_trees)
        )

    def left() -> list[str]:
        return [*(["the gate"] if gate_is_open("s1") else []), *filter(None, map(installed, emulation.hosts))]

    for host in emulation.hosts:
        # The trees that limit the testbed's interfaces are not the agents'. Instead of these they build their own.
        emulation.run(host, ["tc", "qdisc", "del", "dev", f"{host}-eth0", "root"])
    controller.call("PUT", "/v1/jobs/first", job_spec("h1", 5301, "h2"))
    wait_until(is_enforced, 30)
    began = time.time()
    controller.call("PATCH", "/v1/settings", {"pause": True})
    closed = seconds_until(lambda: not gate_is_open("s1"))
    wait_until(lambda: not left(), 30)
    # A look at all hosts takes longer than they do, so their own times count.
    logs = [Agents(emulation, emulation.folder).log("reporter", TrainerSite(host)) for host in emulation.hosts]
    paused = max(time_of("the plan is paused", log) for log in logs) - began
    controller.call("PUT", "/v1/jobs/meanwhile", job_spec("h3", 5302, "h2"))
    wait_until(lambda: set(controller.call("GET", "/v1/plan")["classes"]) == {"first", "meanwhile"}, 20)
    controller.kill()
    controller.start()
    controller.wait_ready()
    assert controller.status().paused
    causes = controller.status().plan_causes.get("period", 0)
    wait_until(lambda: controller.status().plan_causes.get("period", 0) >= causes + 3, 30)
    assert left() == []
    controller.call("PATCH", "/v1/settings", {"pause": False})
    resumed = seconds_until(is_enforced)
    with capsys.disabled():
        sys.stdout.write(f"\ngate closed in {closed:.2f} s, hosts in {paused:.2f} s, resumed in {resumed:.2f} s\n")
    assert max(closed, paused) < MOST_SECONDS
