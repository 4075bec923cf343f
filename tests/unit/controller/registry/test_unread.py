"""A host says why it cannot read a job's progress; the lines themselves it keeps."""

from __future__ import annotations

from controller.declared.batch import Batch
from controller.pieces import whole
from controller.registry.job.problems import MAX_UNREAD_HOSTS
from controller.wire import HostReport, JobReport, JobState
from tests.support.controller.registry.registry_world import World, progress

WHY = "/var/log/a.log: no line so far matches a known format (100 lines so far)"


def problems(world: World) -> tuple[str, ...]:
    return JobState.model_validate_json(whole(world.registry.job_state("a").to_json({}))).problems


def test_it_is_a_problem_of_the_run_until_the_host_can_read_it() -> None:
    world = World()
    world.put()
    world.tell(jobs=[progress("a", unread=WHY)])
    assert problems(world) == (f"h1 cannot read its progress: {WHY}",)
    world.tell(jobs=[progress("a", (1, 0.1))])
    assert len(problems(world)) == 1, "what is not said stays"
    world.tell(jobs=[progress("a", unread="")])
    assert problems(world) == ()
    world.tell(jobs=[progress("a", unread=WHY)])
    world.tell(jobs=[progress("a", ended=True)])
    world.clock.now += 10
    world.put()
    assert problems(world) == (), "it is another run"


def test_it_crosses_processes() -> None:
    here = Batch.of(HostReport(session="s", seq=1, sent_at=0.0, jobs=(JobReport(job="a", unread=WHY),)))
    assert whole(Batch.from_frames(here.frames())).jobs[0].unread == WHY


def test_of_many_hosts_some_are_remembered() -> None:
    world = World()
    world.put()
    (record,) = world.registry._jobs.live()
    for number in range(3 * MAX_UNREAD_HOSTS):
        record.note_unread(f"host{number}", WHY)
    assert len(record.problems) == MAX_UNREAD_HOSTS
