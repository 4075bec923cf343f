"""Who speaks for a job, and what becomes of it when nobody does any more."""

from __future__ import annotations

from controller.journal.bodies import HostBody
from controller.journal.store import Store
from controller.registry.agents.record import HostRecord
from controller.wire import HostReport
from tests.support.controller.registry.registry_world import HOSTS, Clock, World, job_spec, progress
from tests.support.controller.registry.unpaused import UnpausedRegistry


def test_a_job_of_which_nobody_tells_any_more_leaves_and_returns(world: World) -> None:
    world.put()
    world.tell("h1", jobs=[progress("a", (1, 0.1))])
    # The other host lives, and counts what the job sends from there; of how the job fares it knows nothing.
    world.tell("h2", jobs=[{"job": "a", "sent_bytes": 5.0}])
    world.clock.now += 29
    world.tell("h2", jobs=[{"job": "a", "sent_bytes": 6.0}])
    world.registry.expire()
    assert len(world.snapshot().jobs) == 1
    world.clock.now += 10
    world.tell("h2")
    world.registry.expire()
    assert world.snapshot().jobs == ()
    assert world.registry.job_state("a").state == "lost"
    world.triggers.clear()
    world.tell("h2", jobs=[{"job": "a", "sent_bytes": 7.0}])
    assert world.triggers == []
    world.tell("h1")
    assert world.snapshot().jobs[0].iterations_done == 1
    assert world.triggers == ["return"]


def test_a_host_that_marks_acknowledgements_is_believed_while_its_agent_lives(world: World) -> None:
    world.tell("h1", marks_acknowledgements=True)
    world.tell("h2")
    assert world.snapshot().acknowledging == {"h1"}
    world.tell("h1", marks_acknowledgements=False, session="before", seq=1)
    world.tell("h1", marks_acknowledgements=True)
    assert world.snapshot().acknowledging == set(), "of the present session alone"
    world.tell("h1", marks_acknowledgements=True, session="before", seq=2)
    assert world.snapshot().acknowledging == {"h1"}
    world.clock.now += 31
    assert world.snapshot().acknowledging == set()


def test_the_tunnels_of_a_host_are_known_while_its_agent_lives_and_after_a_restart(world: World) -> None:
    world.tell("h1", tunnel_ports=[8472, 4789, 4789])
    world.tell("h2")
    assert world.snapshot().tunnels == {"h1": (4789, 8472)}
    world.tell("h1", tunnel_ports=[6081], session="next", seq=1)
    world.tell("h1", tunnel_ports=[4789])
    assert world.snapshot().tunnels == {"h1": (6081,)}, "of the present session alone"
    record = HostRecord()
    record.tunnel_ports = (4789,)
    body = HostBody.model_validate_json(record.to_body().model_dump_json())
    assert HostRecord.from_body(body, 0.0).tunnel_ports == (4789,)
    world.tell("h1", session="next", seq=2)
    assert world.snapshot().tunnels == {}, "they are said in each batch"
    world.tell("h1", tunnel_ports=[4789], session="next", seq=3)
    assert world.snapshot().tunnels == {"h1": (4789,)}
    world.clock.now += 31
    assert world.snapshot().tunnels == {}


def test_whether_a_host_marks_is_known_while_its_agent_lives_and_says_it(world: World) -> None:
    assert world.registry.marks("h1") is None
    for said in (False, True, None, True):
        world.tell("h1", marks=said)
        assert world.registry.marks("h1") is said
    world.tell("h1", marks=False, session="before", seq=1)
    world.tell("h1", marks=True, session="now", seq=1)
    world.tell("h1", marks=False, session="before", seq=2)
    assert world.registry.marks("h1") is True, "a late batch of an earlier agent says nothing"
    world.clock.now += 31
    assert world.registry.marks("h1") is None


def test_a_job_that_several_hosts_tell_of_is_lost_with_the_last_of_them(world: World) -> None:
    world.put()
    for host in ("h1", "h2"):
        world.tell(host, jobs=[{"job": "a", "followed": True}])
    world.clock.now += 29
    world.tell("h2")
    world.clock.now += 10
    world.registry.expire()
    assert len(world.snapshot().jobs) == 1
    world.clock.now += 30
    world.registry.expire()
    assert world.registry.job_state("a").state == "lost"


def test_a_job_that_nobody_has_told_of_yet_counts_by_its_hosts(world: World) -> None:
    world.put()
    world.tell("h1")
    world.clock.now += 20
    world.tell("h2")
    world.clock.now += 20
    world.registry.expire()
    assert len(world.snapshot().jobs) == 1
    world.clock.now += 20
    world.registry.expire()
    assert world.registry.job_state("a").state == "lost"
    world.tell("h2")
    assert world.registry.job_state("a").state == "waiting"


def test_who_told_of_an_earlier_run_speaks_not_for_the_next(world: World) -> None:
    world.put()
    world.tell("h2", jobs=[progress("a", ended=True)])
    world.clock.now += 60
    world.put()
    world.tell("h1", jobs=[{"job": "a", "followed": True}])
    late = {"job": "a", "points": [{"iteration": 1, "time": 1000.0}], "followed": True}
    world.tell("h2", jobs=[late], sent_at=world.clock.now - 30)
    world.clock.now += 40
    world.tell("h2")
    world.registry.expire()
    assert world.registry.job_state("a").state == "lost"


def test_a_new_agent_is_told_which_jobs_go_on_that_one_before_it_followed(world: World) -> None:
    world.put("a")
    world.put("b", port=5001)
    world.put("c", port=5002)
    answer = world.tell("h1", jobs=[{"job": "a", "followed": True}, {"job": "b", "followed": True}, progress("c")])
    assert answer.held == ("a", "b"), "c was told of by something else, which no agent ends"
    assert world.tell("h1", jobs=[progress("b", ended=True)]).held == ()
    again = world.tell("h1", session="next", seq=1)
    assert again.held == ("a",)
    assert world.tell("h1", session="next", seq=1).held == ("a",), "the answer may have been lost"
    assert world.tell("h2", session="other", seq=1).held == ()


def test_a_lost_job_does_not_return_to_be_ended_by_a_new_agent(world: World) -> None:
    world.put()
    world.tell("h1", jobs=[{"job": "a", "followed": True}])
    world.clock.now += 31
    world.registry.expire()
    world.triggers.clear()
    assert world.tell("h1", session="next", seq=1).held == ("a",)
    assert world.registry.job_state("a").state == "lost"
    world.tell("h1", session="next", seq=2, jobs=[{"job": "a", "ended": True, "followed": True}])
    assert world.triggers == ["end"]
    assert world.registry.job_state("a").state == "ended"


def test_a_job_without_agents_is_never_lost(world: World) -> None:
    world.put()
    world.clock.now += 1e6
    world.registry.expire()
    assert len(world.snapshot().jobs) == 1


def test_a_step_of_the_walls_clock_ends_no_lease() -> None:
    wall, steady = Clock(), Clock(5.0)
    registry = UnpausedRegistry(HOSTS, Store(None), wall, steady=steady, lease_seconds=30.0)
    registry.put_job("a", job_spec(), 0.0)
    report = {"session": "s", "seq": 1, "sent_at": wall.now, "jobs": [progress("a", (1, None))]}
    registry.report("h1", HostReport.model_validate(report), 0.0)
    wall.now += 3600
    registry.expire()
    assert registry.job_state("a").state == "running"
    assert registry.host_alive("h1")
    wall.now -= 7200
    steady.now += 31
    registry.expire()
    assert registry.job_state("a").state == "lost"
