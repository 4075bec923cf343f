"""Jobs that are joined of what their hosts know: runs, reports, leases, and what comes late or twice."""

from __future__ import annotations

from typing import Any

import pytest

from controller.declared.parts.part import Part
from controller.model import Metric
from controller.refusals import Conflict, Invalid, NotAllowed, NotFound
from controller.registry import shares
from controller.registry.parts import PartChange
from controller.wire import PartSpec
from tests.support.controller.registry_world import World, job_spec, progress

CREATED, REPLACED, UNCHANGED = PartChange.CREATED, PartChange.REPLACED, PartChange.UNCHANGED


class PartsWorld(World):
    """A world whose hosts tell of their parts of job a."""

    def part(self, host: str = "h1", job: str = "a", *, by_host: bool = True, **told: Any) -> PartChange:
        spec = PartSpec.model_validate({"launcher": "slurm", "user": "alice"} | told)
        earliest = self.clock.now - 60.0
        return self.registry.parts.put(job, host, Part.of(spec), 0.0, by_host=by_host, earliest=earliest)

    def remove(self, host: str, arrival: float = 1e12) -> None:
        self.registry.parts.remove("a", host, arrival, 0.0)

    def end(self, host: str, **told: Any) -> Any:
        return self.tell(host, [{"job": "a", "followed": True, "ended": True} | told])

    @property
    def state(self) -> str:
        return self.registry.job_state("a").state

    def states(self) -> dict[str, str]:
        view = self.registry.job_state("a")
        assert view.parts is not None
        return {part.host: part.state(is_over=view.state == "ended")["state"] for part in view.parts}


@pytest.fixture
def world() -> PartsWorld:
    return PartsWorld()


def test_the_policies_see_a_job_of_all_hosts(world: PartsWorld) -> None:
    assert world.part("h1", is_first=True, iterations=50.0) is CREATED
    assert world.part("h2") is CREATED
    (job,) = world.snapshot().jobs
    assert [task.host for task in job.tasks] == ["h1", "h2"]
    assert job.iterations_total == 50.0
    assert world.triggers == ["registration", "registration"]


def test_the_same_again_changes_nothing_and_another_word_replaces_it(world: PartsWorld) -> None:
    world.part(arrival=990.0)
    assert world.part(arrival=990.0) is UNCHANGED
    assert world.part(arrival=990.0, metric={"name": "loss", "direction": "min"}) is REPLACED
    assert world.snapshot().jobs[0].metric == Metric("loss", "min")
    assert world.triggers == ["registration", "registration"]


def test_progress_is_taken_from_rank_0(world: PartsWorld) -> None:
    world.part("h1", is_first=True)
    world.part("h2")
    answer = world.tell("h2", [progress("a", (7, 0.1), diverged=True, sent_bytes=5.0)])
    (left_out,) = answer.left_out
    assert "progress is taken from the host that rank 0 runs on" in left_out.reason
    assert not answer.refused
    view = world.registry.job_state("a")
    assert (view.iterations_done, view.diverged) == (0.0, False)
    assert world.snapshot().jobs[0].sent_bytes == {"h2": 5.0}, "its bytes count"
    world.tell("h1", [progress("a", (3, 0.2), diverged=True)])
    view = world.registry.job_state("a")
    assert (view.iterations_done, view.diverged) == (3.0, True)


def test_without_rank_0_all_hosts_tell_progress_until_it_is_known(world: PartsWorld) -> None:
    world.part("h1")
    world.part("h2")
    world.tell("h2", [progress("a", (7, 0.1))])
    assert world.registry.job_state("a").iterations_done == 7.0
    world.part("h3", is_first=True)
    assert world.registry.job_state("a").iterations_done == 0.0, "that was not the progress of rank 0"
    world.tell("h3", [progress("a", (2, 0.1))])
    world.part("h3", is_first=True, iterations=9.0)
    assert world.registry.job_state("a").iterations_done == 2.0


def test_the_end_on_another_host_ends_that_part_only(world: PartsWorld) -> None:
    world.part("h1", is_first=True)
    world.part("h2")
    world.end("h2")
    assert (world.state, world.states()) == ("running", {"h1": "running", "h2": "ended"})
    world.clock.now += 5
    world.end("h1")
    assert (world.state, world.states()) == ("ended", {"h1": "ended", "h2": "ended"})
    assert world.triggers[-1] == "end"


def test_the_end_of_rank_0_ends_the_job_wherever_it_runs(world: PartsWorld) -> None:
    world.part("h1", is_first=True)
    world.part("h2")
    world.end("h1")
    assert (world.state, world.states()) == ("ended", {"h1": "ended", "h2": "ended"})


def test_without_rank_0_the_job_ends_with_its_last_part(world: PartsWorld) -> None:
    world.part("h1")
    world.part("h2")
    world.end("h2", as_of=999.0)
    assert world.state == "running"
    world.end("h1", as_of=998.0)
    assert world.state == "ended"


def test_a_removed_part_is_none_of_the_job_and_the_last_one_ends_it(world: PartsWorld) -> None:
    world.part("h1", is_first=True)
    world.part("h2")
    world.remove("h1")
    assert (world.state, world.states()) == ("waiting", {"h2": "running"})
    assert world.part("h3", is_first=True) is CREATED, "rank 0 is there now"
    world.remove("h3")
    world.remove("h2")
    assert world.state == "ended"


# Late, twice, and in another order --------------------------------------------------------------------------------


def test_a_late_end_of_the_launch_before_does_not_end_the_next_one(world: PartsWorld) -> None:
    world.part("h1", arrival=900.0)
    world.part("h2")
    assert world.part("h1", arrival=950.0) is CREATED, "it was launched anew there"
    answer = world.end("h1", as_of=947.0)
    assert answer.refused[0].reason == "the end is from before this launch of the job on this host"
    assert world.states() == {"h1": "running", "h2": "running"}
    world.end("h1", as_of=960.0)
    assert world.states() == {"h1": "ended", "h2": "running"}


def test_a_late_part_of_the_launch_before_changes_nothing(world: PartsWorld) -> None:
    world.part("h1", arrival=950.0, iterations=9.0)
    assert world.part("h1", arrival=900.0, iterations=7.0) is UNCHANGED
    assert world.snapshot().jobs[0].iterations_total == 9.0


def test_a_part_that_is_over_does_not_come_back_with_a_late_message(world: PartsWorld) -> None:
    world.part("h1", arrival=900.0)
    world.part("h2", arrival=900.0)
    world.end("h2", as_of=999.0)
    assert world.part("h2", arrival=900.0) is UNCHANGED
    with pytest.raises(Conflict, match="the part of a new launch says when that began"):
        world.part("h2")
    assert world.states() == {"h1": "running", "h2": "ended"}
    world.clock.now += 20
    assert world.part("h2", arrival=1010.0) is CREATED
    assert world.states() == {"h1": "running", "h2": "running"}


def test_a_job_that_has_ended_runs_again_with_a_new_launch_only(world: PartsWorld) -> None:
    world.part("h1", arrival=900.0, is_first=True)
    world.part("h2", arrival=900.0)
    world.tell("h1", [progress("a", (3, 0.2))])
    world.end("h1", as_of=999.0)
    for host in ("h1", "h2"):
        assert world.part(host, arrival=900.0) is UNCHANGED
    for told in ({}, {"arrival": 900.0}):
        with pytest.raises(Conflict, match="job a has ended, or was removed; the part of a new launch says when"):
            world.part("h3", **told)
    assert world.state == "ended"
    world.clock.now += 100
    assert world.part("h2", arrival=1050.0) is CREATED
    assert (world.state, world.states()) == ("waiting", {"h2": "running"})
    assert world.registry.job_state("a").iterations_done == 0.0
    assert world.part("h1", arrival=1050.0, is_first=True) is CREATED


def test_a_job_goes_on_where_a_host_is_heard_of_after_it_has_ended_on_all_others(world: PartsWorld) -> None:
    world.part("h1", arrival=900.0, hosts=["h1", "h2"])
    world.end("h1", as_of=990.0)
    assert world.state == "ended"
    with pytest.raises(NotAllowed):
        world.part("h2", arrival=901.0, user="bob")
    assert world.state == "ended"
    assert world.part("h2", arrival=901.0, is_first=True) is CREATED
    assert (world.state, world.states()) == ("running", {"h1": "ended", "h2": "running"})
    world.end("h2", as_of=995.0)
    assert world.state == "ended"


def test_a_job_that_was_removed_does_not_come_back_with_a_late_message(world: PartsWorld) -> None:
    world.part("h1", arrival=900.0)
    world.registry.delete_job("a", 0.0)
    with pytest.raises(Conflict, match="was removed"):
        world.part("h1", arrival=900.0)
    with pytest.raises(Conflict, match="was removed"):
        world.part("h1")
    assert world.part("h1", arrival=1000.0) is CREATED


def test_a_job_arrives_with_its_first_launch(world: PartsWorld) -> None:
    world.part("h2", arrival=995.0)
    world.part("h1", arrival=990.0)
    assert world.registry.job_state("a").arrival == 990.0
    world.part("h3", arrival=900.0)
    assert world.registry.job_state("a").arrival == 940.0, "a host's word makes no job older than a minute"
    world.part("h4", arrival=2000.0)
    assert world.registry.job_state("a").arrival == 940.0


# Leases -----------------------------------------------------------------------------------------------------------


def live(world: PartsWorld, *hosts: str) -> None:
    for host in hosts:
        world.tell(host, [progress("a", followed=True)])


def test_a_silent_host_does_not_keep_a_job_alive(world: PartsWorld) -> None:
    world.part("h1", is_first=True)
    world.part("h2")
    live(world, "h1", "h2")
    world.clock.now += 20
    live(world, "h2")
    world.clock.now += 20
    world.registry.expire()
    assert world.state == "running", "h2 speaks for it"
    world.end("h2")
    world.registry.expire()
    assert world.state == "lost", "it runs on h1 only, which is silent"
    live(world, "h1")
    assert (world.state, world.states()) == ("running", {"h1": "running", "h2": "ended"})


def test_a_host_that_comes_back_has_its_part_as_before(world: PartsWorld) -> None:
    world.part("h1", is_first=True)
    world.part("h2")
    live(world, "h1", "h2")
    world.clock.now += 40
    live(world, "h2")
    world.registry.expire()
    world.tell("h1", [progress("a", (5, 0.3))])
    assert world.registry.job_state("a").iterations_done == 5.0


def test_rank_0_may_move_away_from_a_silent_host_only(world: PartsWorld) -> None:
    world.part("h1", is_first=True, hosts=["h1", "h2"])
    world.part("h2", hosts=["h1", "h2"])
    live(world, "h1", "h2")
    with pytest.raises(Conflict, match="only one part has is_first"):
        world.part("h2", is_first=True, hosts=["h1", "h2"])
    with pytest.raises(Conflict, match="h3 is not among them"):
        world.part("h3")
    world.clock.now += 40
    live(world, "h2")
    world.part("h2", is_first=True, hosts=["h1", "h2"])
    world.tell("h2", [progress("a", (4, 0.1))])
    assert world.registry.job_state("a").iterations_done == 4.0
    world.tell("h1", [progress("a", (9, 0.1))])
    assert world.registry.job_state("a").iterations_done == 4.0, "h1 is back, and rank 0 is elsewhere"


# Whole jobs, and room ----------------------------------------------------------------------------------------------


def test_a_job_that_is_registered_whole_takes_the_place_of_parts(world: PartsWorld) -> None:
    world.part("h1")
    world.part("h2")
    world.registry.put_job("a", job_spec(user="alice"), 0.0, "h1")
    assert world.registry.job_state("a").parts is None
    assert world.part("h1") is PartChange.REGISTERED_WHOLE
    world.tell("h2", [progress("a", (3, 0.1))])
    assert world.registry.job_state("a").iterations_done == 3.0, "all its hosts tell progress, as of any such job"


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({"user": "bob"}, "job a belongs to another user"),
        ({}, "job a belongs to another user"),
        ({"user": "alice", "tasks": [{"role": "worker", "host": "h1"}]}, "runs on hosts that this spec leaves out"),
    ],
)
def test_a_hosts_token_takes_no_job_from_others(world: PartsWorld, spec: Any, said: str) -> None:
    world.part("h1")
    world.part("h2")
    with pytest.raises(NotAllowed, match=said):
        world.registry.put_job("a", job_spec(**spec), 0.0, "h1")
    assert world.states() == {"h1": "running", "h2": "running"}
    world.registry.put_job("a", job_spec(**spec), 0.0)
    assert world.registry.job_state("a").parts is None, "an operator may"


def test_the_same_spec_registered_whole_takes_their_place_too(world: PartsWorld) -> None:
    world.part("h1")
    spec = world.registry.job_state("a").spec
    world.registry.put_job("a", spec, 0.0)
    assert world.registry.job_state("a").parts is None


def test_a_refused_part_changes_nothing(world: PartsWorld) -> None:
    world.part("h1", is_first=True, hosts=["h1", "h2"])
    before, triggers = world.snapshot(), list(world.triggers)
    for refusal, host, told in (
        (NotAllowed, "h2", {"user": "bob", "hosts": ["h1", "h2"]}),
        (Conflict, "h2", {"is_first": True}),
        (Conflict, "h3", {}),
        (Conflict, "h2", {"hosts": ["h2"]}),
        (Invalid, "h2", {"hosts": ["h1"]}),
        (NotFound, "h9", {}),
    ):
        with pytest.raises(refusal):
            world.part(host, **told)
    assert (world.snapshot(), world.triggers) == (before, triggers)


def test_a_hosts_token_has_its_share_of_parts(world: PartsWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shares, "HOST_JOBS", 2)
    monkeypatch.setattr(shares, "HOST_ENTRIES", 8)
    world.part("h1", "a")
    world.part("h1", "b")
    with pytest.raises(Conflict, match="the token of host h1 has 2 jobs already"):
        world.part("h1", "c")
    world.part("h2", "c")
    with pytest.raises(Conflict, match="the token of host h1 has 2 jobs already"):
        world.part("h1", "c")
    assert world.part("h1", "c", by_host=False) is CREATED, "an operator has all the room"
    with pytest.raises(Conflict, match="the token of host h1 has 2 jobs already"):
        world.registry.put_job("d", job_spec(), 0.0, "h1")
    with pytest.raises(Conflict, match="would name 10 tasks, demands and flows; 8 is the most"):
        world.part("h1", "a", hosts=["h1", *(f"other{i}" for i in range(7))])
    assert world.part("h1", "a", hosts=["h1", *(f"other{i}" for i in range(5))]) is REPLACED
