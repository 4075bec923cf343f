"""Who follows jobs is told of each change that others may see."""

from __future__ import annotations

import pytest

from controller.wire import StageSpec
from tests.support.controller.registry.registry_world import World, progress


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def told(world: World) -> list[tuple[str, str | None]]:
    found: list[tuple[str, str | None]] = []
    world.registry.subscribe_to_jobs(lambda job, user: found.append((job, user)))
    return found


def test_each_change_of_a_job_is_told_with_its_user(world: World, told: list[tuple[str, str | None]]) -> None:
    changes = (
        lambda: world.put(user="ann"),
        lambda: world.put(user="ann", iterations=50.0),
        lambda: world.tell(jobs=[progress("a", (1, 0.5))]),
        lambda: world.registry.put_stage("s", StageSpec(jobs=("a",)), 0.0),
        lambda: world.tell(jobs=[progress("a", ended=True)]),
        lambda: world.registry.delete_job("a", 0.0),
    )
    for number, change in enumerate(changes):
        told.clear()
        change()
        expected = [] if number == 3 else [("a", "ann")]  # a stage has an event of its own
        assert sorted(set(told)) == expected, number


def test_a_loss_and_a_return_are_told(world: World, told: list[tuple[str, str | None]]) -> None:
    world.put()
    world.tell(jobs=[progress("a", (1, 0.5), followed=True)])
    world.clock.now += 31.0
    told.clear()
    world.registry.expire()
    assert told == [("a", None)]
    assert world.registry.progress("a").state == "lost"
    told.clear()
    world.tell(jobs=[progress("a", (2, 0.6), followed=True)])
    assert ("a", None) in told
    assert world.registry.progress("a").state == "running"


def test_how_a_job_fares(world: World) -> None:
    world.put(user="ann")
    world.tell(jobs=[progress("a", (4, 0.5), sent_bytes=100.0)])
    world.tell("h2", jobs=[progress("a", sent_bytes=20.0)])
    ((fares, sent),) = world.registry.progress_and_bytes()
    assert fares == world.registry.progress("a")
    assert (fares.id, fares.user, fares.state) == ("a", "ann", "running")
    assert (fares.iterations_done, fares.iterations_total, fares.last_metric) == (4.0, 100.0, 0.5)
    assert sent == 120.0
    assert world.registry.progress("nobody") is None
    assert world.registry.has_job("a") and not world.registry.has_job("nobody")


def test_stages_have_the_jobs_that_run(world: World) -> None:
    world.put("a", port=5000, stage="named")
    world.put("b", port=5001)
    world.registry.put_stage("put", StageSpec(jobs=("b",)), 0.0)
    world.registry.put_stage("empty", StageSpec(jobs=()), 0.0)
    assert world.registry.stages() == {"empty": (), "named": ("a",), "put": ("b",)}
    world.tell(jobs=[progress("a", ended=True), progress("b", ended=True)])
    assert world.registry.stages() == {"empty": (), "put": ()}
