"""Nobody enforces, or hosts alone do on a network that no controller touches: what happens, and what stays as it is."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from controller.code_points import POOL_2
from evaluation.bench.support.waiting import wait_until
from tests.support.lab.agents_network import agents_network
from tests.support.lab.network_helpers import CLASSES, flows, gate_is_open
from tests.support.lab.prevails import prevails
from topologies.emulation import Emulation
from topologies.lab.controller_process import ControllerProcess
from topologies.lab.own_switches import rules, served
from topologies.lab.queue_proof import Stream, classes, job_spec
from topologies.openvswitch import vsctl

if TYPE_CHECKING:
    from tests.lab.conftest import Stage

SERVERS = 3
FIRST, SECOND = 5301, 5302
"""The ports of the two jobs."""
LOOK_SECONDS = 12.0
"""Packets are looked at for so long: the streams need some seconds to begin, and last for ten."""
SMALL_PACKET = 80
"""The packet filter takes packets of at most so many bytes for packets without data."""

# Counts the TCP packets that come to a port, by DSCP and by whether they are larger than a packet without data.
_SEEN = r"""
import collections, json, socket, sys, time
raw = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(0x0800))
raw.settimeout(0.5)
port, until, small = int(sys.argv[1]).to_bytes(2, "big"), time.monotonic() + float(sys.argv[2]), int(sys.argv[3])
seen = collections.Counter()
while time.monotonic() < until:
    try:
        packet, place = raw.recvfrom(65536)
    except TimeoutError:
        continue
    header = (packet[0] & 15) * 4
    if place[2] != socket.PACKET_OUTGOING and packet[9] == 6 and packet[header + 2:header + 4] == port:
        size = int.from_bytes(packet[2:4], "big")
        seen[f"{packet[1] >> 2} {'small' if size <= small else 'large'}"] += 1
print(json.dumps(seen))
"""


@dataclass
class Yard:
    """The network, whose switch has no controller, and the controller of the hosts."""

    emulation: Emulation
    controller: ControllerProcess

    def register(self, job: str, receiver: str, port: int, sender: str, *, arrival: float) -> None:
        """Put a job, and wait until its sender marks it."""
        self.controller.call("PUT", f"/v1/jobs/{job}", job_spec(receiver, port, sender) | {"arrival": arrival})
        wait_until(lambda: str(port) in marks(self.emulation, sender), 30, what=f"the mark of {job} on {sender}")

    def seen(self, host: str, port: int, seconds: float) -> dict[str, int]:
        """Returns how many packets come to a port of a host, by DSCP and size."""
        command = [sys.executable, "-c", _SEEN, str(port), str(seconds), str(SMALL_PACKET)]
        counted: dict[str, int] = json.loads(self.emulation.run(host, command, timeout=seconds + 60))
        return counted


def marks(emulation: Emulation, host: str) -> str:
    """The marks of Trainyard, whichever of the two kinds of iptables the agent uses here."""
    text = emulation.run(host, ["sh", "-c", "iptables-legacy-save -t mangle; iptables-nft-save -t mangle; :"])
    return "\n".join(line for line in text.splitlines() if "TRAINYARD" in line)


def tree(emulation: Emulation, host: str) -> str:
    """The traffic control of a host's interface, without the host's name."""
    interface = f"{host}-eth0"
    shown = " ; ".join(f"tc {kind} show dev {interface}" for kind in ("qdisc", "class", "filter"))
    return emulation.run(host, ["sh", "-ec", shown]).replace(interface, "eth0")


def queues() -> dict[str, int]:
    """Returns how many queues each port of the switch has."""
    return {
        port: vsctl("get", "qos", vsctl("get", "port", port, "qos").strip(), "queues").count("=")
        for port in ("s1-eth1", "s1-eth2")
    }


def test_who_observes_plans_shows_it_and_touches_nothing(stage: Stage) -> None:
    stage.clear()
    with agents_network(2, without=("h2",), enforce=[]) as (emulation, controller):
        controller.call("PUT", "/v1/jobs/first", job_spec("h1", FIRST, "h2"))
        wait_until(lambda: classes(controller, ["first"]) == {"first": 0}, 30, what="the plan")
        wait_until(lambda: controller.status().hosts[0].marks is False, 30, what="the paused plan at the agent")
        wait_until(lambda: controller.status().switches, 30, what="the switch")
        planned = controller.status().plan_causes.get("period", 0)
        wait_until(lambda: controller.status().plan_causes.get("period", 0) >= planned + 3, 30)
        status = controller.status()
        assert (status.enforce, status.not_ready) == ((), ())
        assert controller.call("GET", "/readyz")["status"] == "observing"
        assert "observe only" in controller.call("GET", "/v1/jobs/first/explain")["not_enforced"]
        assert status.switches[0].reason is not None and status.switches[0].reason.startswith("observed only")
        assert flows("s1") == [] and not gate_is_open("s1")
        assert queues() == {"s1-eth1": 1, "s1-eth2": 1}
        assert marks(emulation, "h1") == ""
        assert tree(emulation, "h1") == tree(emulation, "h2"), "that of a host without an agent"


@pytest.fixture(scope="module")
def network(stage: Stage) -> Iterator[Yard]:
    stage.clear()
    with agents_network(SERVERS, connect=False, enforce=["hosts"]) as (emulation, controller):
        yield Yard(emulation, controller)


@pytest.fixture
def yard(network: Yard) -> Iterator[Yard]:
    yield network
    for job in network.controller.call("GET", "/v1/jobs")["jobs"]:
        network.controller.call("DELETE", f"/v1/jobs/{job['id']}")


def test_hosts_alone_are_ready_without_a_switch(yard: Yard) -> None:
    wait_until(lambda: all(host.marks for host in yard.controller.status().hosts), 30, what="the marks of every host")
    status = yard.controller.status()
    assert (status.enforce, status.switches, status.not_ready) == (("hosts",), (), ())
    assert yard.controller.call("GET", "/readyz")["status"] in {"ready", "degraded"}, "not 503"
    assert flows("s1") == []


def test_a_switch_of_its_own_configuration_keeps_the_dscps_of_hosts_and_serves_them(yard: Yard) -> None:
    with served(yard.emulation, "dscp", CLASSES):
        before = flows("s1")
        assert len(before) == len(rules(POOL_2.first(CLASSES)))
        yard.register("first", "h1", FIRST, "h2", arrival=1000.0)
        yard.register("second", "h1", SECOND, "h3", arrival=1001.0)
        assert classes(yard.controller, ["first", "second"]) == {"first": 0, "second": 1}
        with ThreadPoolExecutor() as pool:
            looks = [pool.submit(yard.seen, "h1", port, LOOK_SECONDS) for port in (FIRST, SECOND)]
            # Both senders want all of the link of h1, and meet at the switch alone.
            streams = [Stream("h2", "h1", FIRST), Stream("h3", "h1", SECOND)]
            assert prevails(yard.emulation, streams, seconds=6, ratio=10)
            seen = [look.result() for look in looks]
        for k, counts in enumerate(seen):
            own = POOL_2.classes[k]
            assert counts.get(f"{own} large", 0) > 5, seen
            assert counts.keys() <= {f"{own} large", f"{own} small", f"{POOL_2.acknowledgements} small"}, seen
        assert flows("s1") == before, "the controller has not touched the switch"
    assert flows("s1") == []


def test_where_switches_look_at_nothing_the_order_holds_at_a_hosts_interface(yard: Yard) -> None:
    with served(yard.emulation, "plain", CLASSES):
        yard.register("first", "h1", FIRST, "h2", arrival=1000.0)
        yard.register("second", "h3", SECOND, "h2", arrival=1001.0)
        with ThreadPoolExecutor() as pool:
            look = pool.submit(yard.seen, "h3", SECOND, LOOK_SECONDS)
            streams = [Stream("h2", "h1", FIRST), Stream("h2", "h3", SECOND)]
            assert prevails(yard.emulation, streams, seconds=6, ratio=10)
            seen = look.result()
        assert seen.get(f"{POOL_2.classes[1]} large", 0) > 0, seen
        assert len(flows("s1")) == 1, "the controller has not touched the switch"
