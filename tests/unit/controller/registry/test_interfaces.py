"""Hosts with several interfaces: what their agents tell by interface, and how a plan sees it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from controller.journal.store import Store
from controller.model import Demand, Host
from tests.support.controller.registry.registry_world import World, job_spec
from tests.support.controller.registry.unpaused import UnpausedRegistry, commit

RAILS = {
    f"h{k}/r{rail}": Host(f"h{k}/r{rail}", address=f"10.{rail}.0.{k}", interface=f"r{rail}")
    for k in (1, 2)
    for rail in (0, 1)
} | {"h3": Host("h3", address="10.0.0.3")}  # fmt: skip
TASKS = [{"role": "worker", "host": f"h{n}"} for n in (1, 2, 3)]
MB = 1e6


@pytest.fixture
def world() -> World:
    return World(RAILS)


def traffic(*links: dict[str, Any], **parts: Any) -> dict[str, Any]:
    return {"job": "a", "as_of": 1000.0, "links": list(links)} | parts


def found(world: World) -> set[tuple[str, str, int | None, int | None]]:
    (job,) = world.snapshot().jobs
    return {tuple(flow)[1:5] for flow in job.found}


def test_jobs_and_reports_name_servers_and_plans_interfaces(world: World) -> None:
    world.put(tasks=TASKS, demand=[{"src": "h1", "dst": "h2", "bytes": 8.0}, {"src": "h1", "dst": "h3", "bytes": 4.0}])
    assert list(world.registry.servers) == ["h1", "h2", "h3"]
    snapshot = world.snapshot()
    assert snapshot.hosts == RAILS
    assert set(snapshot.jobs[0].demand) == {
        Demand("h1/r0", "h2/r0", 4.0), Demand("h1/r1", "h2/r1", 4.0),
        Demand("h1/r0", "h3", 2.0), Demand("h1/r1", "h3", 2.0),
    }  # fmt: skip
    assert snapshot.jobs[0].demand is world.snapshot().jobs[0].demand, "loads are remembered by it"
    world.tell("h1", marks_acknowledgements=True)
    assert world.snapshot().acknowledging == {"h1/r0", "h1/r1"}
    world.tell("h1", tunnel_ports=[4789])
    assert world.snapshot().tunnels == {"h1/r0": (4789,), "h1/r1": (4789,)}
    assert dict(zip(world.registry.servers, world.registry.agents(), strict=True)) == {
        "h1": "reporting", "h2": "none", "h3": "none"
    }  # fmt: skip


@pytest.mark.parametrize("field", ["tasks", "demand"])
def test_a_job_cannot_name_an_interface(world: World, field: str) -> None:
    given: dict[str, Any] = {
        "tasks": [{"role": "worker", "host": "h1/r0"}],
        "demand": [{"src": "h1/r0", "dst": "h2", "bytes": 1.0}],
    }
    with pytest.raises(ValueError, match=field):
        job_spec(**{field: given[field]})


def test_a_connection_is_of_the_interfaces_that_it_uses(world: World) -> None:
    world.put(tasks=TASKS)
    link = {"peer": "h2/r1", "port": 7, "peer_port": 8}
    world.tell("h1", traffic=[traffic({**link, "interface": "r0"})])
    assert found(world) == {("h1/r0", "h2/r1", 7, 8), ("h2/r1", "h1/r0", 8, 7)}
    world.tell("h1", traffic=[traffic(link)])
    assert found(world) == {
        (*ends, *ports)
        for own in ("h1/r0", "h1/r1")
        for ends, ports in (((own, "h2/r1"), (7, 8)), (("h2/r1", own), (8, 7)))
    }, "an agent that does not tell its own interface may use any"


def test_an_interface_that_is_gone_stands_for_those_that_there_are(world: World) -> None:
    world.put(tasks=TASKS)
    world.tell("h1", traffic=[traffic({"peer": "h2/r1", "port": 7, "peer_port": 8, "interface": "r1"})])
    one_each = {name: Host(name, address=f"10.0.0.{k}") for k, name in enumerate(("h1", "h2", "h3"), 1)}
    world.registry.change_hosts(one_each, 30.0)
    assert found(world) == {("h1", "h2", 7, 8), ("h2", "h1", 8, 7)}


def test_a_port_that_a_job_declares_is_its_own_on_every_interface(world: World) -> None:
    world.put("a", tasks=TASKS, arrival=1.0)
    world.put("b", tasks=[{"role": "ps", "host": "h2", "port": 5000}, TASKS[0]])
    link = {"peer": "h2/r1", "port": 40_000, "peer_port": 5000, "interface": "r1"}
    answer = world.tell("h1", traffic=[traffic(link)])
    assert [part.reason for part in answer.left_out] == ["1 connections are on ports that job b declares"]
    world.tell("h1", traffic=[traffic({**link, "peer_port": 6000})])
    assert len(world.snapshot().jobs[0].found) == 2
    world.put("c", tasks=[{"role": "ps", "host": "h2", "port": 6000}, TASKS[0]])
    assert world.snapshot().jobs[0].found == (), "another job declares the port now"


@pytest.mark.parametrize("peer", ["h1/r1", "h9/r0", "h9"])
def test_a_link_to_itself_or_to_nobody_is_left_out(world: World, peer: str) -> None:
    world.put(tasks=TASKS)
    world.tell("h1", traffic=[traffic({"peer": peer, "port": 7, "interface": "r0"})])
    assert found(world) == set()


def measured(world: World, **own: str) -> set[Demand]:
    world.put(tasks=TASKS)
    for time in range(0, 12, 2):
        world.clock.now = 1000.0 + time
        peers = [
            {"peer": "h2/r1", "sent": 3 * MB * time, "received": MB * time, **own},
            {"peer": "h3", "sent": MB * time, **own},
        ]
        points = [{"iteration": float(time + 1), "time": 1000.0 + time}]
        world.tell("h1", [{"job": "a", "points": points}], traffic=[traffic(as_of=1000.0 + time, peers=peers)])
    return set(world.snapshot().jobs[0].demand)


def test_measured_demand_is_of_the_interfaces_that_carry_it(world: World) -> None:
    assert measured(world, interface="r0") == {
        Demand("h1/r0", "h2/r1", 3 * MB), Demand("h2/r1", "h1/r0", MB), Demand("h1/r0", "h3", MB)
    }  # fmt: skip
    (job,) = world.snapshot().jobs
    assert job.sent_bytes == {"h1/r0": 40 * MB, "h1/r1": 0.0}


def test_bytes_of_interfaces_that_nobody_has_any_more_are_added_up(world: World) -> None:
    world.put(tasks=TASKS)
    for time in range(0, 12, 2):
        world.clock.now = 1000.0 + time
        peers = [{"peer": "h3", "sent": MB * time, "interface": gone} for gone in ("old0", "old1")]
        points = [{"iteration": float(time + 1), "time": 1000.0 + time}]
        world.tell("h1", [{"job": "a", "points": points}], traffic=[traffic(as_of=1000.0 + time, peers=peers)])
    assert set(world.snapshot().jobs[0].demand) == {Demand("h1/r0", "h3", MB), Demand("h1/r1", "h3", MB)}


def test_where_the_own_interface_is_not_told_it_is_that_of_the_rail(world: World) -> None:
    assert measured(world) == {
        Demand("h1/r1", "h2/r1", 3 * MB), Demand("h2/r1", "h1/r1", MB),
        Demand("h1/r0", "h3", MB / 2), Demand("h1/r1", "h3", MB / 2),
    }  # fmt: skip


def test_what_is_known_by_interface_survives_a_restart(tmp_path: Path) -> None:
    world = World(RAILS)
    store = Store(tmp_path / "journal")
    world.registry = UnpausedRegistry(RAILS, store, world.clock)
    demand = measured(world, interface="r0")
    world.tell("h1", traffic=[traffic({"peer": "h2/r1", "port": 7, "peer_port": 8, "interface": "r0"})])
    commit(store)
    store.close()
    world.registry = UnpausedRegistry(RAILS, Store(tmp_path / "journal"), world.clock)
    assert set(world.snapshot().jobs[0].demand) == demand
    assert found(world) == {("h1/r0", "h2/r1", 7, 8), ("h2/r1", "h1/r0", 8, 7)}


def test_declared_demand_is_compared_with_all_that_a_server_sends(world: World) -> None:
    demand = [{"src": "h1", "dst": "h2", "bytes": 3 * MB}, {"src": "h1", "dst": "h3", "bytes": MB}]
    world.put(tasks=TASKS, demand=demand)
    world.put = lambda *_args, **_spec: None  # type: ignore[method-assign,assignment,return-value]
    measured(world, interface="r0")
    assert world.registry.job_state("a").problems == ()


def test_an_interface_that_nobody_has_is_not_remembered(world: World) -> None:
    world.put(tasks=TASKS)
    link = {"peer": "h3/made-up", "port": 7, "interface": "no-such"}
    world.tell("h1", traffic=[traffic(link, peers=[{"peer": "h3/x", "interface": "y", "sent": 1.0}])])
    record = world.registry._jobs.find("a")
    assert record.connections.found.flows == {("h1", "h3", 7, None), ("h3", "h1", None, 7)}
    (sample,) = record.measured._series["h1"].samples
    assert set(sample.counts) == {("h1", "h3")}
