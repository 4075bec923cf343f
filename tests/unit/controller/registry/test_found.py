"""When found connections are forgotten: their agents were replaced, or are silent; and restarts change nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from controller.journal.store import Store
from controller.pieces import Steps
from controller.registry.agents.leases import HANDOVER_SECONDS
from controller.registry.job.record import JobRecord
from controller.registry.job.traffic import FoundTraffic
from controller.wire import MAX_TRAFFIC, HostReport, JobTraffic
from host_reporter.uplink.backlog import Backlog, Batch
from tests.support.controller.registry.registry_world import HOSTS, World, progress
from tests.support.controller.registry.unpaused import UnpausedRegistry, commit

TASKS = [{"role": "worker", "host": f"h{n}"} for n in (1, 2, 3)]
FLOWS = {("h1", "h2", 1, 2), ("h2", "h1", 2, 1)}


def part(*links: tuple[str, int | None, int | None], job: str = "a", **parts: Any) -> dict[str, Any]:
    named = [{"peer": peer, "port": port, "peer_port": peer_port} for peer, port, peer_port in links]
    return {"job": job, "as_of": 5000.0, "links": named} | parts


class Found(World):
    """Job a, followed on h2 and h3, whose connection the agent of h1 has found; with a journal."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path
        self.store = Store(path)
        self.registry = UnpausedRegistry(HOSTS, self.store, self.clock, lease_seconds=30.0)
        self.put(tasks=TASKS)
        self.hear("h2", "h3")
        self.tell(traffic=[part(("h2", 1, 2), left_out=3)], session="first")

    def restart(self) -> None:
        self.close()
        self.store = Store(self.path)
        self.registry = UnpausedRegistry(HOSTS, self.store, self.clock, lease_seconds=30.0)

    def close(self) -> None:
        commit(self.store)
        self.store.close()

    def hear(self, *hosts: str) -> None:
        for host in hosts:
            self.tell(host, jobs=[{"job": "a", "followed": True}])

    def pass_by(self, seconds: float, *hosts: str, session: str = "first") -> None:
        """Time passes, and these hosts say that they live."""
        for _ in range(int(seconds)):
            self.clock.now += 1.0
            for host in hosts:
                self.tell(host, session=session if host == "h1" else "s")
            self.registry.expire()

    @property
    def job(self) -> Any:
        self.registry.expire()
        return self.snapshot().jobs[0]

    @property
    def flows(self) -> set[tuple[str, str, int | None, int | None]]:
        return {(flow.src, flow.dst, flow.src_port, flow.dst_port) for flow in self.job.found}


@pytest.fixture
def world(tmp_path: Path) -> Iterator[Found]:
    made = Found(tmp_path / "journal.sqlite")
    yield made
    made.close()


def test_what_an_agent_found_goes_when_the_next_one_does_not_tell_of_it(world: Found) -> None:
    world.pass_by(100, "h1", "h2", "h3")
    assert world.flows == FLOWS, "an agent that goes on keeps what it found"
    world.tell(session="next", seq=1)
    world.pass_by(HANDOVER_SECONDS, "h1", "h2", "h3", session="next")
    assert world.flows == FLOWS
    world.pass_by(1, "h1", "h2", "h3", session="next")
    assert world.flows == set()
    assert (world.job.found_on, world.job.found_more) == (frozenset(), 0)


def test_what_a_host_found_goes_when_the_job_leaves_the_host(world: Found) -> None:
    world.tell("h2", traffic=[part(("h3", 3, 4))])
    world.put(tasks=TASKS[1:])
    assert world.flows == {("h2", "h3", 3, 4), ("h3", "h2", 4, 3)}
    assert (world.job.found_on, world.job.found_more) == (frozenset({"h2"}), 0)
    before = world.job
    world.restart()
    assert (world.job.found, world.job.found_on) == (before.found, before.found_on)
    world.put(tasks=TASKS)
    world.tell(traffic=[part(("h2", 1, 2))], session="first")
    assert world.flows > FLOWS, "it is there again"


def test_a_job_that_the_next_agent_names_afresh_does_not_flap(world: Found) -> None:
    seen = []
    world.tell(session="next", seq=1)
    for second in range(2 * int(HANDOVER_SECONDS)):
        if second == 40:
            # Its first word of the job is late, and the job's bytes were before it.
            world.tell(session="next", traffic=[part() | {"links": None}])
            world.tell(session="next", traffic=[part(("h2", 1, 2))])
        world.pass_by(1, "h1", "h2", "h3", session="next")
        seen.append(world.flows)
    assert all(flows == FLOWS for flows in seen)
    world.tell(session="next", traffic=[part()])
    assert world.flows == set()


def test_what_a_silent_host_found_goes_with_its_lease_and_comes_back_with_its_word(world: Found) -> None:
    world.pass_by(29, "h2", "h3")
    assert world.flows == FLOWS
    world.pass_by(2, "h2", "h3")
    assert world.flows == set(), "the job goes on by its other hosts"
    assert world.job.found_on == frozenset()
    world.tell(session="first", traffic=[part(("h2", 1, 2))])
    assert world.flows == FLOWS


def test_a_late_batch_of_an_agent_that_is_gone_brings_nothing_back(world: Found) -> None:
    world.tell(session="next", seq=1)
    world.pass_by(HANDOVER_SECONDS + 1, "h1", "h2", "h3", session="next")
    world.tell(session="first", seq=10_000, traffic=[part(("h2", 1, 2), peers=[{"peer": "h2", "sent": 7.0}])])
    assert world.flows == set()
    assert world.job.sent_bytes == {"h1": 7.0}, "its bytes were sent all the same"


@pytest.mark.parametrize("kept", [True, False])
def test_a_restart_forgets_neither_what_is_found_nor_that_it_is_forgotten(world: Found, kept: bool) -> None:
    if not kept:
        world.pass_by(31, "h2", "h3")
    before = (world.flows, world.job.found_on, world.job.found_more)
    assert bool(before[0]) is kept
    world.restart()
    assert (world.flows, world.job.found_on, world.job.found_more) == before
    # The agent is the same one; whether it is replaced later, or not, is known as before.
    world.pass_by(2 * HANDOVER_SECONDS, "h1", "h2", "h3")
    assert (world.flows, world.job.found_on) == before[:2]
    world.tell(session="next", seq=1)
    world.pass_by(HANDOVER_SECONDS - 1, "h1", "h2", "h3", session="next")
    assert world.flows == before[0]
    world.restart()
    world.pass_by(HANDOVER_SECONDS + 1, "h1", "h2", "h3", session="next")
    assert world.flows == set()


def test_a_journal_from_before_does_not_say_who_told(world: Found) -> None:
    world.restart()
    body = json.loads(world.store.contents().records["seen"]["a"])
    assert body.pop("tellers") == {"h1": {"session": "first", "left_out": 3}}
    world.store.put("seen", "a", json.dumps(body))
    world.restart()
    assert world.flows == FLOWS
    # An agent tells everything again within 30 s.
    world.pass_by(30, "h1", "h2", "h3")
    world.tell(session="first", traffic=[part(("h2", 1, 2))])
    world.pass_by(100, "h1", "h2", "h3")
    assert world.flows == FLOWS


def test_of_many_parts_each_is_little_work(world: Found, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the host's other jobs are gone through for each part, nor is a job measured more than once a batch."""
    count = 300
    calls = {"links": 0, "measure": 0, "check": 0}
    links_of, measure, check = FoundTraffic.links_of, JobRecord.measure, JobRecord.check_declaration

    def count_links(self: FoundTraffic, host: str) -> int:
        calls["links"] += 1
        return links_of(self, host)

    def count_measure(self: JobRecord) -> Steps[None]:
        calls["measure"] += 1
        return measure(self)

    def count_check(self: JobRecord) -> None:
        calls["check"] += 1
        check(self)

    for number in range(count):
        world.put(f"j{number}", tasks=TASKS)
    monkeypatch.setattr(FoundTraffic, "links_of", count_links)
    monkeypatch.setattr(JobRecord, "measure", count_measure)
    monkeypatch.setattr(JobRecord, "check_declaration", count_check)
    parts = [part(("h2", 10 + number, 7), job=f"j{number}") for number in range(count)]
    answer = world.tell(session="first", jobs=[progress("a")], traffic=[*parts, *parts, *parts])
    assert answer.refused == ()
    assert calls["links"] <= 4 * count + 10
    assert calls["measure"] == calls["check"] == count


def test_a_batch_tells_of_so_many_jobs_and_the_agent_sends_several() -> None:
    """The controller's loop waits while a batch is taken."""
    parts = [JobTraffic.model_validate(part(("h2", 1, 2), job=f"j{number}")) for number in range(MAX_TRAFFIC + 500)]
    with pytest.raises(ValidationError, match=f"at most {MAX_TRAFFIC}"):
        HostReport(session="s", seq=1, sent_at=1.0, traffic=tuple(parts))
    backlog = Backlog()
    for told in parts:
        backlog.declare(told.job, None)
    backlog.add_traffic(parts)
    batches = [backlog.next_call(0.0, lease=True), backlog.next_call(0.0, lease=False)]
    assert all(isinstance(batch, Batch) for batch in batches)
    assert [len(batch.traffic) for batch in batches if isinstance(batch, Batch)] == [MAX_TRAFFIC, 500]
    assert [batch.is_full for batch in batches if isinstance(batch, Batch)] == [True, False]
    jobs = {told.job for batch in batches if isinstance(batch, Batch) for told in batch.traffic}
    assert len(jobs) == len(parts)


def test_of_several_parts_of_one_job_the_last_holds(world: Found) -> None:
    first = part(("h3", 5, 6), connections=9, peers=[{"peer": "h2", "sent": 5.0}])
    last = part(connections=4, peers=[{"peer": "h2", "sent": 8.0}]) | {"links": None}
    world.tell(session="first", traffic=[part(("h2", 1, 2)), first, last])
    assert world.flows == {("h1", "h3", 5, 6), ("h3", "h1", 6, 5)}
    assert world.registry.job_state("a").connections == 4
    assert world.job.sent_bytes == {"h1": 8.0}
