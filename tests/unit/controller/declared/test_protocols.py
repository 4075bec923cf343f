"""Traffic that is not TCP: how jobs declare it, who claims it, and what several jobs may claim."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from controller.declared.claimed_traffic import FEW_FLOWS, ClaimedTraffic, size_of
from controller.declared.claims import Claims
from controller.declared.declared import Declared
from controller.declared.owners import Owners
from controller.model import Flow, Listeners
from controller.pieces import whole
from controller.refusals import Conflict, Invalid
from controller.wire import FlowSpec, HostReport, JobSpec, TaskSpec
from tests.support.controller.registry.registry_world import World

PAIR = {"src": "h1", "dst": "h2"}


def spec(*flows: dict[str, Any], **parts: Any) -> JobSpec:
    return JobSpec.model_validate({"flows": [PAIR | flow for flow in flows]} | parts)


def task(host: str, protocol: str, port: int | None = None) -> dict[str, Any]:
    return {"role": "peer", "host": host, "protocol": protocol, "port": port}


# What can be declared ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({}, "a flow needs src_port or dst_port"),
        ({"protocol": "udp"}, "a flow needs src_port or dst_port"),
        ({"protocol": "udp", "dst_port": 4791}, "UDP port 4791 is that of RoCEv2: name rocev2 as protocol"),
        ({"protocol": "rocev2", "dst_port": 4791}, "rocev2 has no port of its own"),
        ({"protocol": "any", "src_port": 5000}, "any has no port of its own"),
        ({"protocol": "any", "dst": "h1"}, "a flow's source and destination must differ"),
        ({"protocol": "sctp", "dst_port": 5000}, "tcp"),
    ],
)
def test_a_flow_that_cannot_be_matched_is_refused(fields: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        FlowSpec.model_validate(PAIR | fields)


@pytest.mark.parametrize(
    ("protocol", "port", "said"),
    [
        ("udp", None, "a task with protocol udp needs port"),
        ("udp", 4791, "name rocev2 as protocol"),
        ("rocev2", 4791, "rocev2 has no port of its own"),
        ("any", 1, "any has no port of its own"),
    ],
)
def test_a_task_whose_traffic_cannot_be_matched_is_refused(protocol: str, port: int | None, said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        TaskSpec.model_validate(task("h1", protocol, port))


def test_without_a_word_all_is_tcp() -> None:
    assert (FlowSpec(**PAIR, dst_port=1).protocol, TaskSpec(role="ps", host="h1").protocol) == ("tcp", "tcp")


def test_an_agent_finds_connections_of_tcp_alone() -> None:
    seen = {"job": "a", "flow": PAIR | {"dst_port": 7, "protocol": "udp"}}
    with pytest.raises(ValidationError, match="protocol"):
        HostReport.model_validate({"session": "s", "seq": 1, "sent_at": 0.0, "flows": [seen]})


# What a job claims ---------------------------------------------------------------------------------------------------


def test_a_task_claims_what_its_host_exchanges_with_those_that_it_communicates_with() -> None:
    tasks = [task("h1", "rocev2"), task("h2", "tcp"), task("h3", "udp", 7000)]
    claimed = ClaimedTraffic.of(JobSpec.model_validate({"tasks": tasks}))
    assert set(claimed.pairs) == {(a, b, "rocev2") for a, b in (("h1", "h2"), ("h2", "h1"), ("h1", "h3"), ("h3", "h1"))}
    assert set(claimed.udp_flows) == {
        ("h1", "h3", None, 7000), ("h2", "h3", None, 7000), ("h3", "h1", 7000, None), ("h3", "h2", 7000, None)
    }  # fmt: skip
    assert claimed.flows == () and claimed.is_without_tcp
    demand = [{"src": "h2", "dst": "h1", "bytes": 1.0}]
    few = ClaimedTraffic.of(JobSpec.model_validate({"tasks": tasks, "demand": demand}))
    assert set(few.pairs) == {("h1", "h2", "rocev2"), ("h2", "h1", "rocev2")} and few.udp_flows == ()


def test_many_tasks_cost_no_more_than_their_number() -> None:
    many = [task(f"h{n}", "rocev2") for n in range(100)]
    spec_of_many = JobSpec.model_validate({"tasks": many})
    assert ClaimedTraffic.of(spec_of_many).pairs == (), "their hosts alone tell these pairs apart"
    assert size_of(spec_of_many) == 100 + 2 * 100
    ports = JobSpec.model_validate({"tasks": [task(f"h{n}", "udp", 7000) for n in range(100)]})
    assert len(ClaimedTraffic.of(ports).udp_listeners.ends) == 100
    ring = [{"src": f"h{n}", "dst": f"h{(n + 1) % 100}", "bytes": 1.0} for n in range(100)]
    claimed = ClaimedTraffic.of(JobSpec.model_validate({"tasks": many, "demand": ring}))
    assert len(claimed.pairs) == 200 > FEW_FLOWS, "both ways of each link of the ring"


def test_jobs_may_claim_the_same_pair_but_not_the_same_udp_port() -> None:
    world = World()
    world.put("a", port=None, flows=[PAIR | {"protocol": "rocev2"}, PAIR | {"protocol": "udp", "dst_port": 7000}])
    world.put("b", port=None, flows=[PAIR | {"protocol": "rocev2"}, PAIR | {"dst_port": 7000}])
    for claim in ({"flows": [PAIR | {"protocol": "udp", "dst_port": 7000}]}, {"tasks": [task("h2", "udp", 7000)]}):
        with pytest.raises(
            Conflict, match=r"jobs c and a both claim (the UDP flow h1:\* to h2:7000|UDP port 7000 on h2)"
        ):
            world.put("c", **({"port": None} | claim))
    assert world.registry.shared_pairs("a") == world.registry.shared_pairs("b") == {("h1", "h2", "rocev2"): 1}
    world.registry.delete_job("b", 0.0)
    assert world.registry.shared_pairs("a") == {}


def test_a_host_may_listen_on_the_same_port_by_tcp_and_by_udp() -> None:
    world = World()
    world.put("a", tasks=[task("h1", "tcp", 5000), task("h1", "udp", 5000), task("h2", "tcp")])
    with pytest.raises(Invalid, match=r"is that of tasks\.0 already"):
        world.put("a", tasks=[task("h1", "udp", 5000), task("h1", "udp", 5000)])


def test_claims_of_other_protocols_own_no_connection() -> None:
    owners = Owners()
    declared = spec({"protocol": "any"}, {"protocol": "udp", "dst_port": 7000})
    owners.add("a", Claims.of(declared))
    assert owners.owner(("h1", "h2", 40_000, 7000)) is None
    tcp = Claims.of(spec({"dst_port": 7000}))
    assert owners.clashes(tcp) == set() and tcp.conflict(Claims.of(declared), spec({"dst_port": 7000})) is None


# What becomes of it --------------------------------------------------------------------------------------------------


def test_a_job_for_the_policies_has_it_all() -> None:
    world = World()
    flows = [PAIR | {"protocol": "rocev2"}, PAIR | {"protocol": "udp", "dst_port": 7000}, PAIR | {"dst_port": 8000}]
    world.put("a", port=None, flows=flows)
    world.tell(flows=[{"job": "a", "flow": PAIR | {"src_port": 1, "dst_port": 2}}])
    (job,) = world.snapshot().jobs
    assert set(job.flows) == {
        Flow("a", "h1", "h2", protocol="rocev2"),
        Flow("a", "h1", "h2", None, 7000, "udp"),
        Flow("a", "h1", "h2", None, 8000),
        Flow("a", "h1", "h2", 1, 2),
    }
    assert job.udp_listeners == Listeners()


def test_another_process_reads_the_same() -> None:
    many = [task(f"h{n}", "udp", 7000 + k) for n in range(60) for k in range(2)]
    for declared in (
        spec({"protocol": "rocev2"}, {"protocol": "any"}, {"protocol": "udp", "src_port": 1}, {"dst_port": 3}),
        JobSpec.model_validate({"tasks": [*many, task("h1", "any")]}),
    ):
        here = Declared.of(declared)
        there = whole(Declared.from_frames(iter(list(here.frames()))))
        assert (there, there.tasks, there.flows, there.claims) == (here, here.tasks, here.flows, here.claims)
        for part in ("flows", "listeners", "udp_flows", "udp_listeners", "pairs"):
            assert getattr(there.traffic, part) == getattr(here.traffic, part), part


def test_without_demand_it_is_said_that_nobody_measures_it() -> None:
    world = World()
    flows = [PAIR | {"protocol": "rocev2"}]
    world.put("a", port=None, flows=flows)
    assert any("agents measure the bytes of TCP alone" in said for said in world.registry.job_state("a").problems)
    world.put("a", port=None, flows=flows, demand=[PAIR | {"bytes": 1e6}])
    assert world.registry.job_state("a").problems == ()
