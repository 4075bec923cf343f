"""What hosts tell of jobs' connections, as the registry takes it: whole sets, bytes, and who may say what."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest

from controller.declared.declared import Declared
from controller.journal.store import Store
from controller.pieces import whole
from controller.wire import HostReport
from tests.support.controller.registry.registry_world import HOSTS, World, job_spec, progress
from tests.support.controller.registry.unpaused import UnpausedRegistry, commit, dequeued

TASKS = [{"role": "worker", "host": f"h{n}"} for n in (1, 2, 3)]


def traffic(job: str = "a", *links: tuple[str, int | None, int | None], **parts: Any) -> dict[str, Any]:
    named = [{"peer": peer, "port": port, "peer_port": peer_port} for peer, port, peer_port in links]
    return {"job": job, "as_of": 1000.0, "links": named} | parts


def found(world: World, job: str = "a") -> set[tuple[str, str, int | None, int | None]]:
    its = next(its for its in world.snapshot().jobs if its.id == job)
    return {(flow.src, flow.dst, flow.src_port, flow.dst_port) for flow in its.found}


@pytest.fixture
def undeclared(world: World) -> World:
    world.put(tasks=TASKS)
    world.triggers.clear()
    return world


def test_a_link_is_traffic_of_both_directions(undeclared: World) -> None:
    answer = undeclared.tell(traffic=[traffic("a", ("h2", None, 5000), ("h3", 40_000, 6000))])
    assert answer.refused == ()
    assert found(undeclared) == {
        ("h1", "h2", None, 5000), ("h2", "h1", 5000, None),
        ("h1", "h3", 40_000, 6000), ("h3", "h1", 6000, 40_000),
    }  # fmt: skip
    assert undeclared.triggers == ["new flows"]
    job = undeclared.snapshot().jobs[0]
    assert job.found_on == {"h1"} and job.flows == ()


def test_a_set_takes_the_place_of_the_one_before_and_none_stays(undeclared: World) -> None:
    undeclared.tell(traffic=[traffic("a", ("h2", 1, 2))])
    undeclared.tell(traffic=[traffic("a") | {"links": None}])
    assert len(found(undeclared)) == 2
    undeclared.tell(traffic=[traffic("a", ("h2", 3, 4))])
    assert found(undeclared) == {("h1", "h2", 3, 4), ("h2", "h1", 4, 3)}
    undeclared.tell(traffic=[traffic("a", ("h2", 3, 4))])
    assert undeclared.triggers == ["new flows"] * 2, "the same again is no news"
    undeclared.tell(traffic=[traffic("a")])
    assert found(undeclared) == set()
    assert undeclared.snapshot().jobs[0].found_on == {"h1"}, "it still knows the job's sockets"


def test_two_hosts_tell_of_one_connection_and_it_is_one(undeclared: World) -> None:
    undeclared.tell("h1", traffic=[traffic("a", ("h2", None, 5000))], seq=1)
    undeclared.tell("h2", traffic=[traffic("a", ("h1", 5000, 40_000))], seq=1)
    assert found(undeclared) == {("h1", "h2", None, 5000), ("h2", "h1", 5000, None)}


def test_late_and_doubled_batches_do_not_bring_back_what_is_gone(undeclared: World) -> None:
    old = {"traffic": [traffic("a", ("h2", 1, 2))], "session": "s", "seq": 5, "sent_at": 1000.0}
    report = undeclared.registry.report
    report("h1", HostReport.model_validate(old | {"traffic": [traffic("a", ("h2", 3, 4))], "seq": 6}), 0.0)
    report("h1", HostReport.model_validate(old), 0.0)
    assert ("h1", "h2", 1, 2) not in found(undeclared)
    # An agent that has gone says nothing after the one that came in its place.
    report("h1", HostReport.model_validate(old | {"traffic": [traffic("a", ("h3", 9, 9))], "session": "t"}), 0.0)
    report("h1", HostReport.model_validate(old | {"seq": 7}), 0.0)
    assert found(undeclared) == {("h1", "h3", 9, 9), ("h3", "h1", 9, 9)}


def test_what_others_declare_is_not_taken_and_who_declares_it_later_gets_it(world: World) -> None:
    world.put("b", tasks=[{"role": "ps", "host": "h2", "port": 5000}, {"role": "worker", "host": "h1"}])
    world.put("a", tasks=TASKS)
    answer = world.tell(traffic=[traffic("a", ("h2", None, 5000), ("h2", 7, 8))])
    assert found(world) == {("h1", "h2", 7, 8), ("h2", "h1", 8, 7)}
    assert [(part.job, "job b declares" in part.reason) for part in answer.left_out] == [("a", True)]
    world.put("c", tasks=[{"role": "ps", "host": "h2", "port": 8}, {"role": "worker", "host": "h1"}])
    assert found(world) == set()


@pytest.mark.parametrize("is_put_again", [True, False], ids=["put again", "removed"])
def test_connections_of_a_run_that_goes_while_another_job_is_put_are_not_written_again(
    tmp_path: Path, is_put_again: bool
) -> None:
    world = World()
    store = Store(tmp_path / "j.db")
    world.registry = UnpausedRegistry(HOSTS, store, world.clock)
    world.put("first", tasks=TASKS)
    world.put("a", tasks=TASKS)
    world.tell(traffic=[traffic("a", ("h2", 1, 5001), ("h2", 2, 5002))])
    assert found(world)
    listens = [{"role": "ps", "host": "h2", "port": 5001}, {"role": "worker", "host": "h1"}]
    putting = world.registry.put_job_in_steps("b", Declared.of(job_spec(tasks=listens)), 0.0)
    next(putting)
    world.registry.delete_job("a", 0.0)
    if is_put_again:
        world.put("a", tasks=TASKS)
    whole(putting)
    assert store.write(dequeued(store)) is None
    store.close()
    again = Store(tmp_path / "j.db")
    assert "a" not in again.contents().records.get("seen", {})
    again.close()


def test_a_host_tells_only_of_jobs_that_involve_it(undeclared: World) -> None:
    answer = undeclared.tell("h4", traffic=[traffic("a", ("h2", 1, 2))])
    assert "unknown job on h4" in answer.refused[0].reason
    assert found(undeclared) == set()
    answer = undeclared.tell(traffic=[traffic("b", ("h2", 1, 2)), traffic("a", ("h1", 1, 2), ("nowhere", 3, 4))])
    assert [part.job for part in answer.refused] == ["b"]
    assert found(undeclared) == set(), "not to itself, nor to a host that is not known"


def test_connections_of_an_earlier_run_are_not_this_ones(undeclared: World) -> None:
    undeclared.tell(jobs=[{"job": "a", "ended": True}])
    undeclared.clock.now = 2000.0
    undeclared.put(tasks=TASKS)
    answer = undeclared.tell(traffic=[traffic("a", ("h2", 1, 2))], sent_at=2000.0)
    assert "before this run" in answer.refused[0].reason
    assert found(undeclared) == set()


def test_bytes_are_attained_service_and_counts_of_agents_add_up(undeclared: World) -> None:
    for session, seq, sent in (("s", 1, 100.0), ("s", 2, 300.0), ("t", 1, 50.0)):
        peers = [{"peer": "h2", "sent": sent, "received": 9.0}, {"peer": "nowhere", "sent": 7.0}]
        undeclared.tell(traffic=[traffic("a", peers=peers)], session=session, seq=seq)
    assert undeclared.snapshot().jobs[0].sent_bytes == {"h1": 350.0}


def told(world: World, seconds: int, sent: float) -> None:
    """An iteration a second, and so many bytes in each."""
    for time in range(0, seconds, 5):
        world.clock.now = 1000.0 + time
        points = [{"iteration": float(n), "time": 1000.0 + n, "metric": None} for n in range(time, time + 6)]
        peers = [{"peer": "h2", "sent": sent * time, "received": 0.0}]
        world.tell(
            jobs=[progress("a") | {"points": points}],
            traffic=[traffic("a", peers=peers, as_of=1000.0 + time, connections=3)],
        )


def test_a_job_that_declares_no_demand_gets_the_measured_one(world: World) -> None:
    world.put(tasks=TASKS)
    told(world, 40, 1e6)
    (job,) = world.snapshot().jobs
    assert [(demand.src, demand.dst) for demand in job.demand] == [("h1", "h2")]
    assert job.demand[0].bytes == pytest.approx(1e6, rel=0.01)
    state = world.registry.job_state("a")
    assert state.measured_demand[0].bytes == pytest.approx(1e6, rel=0.01)
    assert state.connections == 3 and state.measured_iterations >= 3 and state.problems == ()


def test_what_a_job_declares_is_kept_and_a_disagreement_is_said_once(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.put(tasks=TASKS, demand=[{"src": "h1", "dst": "h2", "bytes": 1e5}])
    with caplog.at_level(logging.WARNING, "trainyard.registry"):
        told(world, 60, 1e6)
    assert world.snapshot().jobs[0].demand[0].bytes == 1e5
    (problem,) = world.registry.job_state("a").problems
    assert "declares 1e+05 bytes an iteration from h1" in problem
    assert caplog.text.count("it declares") == 1


def test_of_a_job_in_epochs_the_demand_of_an_epoch_counts(world: World) -> None:
    """What it declares is of an iteration, and tells how many an epoch has."""
    world.put(tasks=TASKS, unit="epoch", compute_seconds=0.5, demand=[{"src": "h1", "dst": "h2", "bytes": 1e5}])
    (before,) = world.snapshot().jobs
    assert (before.demand[0].bytes, before.compute_seconds) == (1e5, 0.5), "nothing else is known yet"
    told(world, 60, 4e6)
    (job,) = world.snapshot().jobs
    assert job.demand[0].bytes == pytest.approx(4e6, rel=0.01)
    assert job.compute_seconds == pytest.approx(20.0)
    state = world.registry.job_state("a")
    assert (state.iterations_of_epoch, state.problems) == (40, ())


def test_progress_in_another_unit_begins_anew(world: World) -> None:
    world.put(tasks=TASKS)
    told(world, 40, 1e6)
    assert world.snapshot().jobs[0].demand
    world.put(tasks=TASKS, unit="epoch")
    (job,) = world.snapshot().jobs
    assert (job.progress, job.demand) == ((), ())
    assert world.registry.job_state("a").iterations_done == 0


def test_found_connections_and_the_measured_demand_outlive_a_restart(tmp_path: Path) -> None:
    world = World()
    store = Store(tmp_path / "journal.sqlite")
    world.registry = UnpausedRegistry(HOSTS, store, world.clock, lease_seconds=30.0)
    world.put(tasks=TASKS)
    told(world, 40, 1e6)
    world.tell(traffic=[traffic("a", ("h2", None, 5000), as_of=1040.0)])
    before = (found(world), world.snapshot().jobs[0].demand, world.snapshot().jobs[0].found_on)
    assert before[0] and before[1]
    commit(store)
    store.close()
    world.registry = UnpausedRegistry(HOSTS, Store(tmp_path / "journal.sqlite"), world.clock, lease_seconds=30.0)
    assert (found(world), world.snapshot().jobs[0].demand, world.snapshot().jobs[0].found_on) == before
    # The agent goes on, and what it tells then counts.
    world.tell(traffic=[traffic("a", as_of=1041.0)])
    assert found(world) == set()


def test_one_host_cannot_fill_the_memory(world: World) -> None:
    links = [("h2", n, n) for n in range(1, 4097)]
    for n in range(6):
        world.put(f"j{n}", tasks=TASKS)
        world.tell(traffic=[traffic(f"j{n}", *links)])
    assert sum(len(found(world, f"j{n}")) for n in range(6)) == 2 * 16_384
