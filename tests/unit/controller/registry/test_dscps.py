"""DSCPs that jobs have for their life: who gets which one, who shares, and what restarts and reloads leave of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.code_points import POOL_2, CodePoints, code_points
from controller.journal.store import Store
from controller.model import Host
from controller.pieces import whole
from controller.registry.dscps import REST_SECONDS, next_dscp
from controller.wire import JobState
from tests.support.controller.registry.registry_world import Clock, job_spec
from tests.support.controller.registry.unpaused import UnpausedRegistry, commit

HOSTS = {f"h{i}": Host(f"h{i}", address=f"10.0.0.{i}") for i in (1, 2)}


def pool(*dscps: int) -> CodePoints:
    return code_points(POOL_2.classes, 63, jobs=dscps)


POOL_OF_48 = pool(*range(1, 49))


class World:
    """A registry with a journal, whose jobs have DSCPs of ``points``."""

    def __init__(self, path: Path | None, points: CodePoints | None) -> None:
        self.path = path
        self.clock = Clock()
        self._open(points)

    def _open(self, points: CodePoints | None) -> None:
        self.store = Store(self.path)
        self.registry = UnpausedRegistry(HOSTS, self.store, self.clock, points=points)

    def restart(self, points: CodePoints | None) -> None:
        commit(self.store)
        self.store.close()
        self._open(points)

    def put(self, number: int) -> int | None:
        """Register a job with a port of its own; returns its DSCP."""
        self.registry.put_job(f"job{number}", job_spec(5000 + number), 0.0)
        return self.dscp(number)

    def end(self, number: int) -> None:
        self.registry.delete_job(f"job{number}", 0.0)

    def dscp(self, number: int) -> int | None:
        return self.state(number).dscp

    def state(self, number: int) -> JobState:
        return JobState.model_validate_json(whole(self.registry.job_state(f"job{number}").to_json({})))

    def of_snapshot(self) -> dict[str, int | None]:
        snapshot = self.registry.snapshot(self.clock.now, classes=7, period=5.0)
        return {job.id: job.dscp for job in snapshot.jobs}


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path / "journal.db", POOL_OF_48)
    yield made
    made.store.close()


def test_60_jobs_share_a_pool_of_48(world: World) -> None:
    given_out = [world.put(number) for number in range(60)]
    assert given_out[:48] == list(range(1, 49))
    assert given_out[48:] == [48] * 12, "the job after the last shares the last DSCP"
    assert world.registry.users_of_dscps()[48] == 13
    for number in range(47):
        assert world.state(number).problems == ()
    sentence = (
        "it shares DSCP 48 with 12 other jobs: no other one of dscp.jobs was free, and all have the best of their"
    )
    for number in range(47, 60):
        assert [problem[: len(sentence)] for problem in world.state(number).problems] == [sentence]
    assert world.of_snapshot() == {f"job{number}": dscp for number, dscp in enumerate(given_out)}


def test_who_shares_keeps_its_dscp_when_others_become_free(world: World) -> None:
    for number in range(50):
        world.put(number)
    world.end(3)
    assert (world.dscp(48), world.dscp(49)) == (48, 48)
    assert world.put(60) == 4, "only a new job gets the free one"
    world.end(48)
    world.end(49)
    assert world.state(47).problems == (), "nobody else is left"
    world.clock.now += REST_SECONDS
    world.end(5)
    assert world.put(61) == 6
    assert world.put(62) == 48, "the last one is shared when it is not free"
    world.end(47)
    world.end(62)
    assert world.put(63) == 48


def test_a_dscp_that_was_given_back_rests_while_others_are_free(world: World) -> None:
    assert [world.put(number) for number in range(3)] == [1, 2, 3]
    world.end(1)
    world.clock.now += 1
    world.end(0)
    assert world.put(10) == 4
    world.clock.now += REST_SECONDS
    assert world.put(11) == 5, "one that was never given has been free for longer"


def test_the_longest_free_one_is_first_and_a_resting_one_goes_before_sharing(tmp_path: Path) -> None:
    world = World(tmp_path / "journal.db", pool(3, 7, 11))
    assert [world.put(number) for number in range(3)] == [3, 7, 11]
    world.end(1)
    world.clock.now += 1
    world.end(0)
    assert world.put(10) == 7, "nobody sends with it as long as with the other one"
    assert world.put(11) == 3
    assert world.put(12) == 11


def test_an_end_gives_a_dscp_back_and_a_replacement_keeps_it(world: World) -> None:
    world.put(0)
    world.registry.put_job("job0", job_spec(5000, weight=2.0), 0.0)
    assert world.dscp(0) == 1
    world.registry._jobs.end(world.registry._jobs.find("job0"), world.clock.now)
    ended = world.state(0)
    assert (ended.state, ended.dscp, ended.acknowledgement_dscp) == ("ended", None, None)
    assert world.put(0) == 2, "a new run is another sender"
    assert world.state(0).acknowledgement_dscp == 63


def test_a_restart_changes_nothing(world: World) -> None:
    for number in range(50):
        world.put(number)
    world.end(0)
    world.clock.now += 1
    world.end(1)
    before = {number: world.dscp(number) for number in range(2, 50)}
    world.restart(POOL_OF_48)
    assert {number: world.dscp(number) for number in range(2, 50)} == before
    assert world.put(60) == 1, "it still knows which one was given back first"
    commit(world.store)
    world.restart(POOL_OF_48)
    assert world.put(61) == 2
    assert world.put(62) == 48


def test_a_journal_that_is_written_anew_has_what_was_given_back(world: World) -> None:
    for number in range(3):
        world.put(number)
    world.end(2)
    commit(world.store)
    world.store.settle("the disk is full")
    commit(world.store)
    world.restart(pool(3, 7))
    assert (world.put(10), world.put(11)) == (7, 3), "3 rests"


def test_a_smaller_pool_moves_no_job_that_runs(world: World) -> None:
    for number in range(6):
        world.put(number)
    world.registry.change_points(pool(2, 40))
    assert [world.dscp(number) for number in range(6)] == [1, 2, 3, 4, 5, 6]
    assert world.put(10) == 40
    assert world.put(11) == 40, "2 is in use"
    world.end(0)
    world.clock.now += REST_SECONDS
    assert world.put(12) == 40, "1 is in the pool no more"
    world.end(1)
    assert world.put(13) == 2
    world.restart(pool(2, 40))
    assert [world.dscp(number) for number in (2, 3, 10, 13)] == [3, 4, 40, 2]


def test_another_identity_gives_and_takes(tmp_path: Path) -> None:
    world = World(tmp_path / "journal.db", None)
    assert [world.put(number) for number in range(3)] == [None, None, None]
    assert world.state(0).acknowledgement_dscp is None
    world.clock.now += 1
    world.restart(pool(3, 7, 11, 15))
    assert [world.dscp(number) for number in range(3)] == [3, 7, 11]
    world.restart(pool(3, 7, 11, 15))
    assert [world.dscp(number) for number in range(3)] == [3, 7, 11]
    world.restart(POOL_2)
    assert [world.dscp(number) for number in range(3)] == [None, None, None]
    assert set(world.of_snapshot().values()) == {None}


def test_a_job_that_waits_for_its_hosts_keeps_its_dscp(tmp_path: Path) -> None:
    world = World(tmp_path / "journal.db", pool(3, 7))
    world.put(0)
    commit(world.store)
    world.store.close()
    world.store = Store(world.path)
    others = {"h3": Host("h3"), "h4": Host("h4")}
    world.registry = UnpausedRegistry(others, world.store, world.clock, points=pool(3, 7))
    spec = job_spec(tasks=[{"role": "ps", "host": "h3", "port": 5009}, {"role": "worker", "host": "h4"}])
    world.registry.put_job("job1", spec, 0.0)
    assert world.dscp(1) == 7
    world.registry.delete_job("job0", 0.0)
    world.clock.now += REST_SECONDS
    world.registry.delete_job("job1", 0.0)
    world.registry.put_job("job2", spec, 0.0)
    assert world.dscp(2) == 3


events = st.lists(st.tuples(st.sampled_from(["begin", "end", "wait", "pool"]), st.integers(0, 30)), max_size=80)
pools = st.lists(st.integers(1, 62), min_size=1, max_size=8, unique=True)


@given(events, pools, pools)
def test_no_job_shares_while_a_free_dscp_was_there(
    done: list[tuple[str, int]], first: list[int], second: list[int]
) -> None:
    present, used, freed, now = first, dict[int, int](), dict[int, float](), 0.0
    for count, (what, number) in enumerate(done):
        if what == "begin":
            free = set(present) - set(used.values())
            dscp = next_dscp(present, set(used.values()), freed, now)
            assert dscp in free if free else dscp == present[-1]
            used[count] = dscp
            freed.pop(dscp, None)
        elif what == "end" and used:
            gone = used.pop(sorted(used)[number % len(used)])
            if gone not in used.values():
                freed[gone] = now
        elif what == "wait":
            now += 10.0 * number
        elif what == "pool":
            present = second if present is first else first


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 30)), max_size=60))
def test_running_jobs_share_only_where_none_was_free(done: list[tuple[bool, int]]) -> None:
    """The same of the registry itself, by what it has given to whom."""
    world = World(None, pool(3, 7, 11, 15))
    running: dict[int, int | None] = {}
    for number, (is_begin, which) in enumerate(done):
        world.clock.now += which
        if is_begin or not running:
            free = {3, 7, 11, 15} - set(running.values())
            running[number] = world.put(number)
            assert running[number] in free if free else running[number] == 15
        else:
            gone = sorted(running)[which % len(running)]
            del running[gone]
            world.end(gone)
        assert {job: world.dscp(job) for job in running} == running
