"""What a plan does to switches and hosts, in all modes and on all testbeds alike.

Of a job there are rules at the switches, or marks at the hosts and a rule a class, or a mark for life and a rule for
it. Hosts have addresses of IPv4 or of IPv6, or of both on each of two rails.

A flow moves, an unchanged plan sends nothing, restarts keep what was, and nobody takes a class for himself.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from controller.code_points import POOL_2
from evaluation.bench.support.waiting import wait_until
from host_reporter.nic.tree import HANDLE, leaf
from tests.support.lab.agents_network import agents_network, agents_report
from tests.support.lab.network_helpers import LINK_BPS, PERIOD_SECONDS, flows, gate_is_open, saved_marks
from tests.support.lab.prevails import prevails
from tests.support.rounds import first_that
from topologies.emulation import Emulation
from topologies.experiments.addressing import Families
from topologies.lab.controller_process import ControllerProcess
from topologies.lab.queue_proof import Stream, classes, job_spec, measure
from topologies.openvswitch import RUN_FOLDER, running

if TYPE_CHECKING:
    from tests.lab.conftest import Stage

SERVERS = 5
STRANGER = "h5"
"""A host without an agent, whose marks the switch is not to believe."""


class Layout(NamedTuple):
    """How switches distinguish jobs, and what the network is like."""

    mode: str
    rails: int = 1
    addresses: Families = "ipv4"


LAYOUTS = {
    "classified-rails": Layout("classified", rails=2, addresses="both"),
    "marked-ipv6": Layout("marked", addresses="ipv6"),
    "dscp": Layout("dscp"),
}
"""Other tests of the real switch have jobs told apart by their ports over IPv4 and one rail."""


@dataclass
class Yard:
    """The network, its controller and an agent on every host but one.

    Tests send over the last rail, to the last address there: that of IPv6, where there is one.
    """

    emulation: Emulation
    controller: ControllerProcess
    layout: Layout

    @property
    def switch(self) -> str:
        """The switch of the last rail."""
        return self.emulation.bridges[-1]

    def stream(self, src: str, dst: str, port: int, dscp: int | None = None) -> Stream:
        return Stream(src, dst, port, dscp, self.address(dst))

    def address(self, host: str) -> str:
        return self.emulation.plugs(host)[-1].addresses[-1]

    def register(self, job: str, receiver: str, port: int, sender: str, *, arrival: float) -> None:
        """Put a job, and wait until it is planned and its sender marks it, which is so in all modes."""
        self.put(job, port, sender, job_spec(receiver, port, sender) | {"arrival": arrival})

    def put(self, job: str, port: int, sender: str, spec: dict[str, Any]) -> None:
        """The same with any description."""
        self.controller.call("PUT", f"/v1/jobs/{job}", spec)
        wait_until(lambda: classes(self.controller, [job])[job] is not None, what=f"the planning of {job}")
        wait_until(lambda: str(port) in self.marks(sender), 30, what=f"the mark of {job} on {sender}")

    def acknowledging(self) -> set[str]:
        return {host.name for host in self.controller.status().hosts if host.marks_acknowledgements}

    def marks(self, host: str) -> str:
        return saved_marks(self.emulation, host, self.address(host))

    def bytes_by_class(self) -> dict[str, int]:
        return self.controller.status().bytes_by_class[f"{self.layout.rails:016x}"]

    def settle(self) -> None:
        """Wait until a plan of the period has come after all that was asked for."""
        planned = self.controller.status().plan_causes.get("period", 0)
        wait_until(lambda: self.controller.status().plan_causes.get("period", 0) > planned + 1)


@pytest.fixture(scope="module", params=LAYOUTS)
def network(stage: Stage, request: pytest.FixtureRequest) -> Iterator[Yard]:
    stage.clear()
    layout = LAYOUTS[request.param]
    with agents_network(SERVERS, without=(STRANGER,), untrusted_hosts=[STRANGER], **layout._asdict()) as (
        emulation,
        controller,
    ):
        yield Yard(emulation, controller, layout)


@pytest.fixture
def yard(network: Yard) -> Iterator[Yard]:
    """Without jobs; the controller may be killed and is there again for the next test."""
    if not network.controller.runs:
        network.controller.start()
        network.controller.wait_ready()
        wait_until(lambda: agents_report(network.controller, (STRANGER,)), 30, what="the return of every agent")
    yield network
    if network.controller.runs:
        for job in network.controller.call("GET", "/v1/jobs")["jobs"]:
            network.controller.call("DELETE", f"/v1/jobs/{job['id']}")


def has_the_link(rates: Sequence[float]) -> bool:
    """Whether the first stream has almost all of a link."""
    return rates[0] > 0.8 * LINK_BPS


def test_a_new_plan_moves_a_living_connection(yard: Yard) -> None:
    yard.register("moved", "h1", 5301, "h2", arrival=1000.0)
    with ThreadPoolExecutor() as pool:
        stream = pool.submit(measure, yard.emulation, [yard.stream("h2", "h1", 5301)], seconds=8)
        start = yard.bytes_by_class()
        wait_until(lambda: yard.bytes_by_class()["0"] > start["0"] + 3e6)
        marked = dscps_set(yard.marks("h2"))
        yard.register("earlier", "h3", 5302, "h4", arrival=500.0)
        wait_until(lambda: classes(yard.controller, ["moved"]) == {"moved": 1})
        first = yard.bytes_by_class()
        wait_until(lambda: yard.bytes_by_class()["1"] > first["1"] + 1e6)
        before = yard.bytes_by_class()
        wait_until(lambda: yard.bytes_by_class()["1"] > before["1"] + 6e6)
        after = yard.bytes_by_class()
        (received,) = stream.result()
    if yard.layout.mode == "dscp":
        assert dscps_set(yard.marks("h2")) == marked, "nothing changes at the host"
    assert after["0"] - before["0"] < 0.1 * (after["1"] - before["1"])
    assert received > 0.8 * LINK_BPS


def test_a_job_sends_where_nobody_else_does_though_its_other_direction_has_to_wait(yard: Yard) -> None:
    """What it acknowledges leaves by a link that another job fills, where the job's own data waits."""
    wait_until(lambda: yard.acknowledging() == set(yard.emulation.hosts) - {STRANGER}, 30)
    yard.register("first", "h2", 5301, "h1", arrival=1000.0)
    both = [{"role": "peer", "host": "h1", "port": 5302}, {"role": "peer", "host": "h3", "port": 5302}]
    yard.put("both", 5302, "h1", {"tasks": both, "arrival": 1001.0})
    waiting = [yard.stream("h1", "h2", 5301), yard.stream("h1", "h3", 5302)]

    def rates() -> tuple[float, float, float]:
        with ThreadPoolExecutor() as pool:
            # It begins first: else what iperf3 agrees on with itself may have to wait behind the other direction's.
            before = yard.bytes_by_class()
            sends = pool.submit(measure, yard.emulation, [yard.stream("h3", "h1", 5302)], seconds=14)
            wait_until(lambda: yard.bytes_by_class()["1"] > before["1"] + 1e6)
            first, waits = measure(yard.emulation, waiting, seconds=6)
            return first, waits, sends.result()[0]

    def holds(found: tuple[float, float, float]) -> bool:
        return min(found[0], found[2]) > 0.8 * LINK_BPS and found[1] < 0.1 * LINK_BPS

    first, waits, free = first_that(holds, rates)
    assert holds((first, waits, free)), (first, waits, free)


def test_an_unchanged_plan_sends_nothing_but_the_gates_renewal(yard: Yard) -> None:
    yard.register("steady", "h1", 5301, "h2", arrival=1000.0)
    yard.settle()
    before = yard.controller.status()
    rules = flows(yard.switch)
    renewals = 3 * len(before.switches)
    wait_until(lambda: yard.controller.status().gate_renewals >= before.gate_renewals + renewals, 10 * PERIOD_SECONDS)
    after = yard.controller.status()
    assert after.plan_causes["period"] >= before.plan_causes["period"] + 2
    assert after.flow_mods == before.flow_mods
    assert flows(yard.switch) == rules


def test_a_restart_of_the_controller_changes_no_rule(yard: Yard) -> None:
    for i in range(3):
        yard.register(f"kept-{i}", "h1", 5310 + i, f"h{i + 2}", arrival=1000.0 + i)
    yard.settle()
    rules, before = flows(yard.switch), yard.controller.call("GET", "/v1/plan")["classes"]
    yard.controller.kill()
    yard.controller.start()
    yard.controller.wait_ready()
    assert flows(yard.switch) == rules
    assert yard.controller.call("GET", "/v1/plan")["classes"] == before
    assert yard.controller.status().flow_mods == 0


def test_a_restart_of_the_switch_gets_all_rules_back(yard: Yard) -> None:
    yard.register("kept", "h1", 5301, "h2", arrival=1000.0)
    yard.settle()
    rules = flows(yard.switch)
    restart_switch()
    wait_until(lambda: all(switch.ready for switch in yard.controller.status().switches), 30)
    wait_until(lambda: flows(yard.switch) == rules, 30)
    (received,) = first_that(has_the_link, lambda: measure(yard.emulation, [yard.stream("h2", "h1", 5301)], seconds=2))
    assert has_the_link([received]), received


def test_nobody_takes_a_class_for_himself(yard: Yard) -> None:
    yard.register("job", "h1", 5301, "h2", arrival=1000.0)
    # No mark matches the second and the third: they set class 0 themselves, as any program may. On the third's host
    # nothing clears that: it leaves with the mark, and the switch is not to believe it.
    assert "TRAINYARD" not in yard.marks(STRANGER)
    takers = [yard.stream("h3", "h1", 5999, POOL_2.classes[0]), yard.stream(STRANGER, "h1", 5998, POOL_2.classes[0])]
    at_port = [yard.stream("h2", "h1", 5301), *takers]
    job, *others = first_that(has_the_link, lambda: measure(yard.emulation, at_port, seconds=6))
    # In the job's class they would send as much as it does. They may have what it leaves when the machine is busy.
    assert has_the_link([job]), (job, others)
    assert max(others) < job / 2, (job, others)
    # And at the sender's own NIC.
    yard.register("at-nic", "h4", 5302, "h2", arrival=1001.0)
    at_nic = [yard.stream("h2", "h4", 5302), yard.stream("h2", "h3", 5999, POOL_2.classes[0])]
    job, other = first_that(has_the_link, lambda: measure(yard.emulation, at_nic, seconds=4))
    assert has_the_link([job]), (job, other)
    assert other < job / 2, (job, other)


@pytest.mark.parametrize("network", ["classified-rails"], indirect=True)
def test_rails_have_an_order_each_and_interfaces_serve_what_they_send(yard: Yard) -> None:
    yard.register("first", "h1", 5301, "h2", arrival=1000.0)
    yard.register("second", "h1", 5302, "h3", arrival=1001.0)
    ports = {wait["port"] for wait in yard.controller.call("GET", "/v1/jobs/first/explain")["ports"]}
    assert ports == {
        f"{host}/{host}-eth{rail} {way}" for host, way in (("h2", "egress"), ("h1", "ingress")) for rail in (0, 1)
    }
    over_ipv4 = yard.emulation.plugs("h1")[0].addresses[0]
    streams = [Stream("h2", "h1", 5301, address=over_ipv4), yard.stream("h3", "h1", 5302)]

    def rates_and_sent() -> tuple[list[float], dict[tuple[str, int], int]]:
        before = leaf_bytes(yard.emulation)
        rates = measure(yard.emulation, streams, seconds=4)
        after = leaf_bytes(yard.emulation)
        return rates, {place: after[place] - count for place, count in before.items()}

    # On one link the second job would wait for the first.
    rates, sent = first_that(lambda found: min(found[0]) > 0.8 * LINK_BPS, rates_and_sent)
    assert min(rates) > 0.8 * LINK_BPS, rates
    least = 4 * 0.8 * LINK_BPS / 8
    assert sent["h2-eth0", 0] > least, sent
    assert sent["h3-eth1", 1] > least, sent
    assert max(sent["h2-eth1", 0], sent["h3-eth0", 1]) < 0.01 * least, sent


def test_without_a_controller_the_network_goes_on_without_priorities(yard: Yard) -> None:
    yard.register("first", "h1", 5301, "h2", arrival=1000.0)
    yard.register("second", "h1", 5302, "h3", arrival=1001.0)
    # In the other modes the switch holds a rule a class or job, and none for what a job sends.
    assert any("=5301" in rule for rule in flows(yard.switch)) == (yard.layout.mode == "classified")
    streams = [yard.stream("h2", "h1", 5301), yard.stream("h3", "h1", 5302)]
    assert prevails(yard.emulation, streams, seconds=3)
    yard.controller.kill()
    began = time.monotonic()
    wait_until(lambda: not gate_is_open(yard.switch), 30)
    assert time.monotonic() - began < 5 * PERIOD_SECONDS + 8
    before = queue_bytes(yard.switch, 1)
    shares = first_that(lambda rates: sum(rates) > 0.8 * LINK_BPS, lambda: measure(yard.emulation, streams, seconds=4))
    after = queue_bytes(yard.switch, 1)
    assert sum(shares) > 0.8 * LINK_BPS, shares
    # All in one queue, whatever TCP makes of it there: the jobs' own queues stay as they are.
    assert after[0] - before[0] > 4 * 0.8 * LINK_BPS / 8
    assert {queue: after[queue] - before[queue] for queue in (1, 2)} == {1: 0, 2: 0}


def dscps_set(rules: str) -> list[str]:
    """Returns the rules that set a DSCP, without their counters."""
    return [line.partition("] ")[2] or line for line in rules.splitlines() if "--set-dscp" in line]


def leaf_bytes(emulation: Emulation) -> dict[tuple[str, int], int]:
    """The bytes that have left each interface of h2 and h3 in the first two classes."""
    counts = {}
    for plug in emulation.plugs("h2", "h3"):
        text = emulation.run(plug.host, ["tc", "-s", "class", "show", "dev", plug.interface])
        for k in (0, 1):
            found = re.search(rf"class htb {HANDLE}:{leaf(k):x} .*?Sent (\d+) bytes", text, re.DOTALL)
            assert found is not None, text
            counts[plug.interface, k] = int(found[1])
    return counts


def restart_switch() -> None:
    pid = int((RUN_FOLDER / "ovs-vswitchd.pid").read_text())
    command = Path(f"/proc/{pid}/cmdline").read_text().split("\0")[:-1]
    os.kill(pid, signal.SIGTERM)
    wait_until(lambda: not Path(f"/proc/{pid}").exists())
    subprocess.run(command, check=True)
    wait_until(running)


def queue_bytes(bridge: str, port: int) -> dict[int, int]:
    """Bytes that each queue of a port has sent, as the switch counts them."""
    command = ["ovs-ofctl", "-O", "OpenFlow13", "queue-stats", bridge, str(port)]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return {int(queue): int(sent) for queue, sent in re.findall(r"queue (\d+): bytes=(\d+)", text)}
