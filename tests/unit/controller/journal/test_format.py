"""The journal's file: who may read it, how edits in it are found, and that journals without checksums are read."""

from __future__ import annotations

import os
import shutil
import sqlite3
from pathlib import Path

import eventlet
import pytest

from controller.journal.file import FORMAT, WITHOUT_CHECKSUMS, checksum_of_point
from controller.journal.store import Store, StoreError
from controller.model import Host
from controller.wire import Settings
from evaluation.bench.support.waiting import wait_until
from tests.support.controller.registry.journal_world import HOSTS, filled, report, view, written
from tests.support.controller.registry.unpaused import UnpausedRegistry, commit
from tests.support.controller.yard import Yard
from tests.support.paths import DATA

OLD = DATA / "journal_format_2.sql"
THREE = {name: Host(name) for name in ("h1", "h2", "h3")}
NOW = 1795590800.0


def edit(path: Path, statement: str) -> int:
    with sqlite3.connect(path) as connection:
        changed = connection.execute(statement).rowcount
    connection.close()
    return changed


def rows(path: Path, table: str, columns: str) -> list[tuple[object, ...]]:
    connection = sqlite3.connect(path)
    try:
        return connection.execute(f"SELECT {columns} FROM {table} ORDER BY {columns}").fetchall()
    finally:
        connection.close()


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A journal as the code before checksums wrote it."""
    path = tmp_path / "old.db"
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.executescript(OLD.read_text())
    connection.close()
    return path


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        (
            """UPDATE record SET body=replace(body, '"weight":1.0', '"weight":9.0') WHERE kind='job'""",
            "its record of job 'a' is damaged: its checksum is wrong",
        ),
        ("UPDATE record SET id='b' WHERE kind='tally'", "its record of tally 'b' is damaged: its checksum is wrong"),
        ("UPDATE point SET metric=0.9 WHERE iteration=11", "a point of job 'a' is damaged: its checksum is wrong"),
        ("UPDATE point SET metric=NULL WHERE iteration=11", "a point of job 'a' is damaged: its checksum is wrong"),
        ("INSERT INTO point VALUES ('a', 99, 1, 1, NULL)", "a point of job 'a' is damaged: its checksum is wrong"),
    ],
)
def test_what_was_edited_is_found(tmp_path: Path, statement: str, said: str) -> None:
    path = tmp_path / "j.db"
    written(path)
    assert edit(path, statement) == 1
    with pytest.raises(StoreError) as caught:
        UnpausedRegistry(HOSTS, Store(path), lambda: 1000.0)
    assert said in str(caught.value)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize(("kind", "change"), [("plan", """'"a":0', '"a":1'"""), ("settings", """'"sebf"', '"fifo"'""")])
def test_an_edited_plan_or_setting_is_left_out(
    tmp_path: Path, kind: str, change: str, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "j.db"
    before = Yard(path, policy="las").start()
    before.loop.change(Settings(policy="sebf"), 0.0)
    before.put("a", 5000)
    wait_until(lambda: before.loop.classes == {"a": 0}, sleep=eventlet.sleep)
    before.stop()
    assert edit(path, f"UPDATE record SET body=replace(body, {change}) WHERE kind='{kind}'") == 1
    after = Yard(path, policy="las").start()
    try:
        assert after.loop.settings.policy.name == ("sebf" if kind == "plan" else "las")
        assert after.loop.failure is None
    finally:
        after.stop()
    assert len([r for r in caplog.records if "checksum is wrong" in r.message]) == 1
    again = Yard(path, policy="las").start()
    again.stop()
    assert len([r for r in caplog.records if "checksum is wrong" in r.message]) == 1, "it was replaced by what holds"


def test_numbers_that_sqlite_keeps_in_another_way_are_no_damage(tmp_path: Path) -> None:
    path = tmp_path / "j.db"
    written(path)
    store = Store(path)
    store.add_points("a", [(100.0, -0.0, -0.0), (1e300, 2.0**53, 5e-324), (101, 1, None)])
    commit(store)
    store.close()
    contents = Store(path).contents()
    assert contents.damaged == frozenset()
    assert contents.points["a"][-3:] == ((100.0, 0.0, 0.0), (1e300, 2.0**53, 5e-324), (101.0, 1.0, None))


def test_a_journal_without_checksums_is_read_whole_and_gets_them_with_the_first_write(old: Path) -> None:
    before = [rows(old, "record", "kind, id, body"), rows(old, "point", "job, iteration, time, metric")]
    store = Store(old)
    registry = UnpausedRegistry(THREE, store, lambda: NOW)
    jobs = {job.id: job for job in registry.job_states({})}
    assert {job.id: job.spec.weight for job in jobs.values()} == {"a": 2.0, "b": 0.5}
    assert (jobs["a"].iterations_done, jobs["a"].last_metric) == (7.0, 0.5)
    assert registry.stage_jobs("rung") == ("a", "b")
    registry.report("h1", report(2), 0.0)
    commit(store)
    assert store.failure is None
    store.close()
    assert rows(old, "record", "kind, id")[: len(before[0])] == [row[:2] for row in before[0]]
    assert set(before[1]) <= set(rows(old, "point", "job, iteration, time, metric"))
    store = Store(old)
    assert store.contents().damaged == frozenset()
    assert view(UnpausedRegistry(THREE, store, lambda: NOW)) == view(registry)
    store.close()
    assert edit(old, "UPDATE point SET metric=0.9 WHERE iteration=4") == 1, "what was there before is covered too"
    with pytest.raises(StoreError, match="checksum is wrong"):
        UnpausedRegistry(THREE, Store(old), lambda: NOW)


def test_settings_and_plan_of_a_journal_without_checksums_hold(old: Path) -> None:
    yard = Yard(old, policy="fifo", period_seconds=0.5, gate_seconds=30, lease_seconds=30.0)
    assert yard.loop.settings.policy.name == "las"
    assert yard.loop.classes == {"a": 0, "b": 1}
    assert yard.loop.epoch == 7
    yard.store.close()


def test_reading_a_journal_without_checksums_writes_nothing(old: Path, tmp_path: Path) -> None:
    copy = shutil.copy(old, tmp_path / "copy.db")
    store = Store(old)
    assert len(store.contents().points["a"]) == 6
    store.close()
    assert old.read_bytes() == copy.read_bytes()
    assert rows(old, "pragma_user_version", "user_version") == [(WITHOUT_CHECKSUMS,)]


def test_formats_to_come_are_refused_by_name(old: Path) -> None:
    edit(old, f"PRAGMA user_version={FORMAT + 1}")
    with pytest.raises(StoreError, match=f"its format is {FORMAT + 1}, this controller's is {FORMAT}"):
        Store(old)


def test_what_is_no_number_has_no_checksum() -> None:
    assert checksum_of_point("a", "abc", 1.0, None) is None  # type: ignore[arg-type] - as SQLite may hold it


def test_the_journal_is_its_owners_alone(tmp_path: Path) -> None:
    path = tmp_path / "j.db"
    mask = os.umask(0)
    try:
        store = Store(path)
        filled(store)
        commit(store)
        files = {file.name: file.stat().st_mode & 0o777 for file in tmp_path.iterdir()}
        assert files == {"j.db": 0o600, "j.db-wal": 0o600}
        store.close()
    finally:
        os.umask(mask)


def test_a_journal_that_others_could_read_becomes_its_owners_alone(tmp_path: Path) -> None:
    """As after a kill: what was committed last is in the file beside it."""
    path, killed = tmp_path / "j.db", tmp_path / "killed.db"
    store = Store(path)
    filled(store)
    commit(store)
    for end in ("", "-wal"):
        shutil.copy(f"{path}{end}", f"{killed}{end}")
        Path(f"{killed}{end}").chmod(0o644)
    store.close()
    store = Store(killed)
    assert {file.stat().st_mode & 0o777 for file in tmp_path.glob("killed*")} == {0o600}
    assert view(UnpausedRegistry(HOSTS, store, lambda: 1000.0)) == view(
        UnpausedRegistry(HOSTS, Store(path), lambda: 1000.0)
    )


def test_a_folder_that_is_missing_is_named(tmp_path: Path) -> None:
    store = Store(tmp_path / "none" / "j.db")
    assert f"its folder {tmp_path}/none is not there; make it" in str(store.failure)
