"""A job's declared target, and that a run has diverged: over batches, runs, restarts and old journals."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from controller.declared.batch import Batch
from controller.declared.declared import Declared
from controller.journal.bodies import JobBody, TallyBody
from controller.journal.store import Store
from controller.pieces import whole
from controller.wire import HostReport, JobReport, JobState
from tests.support.controller.registry.registry_world import HOSTS, World, job_spec, progress
from tests.support.controller.registry.unpaused import UnpausedRegistry, commit


@pytest.fixture
def world() -> World:
    return World()


def state(world: World, job: str = "a") -> JobState:
    return JobState.model_validate_json(whole(world.registry.job_state(job).to_json({})))


def test_a_target_reaches_the_policies_and_the_api(world: World) -> None:
    world.put(target=0.92)
    assert world.snapshot().jobs[0].target == 0.92
    assert state(world).spec.target == 0.92
    world.put(target=0.95)
    assert world.snapshot().jobs[0].target == 0.95
    world.put()
    assert world.snapshot().jobs[0].target is None


def test_another_target_leaves_the_history_alone(world: World) -> None:
    world.put(target=0.92)
    world.tell(jobs=[progress("a", (1, 0.1), (2, 0.2))])
    world.put(target=0.95)
    assert len(world.snapshot().jobs[0].progress) == 2


@pytest.mark.parametrize("target", [math.nan, math.inf, 1e31, "0.9", True])
def test_a_target_is_a_number_that_a_metric_can_be(target: Any) -> None:
    with pytest.raises(ValidationError):
        job_spec(target=target)


def test_a_declaration_crosses_processes_with_its_target() -> None:
    for spec in (job_spec(target=-0.5), job_spec()):
        here = Declared.of(spec)
        there = whole(Declared.from_frames(iter(list(here.frames()))))
        assert (there.target, there.metric) == (here.target, here.metric) == (spec.target, here.metric)


def test_the_rungs_that_a_tuner_tells_come_to_the_policies(world: World) -> None:
    for left in (3, 0, None):
        spec = job_spec(stage="s.r1", rungs_left=left)
        world.put(stage="s.r1", rungs_left=left)
        there = whole(Declared.from_frames(iter(list(Declared.of(spec).frames()))))
        assert (there.stage, there.rungs_left) == ("s.r1", left)
        assert world.snapshot().jobs[0].rungs_left == left


@pytest.mark.parametrize("rungs", [-1, 101, 1.5, "2", True])
def test_rungs_are_a_small_whole_number(rungs: Any) -> None:
    with pytest.raises(ValidationError):
        job_spec(stage="s.r1", rungs_left=rungs)


def test_a_run_that_has_diverged_stays_so_until_the_next_one(world: World) -> None:
    world.put()
    world.tell(jobs=[progress("a", (1, 0.1))])
    assert not state(world).diverged
    world.tell(jobs=[progress("a", (2, None), diverged=True)])
    assert world.snapshot().jobs[0].diverged
    world.tell(jobs=[progress("a", (3, 0.3))])
    world.put(target=0.9)
    assert (state(world).diverged, state(world).state) == (True, "running")
    world.tell(jobs=[progress("a", ended=True)])
    assert state(world).diverged, "it ended so"
    world.clock.now += 10
    world.put()
    assert not state(world).diverged
    late = world.tell(jobs=[progress("a", diverged=True, as_of=world.clock.now - 20)])
    assert "its divergence is from before this run" in late.refused[0].reason
    assert not world.snapshot().jobs[0].diverged


def test_a_divergence_is_news_and_crosses_processes() -> None:
    part = JobReport(job="a", diverged=True)
    here = Batch.of(HostReport(session="s", seq=1, sent_at=0.0, jobs=(part, JobReport(job="b"))))
    assert here.brings_news
    assert [part.diverged for part in whole(Batch.from_frames(here.frames())).jobs] == [True, False]


def test_a_restart_forgets_neither(tmp_path: Path) -> None:
    store = Store(tmp_path / "j.db")
    world = World()
    world.registry = UnpausedRegistry(HOSTS, store, world.clock, lease_seconds=30.0)
    world.put(target=0.92)
    world.tell(jobs=[progress("a", (1, 0.1), diverged=True)])
    commit(store)
    store.close()
    store = Store(tmp_path / "j.db")
    world.registry = UnpausedRegistry(HOSTS, store, world.clock, lease_seconds=30.0)
    job = world.registry.live_job("a")
    assert job is not None
    assert (job.target, job.diverged) == (0.92, True)
    store.close()


def test_older_journals_know_neither() -> None:
    spec = json.loads(job_spec().model_dump_json())
    del spec["target"]
    body = {
        "spec": spec,
        "run": 1,
        "arrival": 0.0,
        "registered_at": 0.0,
        "since": None,
        "ended_at": None,
        "stage": None,
    }
    assert JobBody.model_validate_json(json.dumps(body)).spec.target is None
    assert not TallyBody.model_validate_json('{"sent": {}, "last_report": null}').diverged
