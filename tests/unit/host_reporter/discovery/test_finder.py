"""The whole discovery beside real processes: connections, bytes and marks, from a job's file to its end."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import pytest

from controller.wire import JobTraffic
from evaluation.bench.support.hosts.job_process import JobProcess
from evaluation.bench.support.waiting import wait_until
from host_reporter.discovery import reports
from host_reporter.discovery.finder import Discovery
from host_reporter.discovery.packet_sources import PacketSources
from host_reporter.notices import Notices
from tests.support.agent.job_sockets import PEER, by_pid, to_peer


class Book:
    addresses: Mapping[str, str] | None = {"127.0.0.1": "h1", PEER: "h2"}

    def start(self) -> None:
        """Known already."""


class Whole:
    """A discovery whose words are kept: the latest of each job."""

    def __init__(self, notices: Notices, bytes_seconds: float) -> None:
        self.told: dict[str, JobTraffic] = {}
        self.reports = 0
        self.links: dict[str, set[tuple[str, int | None, int | None]]] = {}
        self.where = PacketSources()
        self.faults: list[Exception] = []
        self.discovery = Discovery(
            "h1",
            Book(),
            self,
            notices,
            sources_changed=self.sources_changed,
            failed=self.faults.append,
            bytes_seconds=bytes_seconds,
        )
        self.discovery.start()

    def add_traffic(self, parts: Iterable[JobTraffic]) -> None:
        for part in parts:
            self.reports += 1
            self.told[part.job] = part
            if part.links is not None:
                self.links[part.job] = {(link.peer, link.port, link.peer_port) for link in part.links}

    def sources_changed(self, sources: PacketSources) -> None:
        self.where = sources


@pytest.fixture
def whole(notices: Notices, request: pytest.FixtureRequest) -> Iterator[Whole]:
    # Bytes that only grow are told sooner than to a real controller.
    built = Whole(notices, bytes_seconds=getattr(request, "param", 1.0))
    yield built
    built.discovery.stop()
    assert built.faults == []


def test_connections_are_told_within_two_looks_by_job_and_go_again(
    tmp_path: Path, peer: socket.socket, whole: Whole
) -> None:
    port = peer.getsockname()[1]
    with JobProcess() as one, JobProcess() as two:
        whole.discovery.follow({"a": by_pid(tmp_path, one), "b": by_pid(tmp_path, two)})
        wait_until(lambda: whole.links == {"a": set(), "b": set()}, 5, what="a job without connections is told too")
        local = to_peer(peer, one)
        wait_until(lambda: whole.links["a"] == {("h2", local, port)}, 5)
        assert whole.links["b"] == set()
        other = to_peer(peer, two)
        wait_until(lambda: whole.links["b"] == {("h2", other, port)}, 5)
        one.do("send 20000")
        wait_until(lambda: whole.told["a"].peers and whole.told["a"].peers[0].sent in (20_000, 20_001), 10)
        assert whole.told["a"].connections == 1
        one.do("close")
        # Half a minute later its port would not be remembered; but one connection alone is not.
        wait_until(lambda: whole.links["a"] == set(), 5)
        assert whole.links["b"] == {("h2", other, port)}
        # One that is not followed any more is not looked at.
        whole.discovery.follow({"b": by_pid(tmp_path, two)})
        time.sleep(1.5)
        to_peer(peer, one)
        time.sleep(1.5)
        assert whole.links["a"] == set()


@pytest.mark.parametrize("whole", [reports.BYTES_SECONDS], indirect=True, ids=[""])
def test_many_short_connections_are_told_once(tmp_path: Path, peer: socket.socket, whole: Whole) -> None:
    port = peer.getsockname()[1]
    with JobProcess() as job, JobProcess() as taker:
        taker.do(f"listen {PEER} 0")
        whole.discovery.follow({"a": by_pid(tmp_path, job)})
        wait_until(lambda: whole.links.get("a") == set(), 5)
        to_peer(peer, job)
        to_peer(peer, job)
        wait_until(lambda: whole.links["a"] == {("h2", None, port)}, 5)
        before = whole.reports
        for _ in range(10):
            job.do(f"churn {PEER} {port} 50")
            time.sleep(0.2)
        assert whole.links["a"] == {("h2", None, port)}
        assert whole.reports - before <= 3, "bytes now and then, and no other links"


def test_bytes_of_connections_that_no_look_sees_are_counted(tmp_path: Path, peer: socket.socket, whole: Whole) -> None:
    port = peer.getsockname()[1]
    with JobProcess() as job, JobProcess() as other:
        whole.discovery.follow({"a": by_pid(tmp_path, job)})
        wait_until(lambda: whole.links.get("a") == set(), 5)
        to_peer(peer, job)
        to_peer(peer, job)
        wait_until(lambda: whole.links["a"] == {("h2", None, port)}, 5)
        job.do(f"churn {PEER} {port} 300")
        # A byte each; the opening and the end of each count one, too.
        wait_until(lambda: whole.told["a"].peers and 600 <= whole.told["a"].peers[0].sent <= 910, 10)
        assert whole.told["a"].missed == 0
        # Somebody else, to a port that the job does not use: it may be the job's all the same.
        with socket.create_server((PEER, 0), backlog=200) as server:
            other.do(f"churn {PEER} {server.getsockname()[1]} 100")
            wait_until(lambda: (whole.told["a"].missed or 0) >= 200, 10)
        assert whole.told["a"].peers[0].sent <= 910


def test_bytes_since_the_last_look_are_told_at_the_end(tmp_path: Path, peer: socket.socket, whole: Whole) -> None:
    port = peer.getsockname()[1]
    with JobProcess() as job:
        whole.discovery.follow({"a": by_pid(tmp_path, job)})
        to_peer(peer, job)
        to_peer(peer, job)
        wait_until(lambda: whole.links.get("a") == {("h2", None, port)}, 5)
        job.do(f"churn {PEER} {port} 300")
        time.sleep(0.3)  # the kernel tells of connections that have ended a moment later
        whole.discovery.stop()
        assert whole.told["a"].peers[0].sent >= 600


def test_an_agent_takes_away_what_one_that_was_killed_has_left(
    tmp_path: Path, peer: socket.socket, whole: Whole
) -> None:
    with JobProcess() as job, JobProcess() as marked, JobProcess() as free:
        for process in (job, marked, free):
            to_peer(peer, process)
            process.do("claim 59")
        # Its plan may mark the one job, and not the other; who is no job is none of its business.
        whole.discovery.mark({"b": 59}, {"b"})
        whole.discovery.follow({"a": by_pid(tmp_path, job), "b": by_pid(tmp_path, marked)})
        wait_until(lambda: job.do("tos") == 0, 5)
        assert marked.do("tos") == 59 << 2 and free.do("tos") == 59 << 2
        whole.discovery.mark({}, ())
        wait_until(lambda: marked.do("tos") == 0, 5)


def test_sockets_are_marked_and_put_back_at_the_end(tmp_path: Path, peer: socket.socket, whole: Whole) -> None:
    with JobProcess() as job, JobProcess() as free:
        to_peer(peer, job)
        to_peer(peer, free)
        whole.discovery.follow({"a": by_pid(tmp_path, job)})
        whole.discovery.mark({"a": 59}, {"a"})
        wait_until(lambda: job.do("tos") == 59 << 2, 5)
        assert free.do("tos") == 0
        to_peer(peer, job)
        wait_until(lambda: job.do("tos") == 59 << 2, 5)
        # The plan changes; then the job's file goes away; then the agent.
        whole.discovery.mark({"a": 11}, {"a"})
        wait_until(lambda: job.do("tos") == 11 << 2, 5)
        whole.discovery.follow({})
        wait_until(lambda: job.do("tos") == 0, 5)
        whole.discovery.follow({"a": by_pid(tmp_path, job)})
        wait_until(lambda: job.do("tos") == 11 << 2, 5)
        whole.discovery.stop()
        assert job.do("tos") == 0
