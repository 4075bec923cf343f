"""Jobs in pods, behind VXLAN or Geneve between three hosts: the outer header carries the mark, and plans hold.

The jobs share all three hosts, so that switches see the same addresses and the same UDP port for each of them.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import pytest

from controller.code_points import POOL_2
from evaluation.bench.support.waiting import wait_until
from tests.support.lab.agents_network import agents_network, agents_report
from tests.support.lab.network_helpers import LINK_BPS, PERIOD_SECONDS, flows, gate_is_open
from tests.support.lab.pods import UDP_PORT, Job, Pod, Pods, Seen, TunnelKind
from tests.support.rounds import first_that
from topologies.emulation import Emulation
from topologies.lab.controller_process import ControllerProcess
from topologies.lab.queue_proof import classes

if TYPE_CHECKING:
    from tests.lab.conftest import Stage

HOSTS = ("h1", "h2", "h3")
SWITCH = "s1"
ECT = 0b10
MEASURED_SECONDS = 4.0


class Layout(NamedTuple):
    """How switches distinguish jobs, and what is between the hosts."""

    mode: str
    kind: TunnelKind


LAYOUTS = {
    "classified-vxlan": Layout("classified", "vxlan"),
    "classified-geneve": Layout("classified", "geneve"),
    "marked-vxlan": Layout("marked", "vxlan"),
    "dscp-vxlan": Layout("dscp", "vxlan"),
}

ONE_OF_EACH = pytest.mark.parametrize("network", ["classified-vxlan", "dscp-vxlan"], indirect=True)
"""One layout by flows and one by jobs' own DSCPs: the kind of tunnel does not matter to these tests."""
BY_FLOWS = pytest.mark.parametrize("network", ["classified-vxlan"], indirect=True)


@dataclass
class Yard:
    """The network, its controller, an agent on every host, and the pods. Each job has a pod on each host."""

    emulation: Emulation
    controller: ControllerProcess
    layout: Layout
    pods: Pods
    of: dict[str, dict[str, Pod]]
    jobs: dict[str, Job] = field(default_factory=dict)
    number: int = 1

    def id_of(self, name: str) -> str:
        """Returns the id of a job, another one in each test: an agent may tell late that the job before has ended."""
        return f"{name}-{self.number}"

    def begin(self, name: str, sender: str, *, arrival: float) -> Job:
        """Register a job of all hosts, and let its pod on one of them send to that on h1."""
        self.order(name, arrival)
        self.jobs[name] = self.pods.job(self.id_of(name), self.of[name]["h1"], self.of[name][sender])
        return self.jobs[name]

    def order(self, name: str, arrival: float) -> None:
        """Say when a job has arrived: the controller serves jobs in that order."""
        spec = {
            "tasks": [{"role": "worker", "host": host} for host in HOSTS],
            "demand": [{"src": host, "dst": "h1", "bytes": 1e6} for host in HOSTS[1:]],
            "arrival": arrival,
        }
        self.controller.call("PUT", f"/v1/jobs/{self.id_of(name)}", spec)

    def both(self) -> tuple[Job, Job]:
        """Returns two marked jobs, whose senders on two hosts want twice the link of h1."""
        first, second = self.begin("first", "h2", arrival=1000.0), self.begin("second", "h3", arrival=1001.0)
        self.wait_for("first", "second")
        wait_until(self.is_marked, 30, what="the marks in all outer headers that come to h1")
        return first, second

    def wait_for(self, *order: str) -> None:
        """Wait until jobs are served in this order. Which classes they have depends on the plans before."""
        wanted = [self.id_of(name) for name in order]

        def is_planned() -> bool:
            found = [k for k in classes(self.controller, wanted).values() if k is not None]
            return len(found) == len(order) and found == sorted(set(found))

        wait_until(is_planned, 20, what=f"the order {', '.join(order)}")

    def is_marked(self) -> bool:
        """Returns whether every packet of jobs that comes to h1 has the DSCP of its job."""
        seen = self.seen(1.0)
        return bool(seen) and all(each.outer >> 2 == self.dscp(each) for each in seen)

    def seen(self, seconds: float) -> list[Seen]:
        return self.pods.seen("h1", seconds)

    def dscp(self, seen: Seen) -> int | None:
        """Returns the DSCP of the job that has sent what is inside; None: its pod is of no job."""
        for name in self.jobs:
            if seen.source in {pod.address for pod in self.of[name].values()}:
                return self.dscp_of(name)
        return None

    def dscp_of(self, name: str) -> int:
        """Returns the DSCP of a job now: that of its class, or its own where jobs have some."""
        job = self.id_of(name)
        own: int | None = self.controller.call("GET", f"/v1/jobs/{job}")["dscp"]
        planned = classes(self.controller, [job])[job]
        assert planned is not None
        return POOL_2.classes[planned] if own is None else own

    def rates(self, first: Job, second: Job) -> tuple[float, float]:
        """Returns what arrives for each job, in bit/s."""
        jobs = first, second
        before, began = [job.received() for job in jobs], time.monotonic()
        time.sleep(MEASURED_SECONDS)
        after, took = [job.received() for job in jobs], time.monotonic() - began
        bps = [8 * (now - then) / took for now, then in zip(after, before, strict=True)]
        return bps[0], bps[1]

    def clear(self) -> None:
        for job in self.jobs.values():
            job.end()
        self.jobs.clear()
        self.number += 1
        for job in self.controller.call("GET", "/v1/jobs")["jobs"]:
            self.controller.call("DELETE", f"/v1/jobs/{job['id']}")


def is_in_order(rates: tuple[float, float]) -> bool:
    """Whether the first of two jobs that want the whole link goes before the second."""
    return rates[0] > 20 * rates[1]


def is_full_and_in_order(rates: tuple[float, float]) -> bool:
    return is_in_order(rates) and rates[0] > 0.8 * LINK_BPS


@pytest.fixture(scope="module", params=LAYOUTS)
def network(stage: Stage, request: pytest.FixtureRequest) -> Iterator[Yard]:
    stage.clear()
    layout = LAYOUTS[request.param]
    with agents_network(len(HOSTS), mode=layout.mode) as (emulation, controller):
        pods = Pods(emulation, layout.kind)
        of = {name: {host: pods.add(host) for host in HOSTS} for name in ("first", "second", "stranger")}
        yield Yard(emulation, controller, layout, pods, of)


@pytest.fixture
def yard(network: Yard) -> Iterator[Yard]:
    """The network without jobs. A test may kill the controller, which is there again for the next one."""
    yield network
    if not network.controller.runs:
        network.controller.start()
        network.controller.wait_ready()
        wait_until(lambda: agents_report(network.controller), 30, what="the return of every agent")
    network.clear()


def test_jobs_in_pods_are_told_apart_by_the_outer_header_whose_ecn_stays(yard: Yard) -> None:
    first, second = yard.both()
    with ThreadPoolExecutor() as pool:
        look = pool.submit(yard.seen, MEASURED_SECONDS)
        ahead, behind = first_that(is_full_and_in_order, lambda: yard.rates(first, second))
        seen = look.result()
    assert is_full_and_in_order((ahead, behind)), (ahead, behind)
    assert {each.source for each in seen} == {yard.of["first"]["h2"].address, yard.of["second"]["h3"].address}
    assert {each.outer >> 2 for each in seen} == {yard.dscp_of("first"), yard.dscp_of("second")}
    assert all(each.outer & 0b11 == each.inner & 0b11 for each in seen), seen
    assert any(each.outer & 0b11 == ECT for each in seen), seen
    wanted = dict.fromkeys(HOSTS, (UDP_PORT[yard.layout.kind],))
    wait_until(lambda: {host.name: host.tunnel_ports for host in yard.controller.status().hosts} == wanted, 10)


def test_a_new_plan_moves_a_living_connection(yard: Yard) -> None:
    first, second = yard.both()

    def seconds_until_planned() -> float:
        yard.order("second", 1001.0)
        yard.wait_for("first", "second")
        began = time.monotonic()
        yard.order("second", 500.0)
        yard.wait_for("second", "first")
        return time.monotonic() - began

    took = first_that(lambda took: took < 2 * PERIOD_SECONDS, seconds_until_planned)
    assert took < 2 * PERIOD_SECONDS
    time.sleep(2.0)  # what is in the queues
    ahead, behind = first_that(is_in_order, lambda: yard.rates(second, first))
    assert is_in_order((ahead, behind)), (ahead, behind)
    wait_until(yard.is_marked, 30, what="the new marks in all outer headers")


@ONE_OF_EACH
def test_an_unchanged_plan_sends_nothing_and_a_restart_of_the_controller_changes_no_rule(yard: Yard) -> None:
    yard.both()
    planned = yard.controller.status().plan_causes.get("period", 0)
    wait_until(lambda: yard.controller.status().plan_causes.get("period", 0) > planned + 1)
    rules, before = flows(SWITCH), yard.controller.status()
    wait_until(lambda: yard.controller.status().gate_renewals >= before.gate_renewals + 3, 10 * PERIOD_SECONDS)
    assert yard.controller.status().flow_mods == before.flow_mods
    own = [rule for rule in rules if f"tp_dst={UDP_PORT[yard.layout.kind]}" in rule and "in_port" in rule]
    assert len(own) == (len(HOSTS) if yard.layout.mode == "classified" else 0), own
    yard.controller.kill()
    yard.controller.start()
    yard.controller.wait_ready()
    assert flows(SWITCH) == rules


@ONE_OF_EACH
def test_no_pod_takes_a_class_for_itself(yard: Yard) -> None:
    # Its program sets the DSCP of a job that is on the same host, as any may.
    first = yard.begin("first", "h2", arrival=1000.0)
    # Another job has the same hosts. Where a job has two hosts alone, all that their tunnels carry is its own.
    yard.order("second", arrival=1001.0)
    yard.wait_for("first", "second")
    wait_until(yard.is_marked, 30, what="the marks of the first job")
    pods, claimed = yard.of["stranger"], yard.dscp_of("first")
    stranger = yard.pods.job("stranger", pods["h1"], pods["h2"], dscp=claimed, agents=False)
    try:
        with ThreadPoolExecutor() as pool:
            look = pool.submit(yard.seen, MEASURED_SECONDS)
            job, other = first_that(lambda rates: rates[0] > 5 * rates[1], lambda: yard.rates(first, stranger))
            seen = [each for each in look.result() if each.source == pods["h2"].address]
        assert job > 5 * other, (job, other)
        assert {each.inner >> 2 for each in seen} == {claimed}, seen
        # A switch may give it the DSCP of the last class, as to all that hosts with jobs send.
        assert claimed not in {each.outer >> 2 for each in seen}, seen
    finally:
        stranger.end()


@BY_FLOWS
def test_without_a_controller_the_network_goes_on_without_priorities(yard: Yard) -> None:
    first, second = yard.both()
    yard.controller.kill()
    wait_until(lambda: not gate_is_open(SWITCH), 30)
    rates = first_that(lambda rates: sum(rates) > 0.7 * LINK_BPS, lambda: yard.rates(first, second))
    assert sum(rates) > 0.7 * LINK_BPS, rates


@BY_FLOWS
def test_jobs_that_end_leave_their_tunnel_as_it_was(yard: Yard) -> None:
    yard.both()
    saved = "iptables-legacy-save -t mangle; iptables-nft-save -t mangle; :"
    assert "u32" in yard.emulation.run("h2", ["sh", "-c", saved])
    yard.clear()
    wait_until(lambda: "u32" not in yard.emulation.run("h2", ["sh", "-c", saved]), 30, what="the end of the rules")
    assert "inherit" not in yard.emulation.run("h2", ["ip", "-details", "link", "show", "type", yard.layout.kind])
