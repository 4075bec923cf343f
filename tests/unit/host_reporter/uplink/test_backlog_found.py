"""What was found of jobs' connections, while it waits: other links are told at once, bytes in turn, no more kept."""

from __future__ import annotations

from controller.wire import JobSpec, JobTraffic, LinkSeen, PeerBytes
from host_reporter.uplink.backlog import Backlog, Batch, Registration

SPEC = JobSpec()


def traffic(job: str, links: int | None, sent: float = 0.0) -> JobTraffic:
    named = None if links is None else tuple(LinkSeen(peer="h2", port=n + 1, peer_port=n + 1) for n in range(links))
    return JobTraffic(job=job, as_of=1.0, links=named, peers=(PeerBytes(peer="h2", sent=sent),))


def registered(*jobs: str) -> Backlog:
    backlog = Backlog()
    for job in jobs:
        backlog.declare(job, SPEC)
    for _ in jobs:
        call = backlog.next_call(0.0, lease=False)
        assert isinstance(call, Registration)
        backlog.registered(call, created=True)
    answer(backlog, backlog.next_call(0.0, lease=True))
    return backlog


def answer(backlog: Backlog, batch: object) -> Batch:
    assert isinstance(batch, Batch)
    backlog.answered(batch, (), 0.0)
    return batch


def test_other_links_are_told_at_once_and_bytes_with_the_progress() -> None:
    backlog = registered("a")
    backlog.add_traffic([traffic("a", 2)])
    batch = answer(backlog, backlog.next_call(0.0, lease=False, progress=False))
    assert [len(part.links or ()) for part in batch.traffic] == [2]
    assert backlog.next_call(0.0, lease=False) is None, "and not again"
    backlog.add_traffic([traffic("a", None, 5.0)])
    assert backlog.next_call(0.0, lease=False, progress=False) is None
    assert backlog.has_progress(0.0)
    batch = answer(backlog, backlog.next_call(0.0, lease=False, progress=True))
    assert batch.traffic[0].links is None and batch.traffic[0].peers[0].sent == 5.0


def test_links_that_wait_are_not_lost_to_bytes_that_come_after() -> None:
    backlog = registered("a")
    backlog.add_traffic([traffic("a", 3, 1.0)])
    backlog.add_traffic([traffic("a", None, 2.0)])
    (part,) = answer(backlog, backlog.next_call(0.0, lease=False)).traffic
    assert len(part.links or ()) == 3 and part.peers[0].sent == 2.0


def test_without_a_controller_for_an_hour_the_latest_of_each_job_waits() -> None:
    backlog = registered("a", "b")
    for second in range(3600):
        backlog.add_traffic([traffic("a", second % 7, float(second)), traffic("b", None, 1.0)])
    batch = answer(backlog, backlog.next_call(0.0, lease=True))
    assert {part.job: len(part.links or ()) for part in batch.traffic} == {"a": 3599 % 7, "b": 0}
    assert batch.traffic[0].peers[0].sent == 3599.0


def test_nothing_is_told_of_a_job_that_the_controller_does_not_know_yet_or_that_has_ended() -> None:
    backlog = Backlog()
    backlog.declare("a", SPEC)
    backlog.add_traffic([traffic("a", 1), traffic("nobody", 1)])
    call = backlog.next_call(0.0, lease=False)
    assert isinstance(call, Registration), "first it is registered"
    backlog.registered(call, created=True)
    (part,) = answer(backlog, backlog.next_call(0.0, lease=False)).traffic
    assert part.job == "a"
    backlog.end("a", 1.0)
    backlog.add_traffic([traffic("a", 1)])
    assert answer(backlog, backlog.next_call(0.0, lease=True)).traffic == ()


def test_a_controller_that_has_lost_its_memory_is_told_the_links_again() -> None:
    backlog = registered("a")
    backlog.add_traffic([traffic("a", 2)])
    answer(backlog, backlog.next_call(0.0, lease=False))
    backlog.declare("a", JobSpec(weight=0.5))
    call = backlog.next_call(0.0, lease=False)
    assert isinstance(call, Registration)
    backlog.registered(call, created=True)
    (part,) = answer(backlog, backlog.next_call(0.0, lease=False)).traffic
    assert len(part.links or ()) == 2
