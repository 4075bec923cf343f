"""Jobs' runs are kept in their family at their end, and a later job is planned with them, also after a restart."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest

from controller.families.names import FamilyKey, Owner
from controller.families.run import Ending
from controller.journal.store import Store, StoreError
from controller.refusals import NotFound
from tests.support.controller.registry.family_runs import rising
from tests.support.controller.registry.registry_world import HOSTS, World, progress
from tests.support.controller.registry.unpaused import UnpausedRegistry, commit, dequeued


class Training(World):
    """A registry whose jobs train at once."""

    def train(
        self, job: str, curve: list[float] | None = None, *, ended: bool = True, part: Any = None, **spec: Any
    ) -> None:
        """Register a job, report its curve from iteration 1 on, and end it."""
        self.clock.now += 10.0
        self.put(job, port=None, **{"model": "resnet50", "user": "ann"} | spec)
        points = [(float(k), metric) for k, metric in enumerate(rising() if curve is None else curve, start=1)]
        self.tell(jobs=[progress(job, *points, ended=ended, as_of=self.clock.now) | (part or {})])

    def runs(self, name: str = "resnet50", user: str | None = None) -> dict[str, Ending]:
        return {run.job: run.ending for _, history in self.registry.families(name, user) for run in history.runs}

    def family_of(self, job: str) -> Any:
        return next(value for value in self.snapshot().jobs if value.id == job).family


@pytest.fixture
def world() -> Training:
    return Training()


def test_a_job_is_planned_with_the_runs_that_ended_before(world: Training) -> None:
    world.put("next", port=None, family="resnet50", user="ann")
    assert world.family_of("next").runs == ()
    world.train("one")
    world.train("two", rising(scale=11.0))
    history = world.family_of("next")
    assert [run.job for run in history.runs] == ["one", "two"]
    assert history.gate.is_open
    assert history.converged.high == pytest.approx(0.9, abs=1e-3)
    assert world.family_of("next") is history, "the same value for every plan, until a run ends"
    world.train("three")
    assert len(world.family_of("next").runs) == 3


def test_a_run_that_was_reported_as_diverged_is_kept_as_that(world: Training) -> None:
    world.train("one")
    world.train("bad", ended=False)
    world.tell(jobs=[progress("bad", diverged=True)])
    world.tell(jobs=[progress("bad", ended=True, as_of=world.clock.now)])
    assert world.runs() == {"one": Ending.FINISHED, "bad": Ending.DIVERGED}


def test_a_family_belongs_to_its_user(world: Training) -> None:
    world.train("anns")
    world.put("bobs", port=None, model="resnet50", user="bob")
    world.put("nobodys", port=None, model="resnet50")
    world.put("other", port=None, model="bert", user="ann")
    world.put("none", port=None, user="ann")
    assert world.family_of("bobs").runs == ()
    assert world.family_of("nobodys").runs == ()
    assert world.family_of("other").runs == ()
    assert world.family_of("none") is None


def test_without_a_user_it_belongs_to_the_host_of_the_token(world: Training) -> None:
    world.train("a", user=None)
    assert [key for key, _ in world.registry.families("resnet50")] == [FamilyKey(Owner(), "resnet50")]
    spec = world.registry.job_state("a").spec
    world.registry.put_job("b", spec, 0.0, registrar="h2")
    world.registry.delete_job("b", 0.0)
    owners = [key.owner for key, _ in world.registry.families("resnet50")]
    assert owners == [Owner(), Owner(host="h2")]


def test_how_a_run_ended_is_kept(world: Training) -> None:
    world.train("finished")
    world.train("stopped", rising(20))
    world.train("removed", ended=False)
    world.registry.delete_job("removed", 0.0)
    world.train("silent", [])
    world.train("lost", ended=False)
    world.clock.now += 31.0
    world.registry.expire()
    assert "lost" not in world.runs(), "it may come back"
    world.clock.now += 90_000.0
    world.registry.expire()
    assert world.runs() == {
        "finished": Ending.FINISHED,
        "stopped": Ending.ABORTED,
        "removed": Ending.FINISHED,
        "silent": Ending.REFUSED,
        "lost": Ending.ABORTED,
    }


def test_a_lost_job_that_is_removed_was_aborted(world: Training) -> None:
    world.train("lost", ended=False)
    world.clock.now += 31.0
    world.registry.expire()
    world.registry.delete_job("lost", 0.0)
    assert world.runs() == {"lost": Ending.ABORTED}


def test_a_lost_job_whose_end_is_reported_has_finished(world: Training) -> None:
    world.train("back", ended=False)
    world.clock.now += 31.0
    world.registry.expire()
    world.tell(jobs=[progress("back", ended=True, as_of=world.clock.now)])
    assert world.runs() == {"back": Ending.FINISHED}


def test_what_is_reported_after_the_end_is_of_the_run_too(world: Training) -> None:
    curve = rising()
    world.train("a", curve[:30])
    assert world.runs() == {"a": Ending.ABORTED}
    late = [(float(k), metric) for k, metric in enumerate(curve[30:], start=31)]
    world.tell(jobs=[progress("a", *late)])
    assert world.runs() == {"a": Ending.FINISHED}
    (_, history), *_ = world.registry.families("resnet50")
    assert [run.length for run in history.runs] == [100.0]


def test_runs_of_the_same_job_are_several(world: Training) -> None:
    world.train("daily")
    world.registry.delete_job("daily", 0.0)
    world.clock.now += 90_000.0
    world.registry.expire()  # nothing is remembered of the job, so its runs are counted from 1 again
    world.clock.now += 200.0
    world.train("daily")
    (_, history), *_ = world.registry.families("resnet50")
    assert len(history.runs) == 2


def test_a_family_is_forgotten_when_it_is_deleted(world: Training) -> None:
    world.train("a")
    world.train("b", user="bob")
    world.put("next", port=None, model="resnet50", user="ann")
    world.triggers.clear()
    world.registry.delete_family("resnet50", "ann", 0.0)
    assert world.triggers == ["removal"]
    assert world.family_of("next").runs == ()
    assert world.runs() == {"b": Ending.FINISHED}
    with pytest.raises(NotFound, match="no family resnet50 of user ann"):
        world.registry.delete_family("resnet50", "ann", 0.0)
    world.registry.delete_family("resnet50", None, 0.0)
    with pytest.raises(NotFound, match="no family resnet50"):
        world.runs()


class Restarting(Training):
    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path
        self.open()

    def open(self) -> None:
        self.store = Store(self.path)
        self.registry = UnpausedRegistry(HOSTS, self.store, self.clock, lease_seconds=30.0)

    def close(self) -> None:
        commit(self.store)
        self.store.close()

    def restart(self) -> None:
        self.close()
        self.open()


@pytest.fixture
def lasting(tmp_path: Path) -> Restarting:
    return Restarting(tmp_path / "j.db")


def test_a_restart_plans_with_the_same_runs(lasting: Restarting) -> None:
    for i in range(30):  # more than are kept, so that some are removed from the journal too
        lasting.train(f"j{i}", rising(scale=9.0 + i / 10))
    lasting.train("aborted", rising(20))
    lasting.train("other", family="mine/own", user=None)
    lasting.train("gone", family="gone")
    lasting.registry.delete_family("gone", None, 0.0)
    lasting.put("next", port=None, model="resnet50", user="ann")
    before = lasting.snapshot()
    assert len(lasting.family_of("next").runs) == 20
    lasting.restart()
    assert lasting.snapshot() == before
    assert [key.name for key, _ in lasting.registry.families("mine/own")] == ["mine/own"]
    with pytest.raises(NotFound):
        lasting.runs("gone")
    lasting.restart()  # and what is rewritten of what was read
    assert lasting.snapshot() == before
    assert len(lasting.store.contents().records["run"]) == 21
    lasting.close()


def test_a_journal_that_was_away_gets_all_runs_again(lasting: Restarting) -> None:
    lasting.train("a")
    lasting.store.settle("the disk is full")
    lasting.train("b")
    assert not lasting.store.pending
    lasting.restart()
    assert lasting.runs() == {"a": Ending.FINISHED, "b": Ending.FINISHED}
    lasting.close()


def test_a_run_and_the_end_of_its_job_are_in_one_commit(lasting: Restarting) -> None:
    lasting.train("a", ended=False)
    commit(lasting.store)
    lasting.tell(jobs=[progress("a", ended=True, as_of=lasting.clock.now)])
    batch = dequeued(lasting.store)
    assert {("run", "a@1010.0"), ("job", "a")} <= batch.records.keys()
    lasting.store.settle(lasting.store.write(batch))
    lasting.close()


def test_a_damaged_run_is_refused_like_any_record(lasting: Restarting) -> None:
    lasting.train("a")
    lasting.close()
    with sqlite3.connect(lasting.path) as connection:
        changed = connection.execute(
            "UPDATE record SET body = replace(body, 'ann', 'eve') WHERE kind = 'run' AND id = 'a@1010.0'"
        ).rowcount
    connection.close()
    assert changed == 1
    with pytest.raises(StoreError, match=r"its record of run 'a@1010\.0' is damaged: its checksum is wrong"):
        lasting.open()
