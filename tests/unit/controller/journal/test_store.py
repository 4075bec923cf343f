from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import eventlet
import pytest

from controller.journal.store import Store, StoreError
from controller.journal.writer import Journal
from evaluation.bench.support.waiting import wait_until
from tests.support.controller.registry.journal_world import HOSTS, SPEC, filled, report, view
from tests.support.controller.registry.unpaused import UnpausedRegistry, commit, dequeued
from tests.support.paths import ROOT


def test_a_restart_finds_the_same_state(tmp_path: Path) -> None:
    store = Store(tmp_path / "j.db")
    registry = filled(store)
    commit(store)
    store.close()
    again = UnpausedRegistry(HOSTS, Store(tmp_path / "j.db"), lambda: 1000.0)
    assert view(again) == view(registry)
    assert again.report("h1", report(1), 0.0).status == "duplicate"
    assert again.report("h1", report(2), 0.0).status == "taken"


def test_what_is_removed_is_gone(tmp_path: Path) -> None:
    store = Store(tmp_path / "j.db")
    registry = filled(store)
    commit(store)
    registry.delete_job("a", 0.0)
    commit(store)
    store.close()
    contents = Store(tmp_path / "j.db").contents()
    assert not contents.points
    assert contents.records.keys() == {"host", "grave"}


def test_thinned_points_replace_those_in_the_journal(tmp_path: Path) -> None:
    store = Store(tmp_path / "j.db")
    registry = filled(store)
    for seq in range(2, 6):
        registry.report("h1", report(seq * 1000, 900), 0.0)
        commit(store)
    store.close()
    again = UnpausedRegistry(HOSTS, Store(tmp_path / "j.db"), lambda: 1000.0)
    assert view(again) == view(registry)


def test_a_job_whose_host_is_gone_is_left_out(tmp_path: Path) -> None:
    store = Store(tmp_path / "j.db")
    filled(store)
    commit(store)
    store.close()
    smaller = UnpausedRegistry({"h1": HOSTS["h1"]}, Store(tmp_path / "j.db"), lambda: 0.0)
    assert tuple(smaller.job_states({})) == ()


KILLED = """
import sys, time
sys.path.insert(0, {tests!r})
from pathlib import Path
import eventlet
from controller.journal.store import Store
from controller.journal.writer import Journal
from tests.support.controller.registry.journal_world import filled, report
store = Store(Path({path!r}))
journal = Journal(store)
journal.start()
registry = filled(store)
journal.commit()
for seq in range(2, 10**6):
    registry.report("h1", report(seq), 0.0)
    journal.commit()
    print(seq, flush=True)
    eventlet.sleep(0)
"""


def test_what_was_committed_survives_kill_9(tmp_path: Path) -> None:
    code = KILLED.format(tests=str(ROOT), path=str(tmp_path / "j.db"))
    child = subprocess.Popen([sys.executable, "-W", "ignore", "-c", code], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    last = 0
    for line in child.stdout:
        last = int(line)
        if last >= 8:
            break
    os.kill(child.pid, signal.SIGKILL)
    child.wait()
    child.stdout.close()
    again = UnpausedRegistry(HOSTS, Store(tmp_path / "j.db"), lambda: 1000.0)
    (job,) = again.snapshot(1000.0, classes=7, period=1.0).jobs
    assert job.sent_bytes["h1"] >= last
    assert job.iterations_done >= last * 10


@pytest.fixture
def small_files() -> Iterator[Callable[[int], None]]:
    """Makes the disk full: no file of this process may grow beyond a size."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)

    def limit(size: int) -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size if size >= 0 else before[0], before[1]))

    yield limit
    limit(-1)
    signal.signal(signal.SIGXFSZ, handler)


def test_a_full_disk_costs_nothing_but_the_journal_and_it_recovers(
    tmp_path: Path, small_files: Callable[[int], None], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", logger="trainyard")
    store = Store(tmp_path / "j.db")
    journal = Journal(store, retry_seconds=0.02)
    journal.start()
    try:
        registry = filled(store)
        journal.commit()
        assert store.failure is None
        small_files(512)
        for seq in range(2, 60):
            registry.report("h1", report(seq, 50), 0.0)
            eventlet.sleep(0.001)
        wait_until(lambda: store.failure is not None, sleep=eventlet.sleep)
        registry.put_job("b", SPEC.model_copy(update={"tasks": SPEC.tasks[1:]}), 0.0)
        eventlet.sleep(0.1)
        assert len(tuple(registry.job_states({}))) == 2
        assert not store.pending
        small_files(-1)
        wait_until(lambda: store.failure is None and not store.pending, sleep=eventlet.sleep)
    finally:
        small_files(-1)
        journal.stop()
    assert len([r for r in caplog.records if "state is in memory only" in r.message]) == 1
    assert len([r for r in caplog.records if "written again" in r.message]) == 1
    assert view(UnpausedRegistry(HOSTS, Store(tmp_path / "j.db"), lambda: 1000.0)) == view(registry)


def test_a_restart_on_a_full_disk_still_knows_everything(tmp_path: Path, small_files: Callable[[int], None]) -> None:
    store = Store(tmp_path / "j.db")
    before = filled(store)
    commit(store)
    store.close()
    small_files(512)
    store = Store(tmp_path / "j.db")
    after = UnpausedRegistry(HOSTS, store, lambda: 1000.0)
    assert view(after) == view(before)
    after.report("h1", report(2), 0.0)
    commit(store)
    assert store.failure is not None
    assert store.probe() is not None
    small_files(-1)
    assert store.probe() is None
    commit(store)
    assert store.failure is None
    store.close()
    assert view(UnpausedRegistry(HOSTS, Store(tmp_path / "j.db"), lambda: 1000.0)) == view(after)


def test_a_place_that_cannot_be_written_at_start_degrades(tmp_path: Path) -> None:
    store = Store(tmp_path / "later" / "j.db")
    assert store.failure is not None
    registry = filled(store)
    journal = Journal(store, retry_seconds=0.01)
    journal.start()
    try:
        (tmp_path / "later").mkdir()
        wait_until(lambda: store.failure is None, sleep=eventlet.sleep)
    finally:
        journal.stop()
    assert view(UnpausedRegistry(HOSTS, Store(tmp_path / "later" / "j.db"), lambda: 1000.0)) == view(registry)


def test_a_degraded_journal_notes_nothing_until_it_is_rewritten(tmp_path: Path) -> None:
    store = Store(tmp_path / "j.db")
    registry = filled(store)
    store.settle("the disk is full")
    registry.report("h1", report(2), 0.0)
    assert not store.pending
    rewrite = dequeued(store)
    registry.report("h1", report(3), 0.0)  # while the rewrite is under way
    store.settle(store.write(rewrite))
    assert store.pending
    commit(store)
    store.close()
    assert view(UnpausedRegistry(HOSTS, Store(tmp_path / "j.db"), lambda: 1000.0)) == view(registry)


def test_another_file_is_refused_and_left_alone(tmp_path: Path) -> None:
    content = b"this is no database, but it is long enough to be read as one" * 50
    path = tmp_path / "j.db"
    path.write_bytes(content)
    with pytest.raises(StoreError, match="name another file"):
        Store(path)
    assert path.read_bytes() == content


def test_a_second_controller_is_kept_out(tmp_path: Path) -> None:
    first = Store(tmp_path / "j.db")
    with pytest.raises(StoreError, match="in use by another controller"):
        Store(tmp_path / "j.db")
    first.close()


def test_without_a_path_nothing_is_kept() -> None:
    store = Store(None)
    filled(store)
    assert not store.pending
    assert not store.persistent
