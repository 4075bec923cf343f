"""A journal that is damaged, that appears late, whose name cannot be one, or whose hosts are gone for a while."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path

import eventlet
import pytest

from controller.journal.file import Batch, checksum_of_record
from controller.journal.store import Store, StoreError
from controller.journal.writer import Journal
from controller.pieces import Steps, whole
from evaluation.bench.support.waiting import wait_until
from tests.support.controller.registry.journal_world import HOSTS, SPEC, filled, report, view, written
from tests.support.controller.registry.unpaused import UnpausedRegistry, commit
from tests.support.controller.yard import Yard


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        ("UPDATE record SET body='{}' WHERE kind='job'", "its record of job 'a' is damaged: spec: Field required"),
        ("UPDATE record SET body='[' WHERE kind='job'", "its record of job 'a' is damaged: Invalid JSON"),
        ("UPDATE record SET body='[]' WHERE kind='tally'", "its record of tally 'a' is damaged"),
        ("UPDATE record SET body='{\"flows\":[[1]]}' WHERE kind='seen'", "its record of seen 'a' is damaged: flows.0"),
        ("UPDATE record SET body='{\"sessions\":3}' WHERE kind='host'", "its record of host 'h1' is damaged: sessions"),
        ("UPDATE record SET body='null' WHERE kind='stage'", "its record of stage 'st' is damaged"),
        ("INSERT INTO point VALUES('a','abc',1,1,0)", "a point of job 'a' is damaged: ('abc', 1.0, 1.0)"),
        ("INSERT INTO point VALUES('a',9e999,1,1,0)", "a point of job 'a' is damaged: (inf"),
    ],
)
def test_a_damaged_record_is_named(tmp_path: Path, damage: str, said: str) -> None:
    path = tmp_path / "j.db"
    written(path)
    with sqlite3.connect(path) as connection:
        checksum = checksum_of_record("stage", "st", "{}")
        connection.execute("INSERT INTO record VALUES ('stage', 'st', '{}', ?)", (checksum,))
        connection.execute(damage)
    connection.close()
    with pytest.raises(StoreError) as caught:
        UnpausedRegistry(HOSTS, Store(path), lambda: 1000.0)
    assert said in str(caught.value)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("body", ["[]", '{"epoch": 1}', "nonsense"])
@pytest.mark.parametrize("kind", ["plan", "settings"])
def test_a_damaged_plan_or_setting_is_left_out(
    tmp_path: Path, kind: str, body: str, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "j.db"
    before = Yard(path).start()
    before.put("a", 5000)
    wait_until(lambda: before.loop.classes == {"a": 0}, sleep=eventlet.sleep)
    before.stop()
    with sqlite3.connect(path) as connection:
        row_id = {"plan": "last", "settings": "run-time"}[kind]
        connection.execute("INSERT OR REPLACE INTO record VALUES (?, ?, ?, 0)", (kind, row_id, body))
    connection.close()
    after = Yard(path).start()
    try:
        assert after.loop.classes == {"a": 0}
        assert after.loop.failure is None
    finally:
        after.stop()
    assert len([r for r in caplog.records if "damaged and left out" in r.message]) == 1


def test_a_journal_that_appears_late_is_left_as_it_is(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    written(tmp_path / "old.db")
    place = tmp_path / "mnt" / "j.db"
    store = Store(place)
    assert store.failure is not None
    registry = UnpausedRegistry(HOSTS, store, lambda: 1000.0)
    registry.put_job("b", SPEC, 0.0)
    journal = Journal(store, retry_seconds=0.01)
    journal.start()
    try:
        place.parent.mkdir()
        shutil.copy(tmp_path / "old.db", place)
        wait_until(lambda: "another journal has appeared" in str(store.failure), sleep=eventlet.sleep)
    finally:
        journal.stop()
    assert "restart the controller to go on from that one" in str(store.failure)
    assert [job.id for job in UnpausedRegistry(HOSTS, Store(place), lambda: 1000.0).job_states({})] == ["a"]
    assert len([r for r in caplog.records if "another journal has appeared" in r.message]) == 1


def test_another_journal_in_the_place_of_ours_is_left_as_it_is(tmp_path: Path) -> None:
    written(tmp_path / "other.db")
    path = tmp_path / "j.db"
    store = Store(path)
    registry = UnpausedRegistry(HOSTS, store, lambda: 1000.0)
    registry.put_job("b", SPEC, 0.0)
    commit(store)
    store.close()  # as after a failed write: the next one opens the place again
    store.settle("the disk went away")
    shutil.copy(tmp_path / "other.db", path)
    commit(store)
    assert "another journal has appeared" in str(store.failure)
    path.unlink()
    commit(store)
    assert store.failure is None
    store.close()
    assert view(UnpausedRegistry(HOSTS, Store(path), lambda: 1000.0)) == view(registry)


def test_a_host_that_is_missing_in_the_settings_for_a_while_costs_no_job(tmp_path: Path) -> None:
    path = tmp_path / "j.db"
    store = Store(path)
    before = filled(store)
    commit(store)
    store.close()
    wanted = view(before)
    store = Store(path)
    smaller = UnpausedRegistry({"h1": HOSTS["h1"]}, store, lambda: 1000.0)
    assert tuple(smaller.job_states({})) == ()
    store.settle("the disk is full")  # so that everything is rewritten
    commit(store)
    store.close()
    store = Store(path)
    again = UnpausedRegistry(HOSTS, store, lambda: 1000.0)
    assert view(again) == wanted
    assert again.report("h1", report(1), 0.0).status == "duplicate"
    store.close()
    store = Store(path)
    smaller = UnpausedRegistry({"h1": HOSTS["h1"]}, store, lambda: 1000.0)
    assert smaller.job_hosts("a") == {"h1", "h2"}
    smaller.delete_job("a", 0.0)
    commit(store)
    store.close()
    assert tuple(UnpausedRegistry(HOSTS, Store(path), lambda: 1000.0).job_states({})) == ()


def test_a_name_that_no_file_can_have_degrades() -> None:
    store = Store(Path("/tmp") / ("j" * 300))
    assert "File name too long" in str(store.failure)


def test_the_state_is_dumped_only_once_the_file_can_be_written_and_attempts_become_rare(tmp_path: Path) -> None:
    store = Store(tmp_path / "later" / "j.db")
    registry = filled(store)
    dumps: list[int] = []
    probes: list[str | None] = []

    def source(_batch: Batch) -> Steps[None]:
        dumps.append(1)
        yield

    def probe() -> str | None:
        probes.append(Store.probe(store))
        return probes[-1]

    store.add_source(source)
    store.probe = probe  # type: ignore[method-assign]  # to count them
    journal = Journal(store, retry_seconds=0.01)
    journal.start()
    try:
        eventlet.sleep(0.3)
        assert not dumps
        assert 1 <= len(probes) < 8, "at 10, 30, 70, 150 and 310 ms"
        (tmp_path / "later").mkdir()
        wait_until(lambda: store.failure is None, sleep=eventlet.sleep)
        assert len(dumps) == 1
    finally:
        journal.stop()
    assert view(UnpausedRegistry(HOSTS, Store(tmp_path / "later" / "j.db"), lambda: 1000.0)) == view(registry)


def test_what_changes_while_the_state_is_dumped_is_in_the_journal(tmp_path: Path) -> None:
    path = tmp_path / "j.db"
    store = Store(path)
    registry = filled(store)
    registry.put_job("gone", SPEC.model_copy(update={"tasks": SPEC.tasks[1:]}), 0.0)
    store.settle("the disk is full")
    dumping = store.dequeue_in_steps()
    next(dumping)
    registry.delete_job("gone", 0.0)
    registry.report("h1", report(2), 0.0)
    registry.put_job("b", SPEC.model_copy(update={"tasks": SPEC.tasks[1:]}), 0.0)
    everything = whole(dumping)
    assert ("job", "gone") not in everything.records
    store.settle(store.write(everything))
    assert store.failure is None
    assert store.pending
    commit(store)
    store.close()
    assert view(UnpausedRegistry(HOSTS, Store(path), lambda: 1000.0)) == view(registry)


def test_a_degraded_journal_gets_a_last_chance_when_the_controller_stops(tmp_path: Path) -> None:
    store = Store(tmp_path / "later" / "j.db")
    registry = filled(store)
    journal = Journal(store, retry_seconds=60.0)
    journal.start()
    (tmp_path / "later").mkdir()
    journal.stop()
    assert view(UnpausedRegistry(HOSTS, Store(tmp_path / "later" / "j.db"), lambda: 1000.0)) == view(registry)
