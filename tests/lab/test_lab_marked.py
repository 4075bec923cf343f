"""Marked mode whole: agents mark what they are told, the switch holds a rule a class, and order follows the plan."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from controller.model import CLASS_DSCP
from tests.lab.agents_network import agents_network
from tests.lab.network_helpers import LINK_BPS, flows, poll
from topologies import queue_proof
from topologies.controller_process import ControllerProcess
from topologies.emulation import Emulation
from topologies.queue_proof import Stream, classes, job_spec, measure

if TYPE_CHECKING:
    from tests.lab.conftest import Stage

SERVERS = 4


@dataclass
class Yard:
    """The network, its controller and an agent on every host."""

    emulation: Emulation
    controller: ControllerProcess

    def register(self, job: str, receiver: str, port: int, sender: str, *, arrival: float) -> None:
        self.controller.call("PUT", f"/v1/jobs/{job}", job_spec(receiver, port, sender) | {"arrival": arrival})
        assert poll(lambda: classes(self.controller, [job])[job] is not None), f"{job} is not planned"

    def marks(self, host: str) -> str:
        """The rules in place, whichever of the two kinds of iptables the agent uses here."""
        return self.emulation.run(host, ["sh", "-c", "iptables-legacy-save -t mangle; iptables-nft-save -t mangle; :"])

    def bytes_by_class(self) -> dict[str, int]:
        return self.controller.status().bytes_by_class["0000000000000001"]


@pytest.fixture(scope="module")
def network(stage: Stage) -> Iterator[Yard]:
    stage.clear()
    with agents_network(SERVERS, mode="marked") as (emulation, controller):
        yield Yard(emulation, controller)


@pytest.fixture
def yard(network: Yard) -> Iterator[Yard]:
    yield network
    for job in network.controller.call("GET", "/v1/jobs")["jobs"]:
        network.controller.call("DELETE", f"/v1/jobs/{job['id']}")


def test_the_first_of_two_jobs_goes_first_by_its_hosts_marks(yard: Yard) -> None:
    rules, sent = flows("s1"), yard.controller.status().flow_mods
    proof = queue_proof.prove(yard.emulation, yard.controller)
    assert proof.ratio >= 20
    assert proof.high_bps > 0.9 * LINK_BPS
    assert flows("s1") == rules, "the switch holds a rule a class, whatever jobs there are"
    assert yard.controller.status().flow_mods == sent


def test_a_new_plan_moves_a_living_connection_by_its_mark(yard: Yard) -> None:
    yard.register("moved", "h1", 5301, "h2", arrival=1000.0)
    with ThreadPoolExecutor() as pool:
        stream = pool.submit(measure, yard.emulation, [Stream("h2", "h1", 5301)], seconds=8)
        start = yard.bytes_by_class()
        assert poll(lambda: yard.bytes_by_class()["0"] > start["0"] + 3e6)
        yard.register("earlier", "h3", 5302, "h4", arrival=500.0)
        assert poll(lambda: classes(yard.controller, ["moved"]) == {"moved": 1})
        first = yard.bytes_by_class()
        assert poll(lambda: yard.bytes_by_class()["1"] > first["1"] + 1e6)
        before = yard.bytes_by_class()
        assert poll(lambda: yard.bytes_by_class()["1"] > before["1"] + 6e6)
        after = yard.bytes_by_class()
        (received,) = stream.result()
    assert after["0"] - before["0"] < 0.1 * (after["1"] - before["1"])
    assert received > 0.8 * LINK_BPS


def test_a_program_that_takes_a_class_for_itself_is_other_traffic(yard: Yard) -> None:
    yard.register("job", "h1", 5301, "h2", arrival=1000.0)
    # No mark matches the second: it sets class 0 itself, as any program may.
    streams = [Stream("h2", "h1", 5301), Stream("h3", "h1", 5999, CLASS_DSCP[0])]
    job, other = measure(yard.emulation, streams, seconds=6)
    assert job > 0.8 * LINK_BPS
    assert other < 0.2 * LINK_BPS
    # And at the sender's own NIC.
    yard.register("at-nic", "h4", 5302, "h2", arrival=1001.0)
    assert poll(lambda: "5302" in yard.marks("h2"), 30), "the host does not mark the job"
    job, other = measure(yard.emulation, [Stream("h2", "h4", 5302), Stream("h2", "h3", 5999, CLASS_DSCP[0])], seconds=6)
    assert job > 0.8 * LINK_BPS
    assert other < 0.2 * LINK_BPS
