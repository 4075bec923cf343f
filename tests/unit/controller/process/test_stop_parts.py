"""The parts of a stop: its sequence, the journal's end, and the thread that hears signals."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import eventlet
import pytest

from controller.journal.file import Batch
from controller.journal.store import Store
from controller.journal.writer import Journal
from controller.process.stopping import Step, Stop
from controller.refusals import Unavailable
from evaluation.bench.support.waiting import wait_until
from tests.support.controller.registry.journal_world import HOSTS, SPEC, filled, view
from tests.support.controller.registry.unpaused import UnpausedRegistry

DISK_SECONDS = 0.3


class SlowStore(Store):
    """On a disk that takes a while for each write. ``writes``: how many are through."""

    writes = 0

    def write(self, batch: Batch) -> str | None:
        time.sleep(DISK_SECONDS)
        failure = super().write(batch)
        self.writes += 1
        return failure


def test_steps_run_in_their_order_and_once_whatever_becomes_of_each(caplog: pytest.LogCaptureFixture) -> None:
    ran: list[str] = []

    def fails() -> None:
        ran.append("fails")
        raise OSError("no such switch")

    def hangs() -> None:
        ran.append("hangs")
        eventlet.sleep(60)

    def says_no() -> bool:
        ran.append("says no")
        return False

    def is_done() -> None:
        eventlet.sleep(0.01)
        ran.append("is done")

    stop = Stop([Step(act.__name__, 0.1, act) for act in (fails, hangs, says_no, is_done)])
    both = [eventlet.spawn(stop.run) for _ in range(2)]
    assert [each.wait() for each in both] == [False, False]
    assert ran == ["fails", "hangs", "says no", "is done"]
    assert [record.message.rpartition(" ")[2] for record in caplog.records] == ["fails", "hangs"]
    assert Stop([Step("is done", 0.1, is_done)]).run()


def slow(path: Path, **settings: float) -> tuple[SlowStore, UnpausedRegistry, Journal]:
    """A journal at work on a slow disk, with what ``filled`` makes on its way to it."""
    store = SlowStore(path)
    registry = filled(store)
    journal = Journal(store, **settings)
    journal.start()
    return store, registry, journal


def test_who_asks_for_what_is_on_its_way_to_the_disk_waits_for_it(tmp_path: Path) -> None:
    """Such as a client that lost the first answer, and asks again over another connection."""
    store, registry, journal = slow(tmp_path / "j.db", wait_seconds=30.0)
    wait_until(lambda: not store.pending, 30.0, sleep=eventlet.sleep)
    assert store.writes == 0
    registry.put_job("a", SPEC, 0.0)
    journal.commit()
    assert store.writes == 1
    journal.stop()


def test_a_slow_disk_loses_nothing_at_the_end_and_then_nothing_is_promised_any_more(tmp_path: Path) -> None:
    path = tmp_path / "j.db"
    _, registry, journal = slow(path)
    eventlet.sleep(0.05)
    registry.put_job("b", SPEC.model_copy(update={"tasks": SPEC.tasks[1:]}), 0.0)
    assert journal.flush()
    registry.delete_job("a", 0.0)
    assert journal.stop()
    with pytest.raises(Unavailable):
        journal.commit()
    assert view(UnpausedRegistry(HOSTS, Store(path), lambda: 1000.0)) == view(registry)


def test_an_end_that_loses_patience_with_the_disk_leaves_its_write_alone(tmp_path: Path) -> None:
    path = tmp_path / "j.db"
    _, registry, journal = slow(path)
    for act in (journal.flush, journal.stop):
        with eventlet.Timeout(0.05, False):
            act()
    assert journal.stop(), "with more time it does what is left"
    assert view(UnpausedRegistry(HOSTS, Store(path), lambda: 1000.0)) == view(registry)


SIGNALLED = """
import os, signal, sys, time
import eventlet
eventlet.monkey_patch()
from controller.process.early import end_at_once
from controller.process.signals import Signals
end_at_once()
def stop():
    print("stopping", flush=True)
    {stop}
Signals(stop, lambda: print("hung up", flush=True), {seconds}).listen()
if {forks}:
    ready, tell = os.pipe()
    child = os.fork()
    if not child:
        os.write(tell, b"x")
        time.sleep(60)
    os.read(ready, 1)
    os.kill(child, signal.SIGTERM)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
print("up", flush=True)
eventlet.sleep(60)
"""


def signalled(
    stop: str, *numbers: signal.Signals, seconds: float = 60.0, forks: bool = False
) -> tuple[int, list[str], str]:
    """The end of a process that runs ``stop`` at its end and was sent ``numbers``: status, what it did and said."""
    code = SIGNALLED.format(stop=stop, seconds=seconds, forks=forks)
    command = [sys.executable, "-W", "ignore", "-c", code]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        did = []
        while not did or did[-1] != "up":
            did.append(process.stdout.readline().strip())
        for number in numbers:
            process.send_signal(number)
            time.sleep(0.1)
        out, err = process.communicate(timeout=30)
        return process.returncode, did[:-1] + out.split("\n")[:-1], err


def test_a_stop_that_hangs_is_ended_though_it_never_gives_way() -> None:
    status, did, said = signalled("while True: pass", signal.SIGHUP, signal.SIGTERM, signal.SIGHUP, seconds=0.4)
    assert (status, did) == (1, ["hung up", "stopping"])
    assert said == ("trainyard: the stop has not come to its end within 0.4 s; what was answered last may be lost\n")


def test_a_second_signal_is_heard_though_the_stop_never_gives_way() -> None:
    status, did, said = signalled("while True: pass", signal.SIGINT, signal.SIGTERM)
    assert (status, did) == (1, ["stopping"])
    assert said == "trainyard: a second signal has ended the stop; what was answered last may be lost\n"


def test_a_signal_to_a_child_that_was_forked_is_not_its_parents() -> None:
    status, did, _ = signalled("os._exit(7)", signal.SIGTERM, forks=True)
    assert (status, did) == (7, ["-15", "stopping"])
