"""What restarts, of the controller and of agents, leave of lost jobs, of who tells of jobs, and of bytes sent."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from controller.journal.file import checksum_of_record
from controller.journal.store import Store
from controller.wire import Mark
from host_reporter.marking.rules_text import SentBytes
from host_reporter.uplink.backlog import Backlog, Batch
from tests.support.controller.registry.registry_world import HOSTS, World, progress
from tests.support.controller.registry.unpaused import UnpausedRegistry, commit


class Restarting(World):
    """A world with a journal."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path
        self._open()

    def restart(self, **bodies: object) -> None:
        """Commit, go away, and come back; ``bodies``: by kind what job a's records become in between."""
        self.close()
        with sqlite3.connect(self.path) as connection:
            for kind, body in bodies.items():
                text = json.dumps(body)
                row = (text, checksum_of_record(kind, "a", text), kind)
                connection.execute("UPDATE record SET body = ?, checksum = ? WHERE kind = ? AND id = 'a'", row)
        connection.close()
        self._open()

    def close(self) -> None:
        commit(self.store)
        self.store.close()

    def body(self, kind: str) -> dict[str, object]:
        """The journal's record of job a, once it is written."""
        self.restart()
        found: dict[str, object] = json.loads(self.store.contents().records[kind]["a"])
        return found

    def _open(self) -> None:
        self.store = Store(self.path)
        self.registry = UnpausedRegistry(HOSTS, self.store, self.clock, lease_seconds=30.0)
        self.registry.subscribe(lambda reason, _received_at: self.triggers.append(reason))

    def state(self) -> str:
        self.registry.expire()
        return self.registry.job_state("a").state


@pytest.fixture
def world(tmp_path: Path) -> Iterator[Restarting]:
    made = Restarting(tmp_path / "j.db")
    yield made
    made.close()


def test_a_lost_job_stays_lost_over_a_restart_until_it_is_told_of(world: Restarting) -> None:
    world.put()
    world.tell(jobs=[progress("a", (1, 0.1))])
    world.clock.now += 31
    assert world.state() == "lost"
    world.restart()
    assert world.snapshot().jobs == (), "not for a lease either"
    assert world.state() == "lost"
    world.triggers.clear()
    world.tell("h2")
    assert world.state() == "lost"
    world.tell("h1")
    assert world.state() == "running"
    assert world.triggers == ["return"]
    world.restart()
    assert world.state() == "running"


def test_a_lost_job_is_forgotten_in_its_time_whatever_restarts(world: Restarting) -> None:
    world.put()
    world.tell(jobs=[progress("a", (1, 0.1))])
    world.clock.now += 31
    assert world.state() == "lost"
    for _ in range(3):
        world.clock.now += 30_000
        world.restart()
    assert world.state() == "ended"


def test_who_tells_of_a_job_is_known_after_a_restart(world: Restarting) -> None:
    world.put()
    world.tell("h1", jobs=[{"job": "a", "followed": True}])
    world.restart()
    assert world.tell("h1", session="next", seq=1).held == ("a",)
    for _ in range(3):
        world.clock.now += 11
        world.tell("h2")
    assert world.state() == "lost", "the restart gave h1 a lease, which is over"


def test_counts_go_on_over_a_restart(world: Restarting) -> None:
    world.put()
    world.tell(jobs=[{"job": "a", "sent_bytes": 10e9}], session="first", seq=1)
    world.tell(jobs=[{"job": "a", "sent_bytes": 1e9}], session="next", seq=1)
    world.restart()
    assert world.snapshot().jobs[0].sent_bytes == {"h1": 11e9}
    world.tell(jobs=[{"job": "a", "sent_bytes": 3e9}], session="next", seq=2)
    assert world.snapshot().jobs[0].sent_bytes == {"h1": 13e9}


def test_absurd_counts_do_not_outgrow_the_journal(world: Restarting) -> None:
    world.put()
    for number in range(20):
        world.tell(jobs=[{"job": "a", "sent_bytes": 1e18, "counter": number}])
    before = world.snapshot().jobs[0].sent_bytes
    world.restart()
    assert world.snapshot().jobs[0].sent_bytes == before


def test_a_journal_from_before_is_read(world: Restarting) -> None:
    """It has no time of loss, nobody who told, and one sum a host, whose count may go on."""
    world.put()
    world.tell(jobs=[{"job": "a", "sent_bytes": 10e9}])
    job, tally = world.body("job"), world.body("tally")
    assert tally.pop("counts") == {"h1": [["s:0", 10e9]]}
    assert tally.pop("told_by") == {}
    assert job.pop("lost_since") is None
    tally["sent"] = {"h1": 10e9}
    world.restart(job=job, tally=tally)
    assert world.snapshot().jobs[0].sent_bytes == {"h1": 10e9}
    world.tell(jobs=[{"job": "a", "sent_bytes": 11e9}])
    assert world.snapshot().jobs[0].sent_bytes == {"h1": 11e9}
    world.tell(jobs=[{"job": "a", "sent_bytes": 1e9}], session="next", seq=1)
    assert world.snapshot().jobs[0].sent_bytes == {"h1": 12e9}


class CountingAgent:
    """What counts in an agent, without its iptables; each has a session of its own."""

    mark = Mark(job="a", service_class=0, dscp=59)
    sessions = 0

    def __init__(self, world: World) -> None:
        self.world = world
        CountingAgent.sessions += 1
        self.session = f"agent-{CountingAgent.sessions}"
        self.sent, self.backlog = SentBytes(), Backlog()
        self.sent.change([self.mark])

    def count(self, total: int) -> None:
        """The rule's counter stands at so many bytes; tell it."""
        self.sent.count([self.mark], [total])
        self.backlog.count_sent(self.sent.totals())
        batch = self.backlog.next_call(0.0, lease=True)
        assert isinstance(batch, Batch)
        parts = [part.model_dump() for part in batch.parts]
        assert self.world.tell(jobs=parts, session=self.session, seq=batch.seq).refused == ()
        self.backlog.answered(batch, (), 0.0)


def test_service_goes_on_over_an_agents_restart_and_over_marks_that_come_back(world: Restarting) -> None:
    world.put()
    first = CountingAgent(world)
    for total in (4 * 10**9, 10 * 10**9):
        first.count(total)
    second = CountingAgent(world)
    for total in (0, 5 * 10**9, 10 * 10**9):
        second.count(total)
    assert world.snapshot().jobs[0].sent_bytes == {"h1": 20e9}
    second.sent.change([])
    second.sent.change([CountingAgent.mark])
    second.count(2 * 10**9)
    assert world.snapshot().jobs[0].sent_bytes == {"h1": 22e9}
