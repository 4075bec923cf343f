"""Which run of a job a report belongs to, hosts' clocks, stages that come and go, and batches with many flows."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from controller.journal.store import Store
from controller.refusals import Conflict, NotFound
from controller.registry.agents.clock import HostClock
from controller.registry.registry import Change
from controller.wire import HostReport, StageSpec
from tests.support.controller.registry.registry_world import HOSTS, World, job_spec, progress
from tests.support.controller.registry.unpaused import UnpausedRegistry, commit


def at(time: float, iteration: float = 50.0) -> dict[str, Any]:
    return {"iteration": iteration, "time": time, "metric": 0.9}


def job(world: World, job_id: str = "a") -> Any:
    return world.registry._jobs.find(job_id)


def test_a_first_batch_that_is_an_hour_old_is_of_the_run_before(world: World) -> None:
    world.clock.now = 10_000.0
    world.put()
    world.tell("h1", jobs=[progress("a", ended=True)])
    world.clock.now += 0.1
    world.put()
    old = {"job": "a", "points": [at(world.clock.now - 3600)], "ended": True}
    answer = world.tell("h2", jobs=[old], session="late", seq=1, sent_at=world.clock.now - 3600)
    assert [part.job for part in answer.refused] == ["a", "a"]
    assert job(world).ended_at is None
    assert job(world).history.points() == ()


def test_an_end_that_was_kept_while_the_controller_was_away_ends_its_own_run_only(world: World) -> None:
    world.put()
    world.tell("h1", jobs=[progress("a", ended=True)])
    ended_at = world.clock.now
    world.clock.now += 600
    world.put()
    world.clock.now += 60
    # The other host tells of the first run's end only now, and stamps the batch now.
    answer = world.tell("h2", jobs=[{"job": "a", "sent_bytes": 9e9, "ended": True, "as_of": ended_at}])
    assert "the end is from before this run" in answer.refused[0].reason
    assert (job(world).ended_at, job(world).sent.by_host) == (None, {})
    world.tell("h2", jobs=[{"job": "a", "ended": True, "as_of": world.clock.now - 5}])
    assert job(world).ended_at == world.clock.now - 5


def test_a_job_that_was_removed_and_put_again_is_another_run(world: World) -> None:
    world.put()
    world.tell(jobs=[progress("a", (1, 0.1))])
    world.clock.now += 10
    world.registry.delete_job("a", 0.0)
    world.clock.now += 10
    world.put()
    late = {"job": "a", "points": [at(world.clock.now - 15)], "sent_bytes": 5e9, "ended": True}
    answer = world.tell(jobs=[late], sent_at=world.clock.now - 15)
    assert len(answer.refused) == 2
    assert (job(world).history.points(), job(world).sent.by_host, job(world).ended_at) == ((), {}, None)
    assert job(world).run == 2


def test_a_forgotten_run_is_remembered_as_a_run_over_a_restart(tmp_path: Path) -> None:
    world = World()
    world.registry = UnpausedRegistry(HOSTS, Store(tmp_path / "j.db"), world.clock)
    world.put()
    world.tell(jobs=[progress("a", ended=True)])
    world.clock.now += 3601
    world.registry.expire()
    store = world.registry._store
    commit(store)
    store.close()
    world.registry = UnpausedRegistry(HOSTS, Store(tmp_path / "j.db"), world.clock)
    world.put()
    assert job(world).run == 2
    assert "before this run" in world.tell(jobs=[{"job": "a", "ended": True}], sent_at=1000.0).refused[0].reason
    world.registry.delete_job("a", 0.0)
    world.clock.now += 86401
    world.registry.expire()
    world.put()
    assert job(world).run == 1


def test_the_first_reports_of_a_new_run_may_come_from_just_before_its_registration(world: World) -> None:
    world.put()
    world.tell(jobs=[progress("a", ended=True)])
    world.clock.now += 100
    world.put()
    assert world.tell(jobs=[{"job": "a", "points": [at(world.clock.now - 0.8, 1.0)]}]).refused == ()
    assert job(world).history.iterations_done == 1


def test_a_clock_that_was_ahead_costs_the_reports_after_it_nothing(world: World) -> None:
    world.put()
    now = world.clock.now
    world.tell(jobs=[{"job": "a", "points": [at(now + 7200, 1.0)]}], sent_at=now + 7200)
    world.tell(jobs=[progress("a", ended=True)], sent_at=now + 7200)
    world.clock.now = now = now + 1
    world.put()
    world.clock.now += 5
    told = {"job": "a", "points": [at(world.clock.now, 10.0)], "ended": True}
    assert world.tell(jobs=[told]).refused == ()
    assert job(world).history.iterations_done == 10
    assert job(world).ended_at == world.clock.now


def test_a_clock_takes_a_jump_only_when_it_is_confirmed() -> None:
    clock = HostClock()
    clock.note(1000.0, 1000.2)
    clock.note(1001.0, 1001.05)
    assert clock.offset == pytest.approx(0.05)
    clock.note(2000.0, 9000.0)  # one batch that was two hours on its way
    assert clock.offset == pytest.approx(0.05)
    clock.note(9001.0, 9001.1)
    for _ in range(3):
        clock.note(500.0, 9002.0)
    assert clock.offset == 8502.0
    for k in range(3):
        clock.note(9003.0 + k, 9003.1 + k)
    assert clock.offset == pytest.approx(0.1)
    again = HostClock(*clock.samples())
    assert again.offset == clock.offset


def test_a_replayed_batch_tells_nothing_of_the_clock(world: World) -> None:
    world.put()
    for _ in range(5):
        world.seq = 0
        world.tell(sent_at=1.0)
    assert world.registry._leases.agents["h1"].clock.offset == 0.0


def test_a_stage_that_only_jobs_name_goes_with_the_last_of_them(world: World) -> None:
    for k in range(3):
        world.put("a", stage=f"s{k}")
        world.registry.delete_job("a", 0.0)
    assert world.snapshot().stages == ()
    with pytest.raises(NotFound):
        world.registry.stage_jobs("s0")
    assert world.registry.put_stage("s0", StageSpec(jobs=()), 0.0) is Change.CREATED
    assert world.registry.stage_jobs("s0") == ()


def test_another_spec_without_a_stage_leaves_the_job_in_the_stage_that_it_was_put_into(world: World) -> None:
    world.put()
    world.registry.put_stage("rung", StageSpec(jobs=("a",)), 0.0)
    assert world.put(weight=2.0) is Change.REPLACED
    assert world.snapshot().jobs[0].stage == "rung"
    world.put("b", port=6000, stage="own")
    world.put("b", port=6000)
    assert {it.id: it.stage for it in world.snapshot().jobs} == {"a": "rung", "b": None}


def test_a_wider_flow_conflicts_with_one_inside_it(world: World) -> None:
    world.put("a", tasks=[], flows=[{"src": "h1", "dst": "h2", "src_port": 1234}])
    with pytest.raises(Conflict, match=r"the flow h1:1234 to h2:99"):
        world.put("b", tasks=[], flows=[{"src": "h1", "dst": "h2", "src_port": 1234, "dst_port": 99}])
    world.put("c", tasks=[], flows=[{"src": "h1", "dst": "h2", "dst_port": 99}])
    stolen = {"job": "c", "flow": {"src": "h1", "dst": "h2", "src_port": 1234, "dst_port": 7}}
    assert "it belongs to job a" in world.tell(flows=[stolen]).refused[0].reason


def test_what_a_job_declares_goes_before_what_another_was_seen_with(world: World) -> None:
    both = [{"role": "worker", "host": "h1"}, {"role": "worker", "host": "h2"}]
    world.put("a", tasks=both)
    world.tell(flows=[{"job": "a", "flow": {"src": "h1", "dst": "h2", "dst_port": 6000}}])
    assert len(world.snapshot().jobs[0].flows) == 1
    world.put("b", tasks=[{"role": "ps", "host": "h2", "port": 6000}, {"role": "worker", "host": "h1"}])
    assert [flow.job for it in world.snapshot().jobs for flow in it.flows] == ["b", "b"]


class CountingStore(Store):
    """Counts what is noted, by kind."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.puts: dict[str, int] = {}

    def put(self, kind: str, record_id: str, body: str) -> None:
        self.puts[kind] = self.puts.get(kind, 0) + 1
        super().put(kind, record_id, body)


@pytest.mark.usefixtures("frozen_heap")
def test_a_batch_with_thousands_of_flows_is_noted_once(tmp_path: Path) -> None:
    store = CountingStore(tmp_path / "j.db")
    registry = UnpausedRegistry(HOSTS, store, lambda: 1000.0)
    registry.put_job("a", job_spec(tasks=[{"role": "worker", "host": "h1"}, {"role": "worker", "host": "h2"}]), 0.0)

    def batch(seq: int, ports: range) -> HostReport:
        flows = [{"job": "a", "flow": {"src": "h1", "dst": "h2", "src_port": port}} for port in ports]
        part = {"job": "a", "points": [at(1.0, float(seq))], "sent_bytes": float(seq)}
        body = {"session": "s", "seq": seq, "sent_at": 1000.0, "jobs": [part, part], "flows": flows}
        return HostReport.model_validate(body)

    def processor_seconds(report: HostReport) -> float:
        began = time.process_time()
        registry.report("h1", report, 0.0)
        return time.process_time() - began

    few = processor_seconds(batch(1, range(5000, 5256)))
    store.puts.clear()
    many = processor_seconds(batch(2, range(1, 3841)))
    assert store.puts == {"host": 1, "tally": 1, "seen": 1}
    assert many < 60 * few, "15 times as many flows would take 225 times as long if each were compared with each"
    store.puts.clear()
    registry.report("h1", batch(3, range(1, 9)), 0.0)
    assert store.puts == {"host": 1, "tally": 1}, "known flows are not written again"
    with pytest.raises(ValueError, match="at most 4096"):
        batch(4, range(1, 4098))


@pytest.mark.usefixtures("frozen_heap")
def test_thousands_of_tasks_do_not_make_each_flow_dear(world: World) -> None:
    def processor_seconds(job: str, task_count: int, first_port: int) -> float:
        tasks = [{"role": "peer", "host": f"h{1 + k % 2}", "port": first_port + k} for k in range(task_count)]
        world.put(job, tasks=tasks)
        flows = [{"job": job, "flow": {"src": "h1", "dst": "h2", "src_port": 30000 + k}} for k in range(4096)]
        report = HostReport.model_validate({"session": job, "seq": 1, "sent_at": 1000.0, "flows": flows})
        began = time.process_time()
        world.registry.report("h1", report, 0.0)
        return time.process_time() - began

    def least(task_count: int, first_port: int) -> float:
        """Returns the least of three runs."""
        return min(
            processor_seconds(f"job-{task_count}-{n}", task_count, first_port + n * task_count) for n in range(3)
        )

    assert least(4096, 1000) < 20 * least(2, 20000)
