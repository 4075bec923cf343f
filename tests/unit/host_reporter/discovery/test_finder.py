"""The whole discovery beside real processes: connections, bytes and marks, from a job's file to its end."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from controller.code_points import CLASS_SELECTORS, POOL_2
from controller.wire import JobTraffic, LinkSeen
from evaluation.bench.support.hosts.job_process import JobProcess
from evaluation.bench.support.hosts.own_namespace import own_namespace
from evaluation.bench.support.waiting import wait_until
from host_reporter.discovery import reports
from host_reporter.discovery.finder import Discovery
from host_reporter.discovery.packet_sources import PacketSources
from host_reporter.discovery.sockets.links import Link
from host_reporter.discovery.sockets.netlink import Looked
from host_reporter.discovery.traffic_report import NO_INTERFACES
from host_reporter.notices import Notices
from tests.support.agent.job_sockets import PEER, ClosingDiag, by_pid, to_peer

OWN_IPV6, PEER_IPV6 = "fd78::1", "fd78::2"


class Book:
    addresses: Mapping[str, str] | None = {"127.0.0.1": "h1", PEER: "h2", OWN_IPV6: "h1", PEER_IPV6: "h2"}
    interfaces: Mapping[str, str] = NO_INTERFACES

    def start(self) -> None:
        """Known already."""


class Whole:
    """A discovery whose words are kept: the latest of each job."""

    def __init__(self, notices: Notices, bytes_seconds: float, book: Book | None = None) -> None:
        self.told: dict[str, JobTraffic] = {}
        self.reports = 0
        self.links: dict[str, set[tuple[str, int | None, int | None]]] = {}
        self._seen: dict[str, tuple[LinkSeen, ...]] = {}
        self.where = PacketSources()
        self.faults: list[Exception] = []
        self.watcher = Watcher()
        self.discovery = Discovery(
            "h1",
            book or Book(),
            self,
            notices,
            sources_changed=self.sources_changed,
            failed=self.faults.append,
            bytes_seconds=bytes_seconds,
            watcher=self.watcher,
        )
        self.discovery.start()

    def add_traffic(self, parts: Iterable[JobTraffic]) -> None:
        for part in parts:
            self.reports += 1
            self.told[part.job] = part
            if part.links is not None:
                self._seen[part.job] = part.links
                self.links[part.job] = {(link.peer, link.port, link.peer_port) for link in part.links}

    def seen(self, job: str) -> tuple[LinkSeen, ...]:
        """Returns the links of the latest report of a job that told them."""
        return self._seen.get(job, ())

    def sources_changed(self, sources: PacketSources) -> None:
        self.where = sources


@pytest.fixture
def whole(notices: Notices, request: pytest.FixtureRequest) -> Iterator[Whole]:
    # Bytes that only grow are told sooner than to a real controller.
    built = Whole(notices, bytes_seconds=getattr(request, "param", 1.0))
    yield built
    built.discovery.stop()
    assert built.faults == []


class Watcher:
    """Is shown sockets."""

    def __init__(self) -> None:
        self.looks: list[tuple[Sequence[Looked], bool]] = []
        self.idles = 0
        self.looking_count = 0

    def looking(self) -> None:
        self.looking_count += 1

    def looked(self, namespaces: Sequence[Looked], *, is_whole: bool) -> None:
        self.looks.append((namespaces, is_whole))

    def idle(self) -> None:
        self.idles += 1

    def has(self, port: int, *, ended: bool) -> bool:
        """Whether a socket with this local port was listed, or told to have ended."""
        return any(
            sock.local_port == port
            for namespaces, _ in list(self.looks)
            for look in namespaces
            for sock in (look.ended if ended else look.sockets)
        )


def test_whoever_watches_is_shown_all_sockets_while_a_job_is_followed(
    tmp_path: Path, peer: socket.socket, notices: Notices
) -> None:
    watcher, faults = Watcher(), list[Exception]()
    whole = Whole(notices, 1.0)
    whole.discovery.stop()
    discovery = Discovery(
        "h1", Book(), whole, notices, sources_changed=whole.sources_changed, failed=faults.append, watcher=watcher
    )
    discovery.start()
    try:
        with JobProcess() as job, JobProcess() as none:
            local = to_peer(peer, none)
            time.sleep(1.5)
            assert watcher.looks == [], "nobody looks without a job"
            discovery.follow({"a": by_pid(tmp_path, job)})
            wait_until(lambda: watcher.has(local, ended=False), what="the socket of no job")
            assert all(is_whole for _, is_whole in watcher.looks)
            assert {look.namespace for namespaces, _ in watcher.looks for look in namespaces} == {0}
            none.do("close")
            wait_until(lambda: watcher.has(local, ended=True), what="its end")
            idles = watcher.idles
            discovery.follow({})
            wait_until(lambda: watcher.idles > idles)
    finally:
        discovery.stop()
    assert faults == []
    assert watcher.looking_count == len(watcher.looks)


def test_connections_are_told_within_two_looks_by_job_and_go_again(
    tmp_path: Path, peer: socket.socket, whole: Whole
) -> None:
    port = peer.getsockname()[1]
    with JobProcess() as one, JobProcess() as two:
        whole.discovery.follow({"a": by_pid(tmp_path, one), "b": by_pid(tmp_path, two)})
        wait_until(lambda: whole.links == {"a": set(), "b": set()}, what="a job without connections is told too")
        looks = whole.watcher.looking_count
        local = to_peer(peer, one)
        wait_until(lambda: whole.links["a"] == {("h2", local, port)})
        # Two, that under way, and those that a slow machine lets go by meanwhile.
        assert whole.watcher.looking_count <= looks + 5
        assert whole.links["b"] == set()
        other = to_peer(peer, two)
        wait_until(lambda: whole.links["b"] == {("h2", other, port)})
        one.do("send 20000")
        wait_until(lambda: whole.told["a"].peers and whole.told["a"].peers[0].sent in (20_000, 20_001))
        assert whole.told["a"].connections == 1
        one.do("close")
        # Half a minute later its port would not be remembered; but one connection alone is not.
        wait_until(lambda: whole.links["a"] == set())
        assert whole.links["b"] == {("h2", other, port)}
        # One that is not followed any more is not looked at.
        whole.discovery.follow({"b": by_pid(tmp_path, two)})
        time.sleep(1.5)
        to_peer(peer, one)
        time.sleep(1.5)
        assert whole.links["a"] == set()


def test_connections_over_ipv6_are_told_counted_and_marked_like_those_over_ipv4(
    tmp_path: Path, notices: Notices
) -> None:
    with own_namespace(OWN_IPV6, PEER_IPV6), socket.create_server((PEER_IPV6, 0), family=socket.AF_INET6) as server:
        whole, port = Whole(notices, 1.0), server.getsockname()[1]
        try:
            with JobProcess() as job:
                whole.discovery.follow({"a": by_pid(tmp_path, job)})
                wait_until(lambda: whole.links.get("a") == set())
                local = job.do(f"connect {PEER_IPV6} {port}")
                wait_until(lambda: whole.links["a"] == {("h2", local, port)})
                # To an address of its own loopback the kernel connects from the same one.
                peer = socket.inet_pton(socket.AF_INET6, PEER_IPV6)
                link = Link(peer, local, port, peer)
                wait_until(lambda: whole.where.links == {"a": {link}}, what="those who mark packets")
                whole.discovery.mark({"a": 59}, {"a"}, POOL_2)
                accepted, _ = server.accept()
                wait_until(lambda: job.do("tos") == 59 << 2, what="the mark")
                job.do("send 20000")
                assert len(accepted.recv(20_000, socket.MSG_WAITALL)) == 20_000
                wait_until(lambda: whole.told["a"].peers and whole.told["a"].peers[0].sent in (20_000, 20_001))
                assert whole.told["a"].peers[0].peer == "h2"
                accepted.close()
        finally:
            whole.discovery.stop()
        assert whole.faults == []


RAIL, RAIL_IPV6 = "127.1.0.1", "fd78:1::1"


def test_a_connection_is_told_with_the_interface_that_has_its_address_here(tmp_path: Path, notices: Notices) -> None:
    book = Book()
    book.addresses = {**(Book.addresses or {}), RAIL: "h1", RAIL_IPV6: "h1"}
    book.interfaces = {"127.0.0.1": "eth0", OWN_IPV6: "eth0", RAIL: "eth1", RAIL_IPV6: "eth1"}
    with (
        own_namespace(OWN_IPV6, PEER_IPV6, RAIL_IPV6),
        socket.create_server((PEER_IPV6, 0), family=socket.AF_INET6) as ipv6,
        socket.create_server((PEER, 0)) as ipv4,
    ):
        whole, ports = Whole(notices, 1.0, book), (ipv4.getsockname()[1], ipv6.getsockname()[1])
        try:
            with JobProcess() as job:
                whole.discovery.follow({"a": by_pid(tmp_path, job)})
                wait_until(lambda: whole.links.get("a") == set())
                ways = [(PEER, ports[0], "127.0.0.1", "eth0"), (PEER_IPV6, ports[1], RAIL_IPV6, "eth1")]
                ways += [(PEER, ports[0], RAIL, "eth1")]
                expected = set()
                for peer, port, source, interface in ways:
                    expected.add((job.do(f"connect {peer} {port} {source}"), port, interface))
                    job.do("send 20000")
                wait_until(lambda: {(n.port, n.peer_port, n.interface) for n in whole.seen("a")} == expected)
                sent = {"eth0": (20_000.0, 20_001.0), "eth1": (40_000.0, 40_002.0)}
                wait_until(
                    lambda: (
                        {each.interface: each.sent in sent[each.interface] for each in whole.told["a"].peers}
                        == {"eth0": True, "eth1": True}
                    )
                )
        finally:
            whole.discovery.stop()
        assert whole.faults == []


@pytest.mark.parametrize("whole", [reports.BYTES_SECONDS], indirect=True, ids=[""])
def test_many_short_connections_are_told_once(tmp_path: Path, peer: socket.socket, whole: Whole) -> None:
    port = peer.getsockname()[1]
    with JobProcess() as job, JobProcess() as taker:
        taker.do(f"listen {PEER} 0")
        whole.discovery.follow({"a": by_pid(tmp_path, job)})
        wait_until(lambda: whole.links.get("a") == set())
        to_peer(peer, job)
        to_peer(peer, job)
        wait_until(lambda: whole.links["a"] == {("h2", None, port)})
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
        wait_until(lambda: whole.links.get("a") == set())
        to_peer(peer, job)
        to_peer(peer, job)
        wait_until(lambda: whole.links["a"] == {("h2", None, port)})
        job.do(f"churn {PEER} {port} 300")
        # A byte each; the opening and the end of each count one, too.
        wait_until(lambda: whole.told["a"].peers and 600 <= whole.told["a"].peers[0].sent <= 910)
        assert whole.told["a"].missed == 0
        # Somebody else, to a port that the job does not use: it may be the job's all the same.
        with socket.create_server((PEER, 0), backlog=200) as server:
            other.do(f"churn {PEER} {server.getsockname()[1]} 100")
            wait_until(lambda: (whole.told["a"].missed or 0) >= 200)
        assert whole.told["a"].peers[0].sent <= 910


def test_bytes_since_the_last_look_are_told_at_the_end(tmp_path: Path, peer: socket.socket, whole: Whole) -> None:
    port = peer.getsockname()[1]
    with JobProcess() as job:
        whole.discovery.follow({"a": by_pid(tmp_path, job)})
        to_peer(peer, job)
        to_peer(peer, job)
        wait_until(lambda: whole.links.get("a") == {("h2", None, port)})
        with ClosingDiag() as diag:
            job.do(f"churn {PEER} {port} 300")
            ended: set[int] = set()

            def all_told() -> bool:
                # The kernel tells all who listen at once, a moment later.
                ended.update(sock.local_port for sock in diag.ended().sockets if sock.remote_port == port)
                return len(ended) >= 300

            wait_until(all_told, what="the ends of all connections")
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
        whole.discovery.mark({"b": 59}, {"b"}, POOL_2)
        whole.discovery.follow({"a": by_pid(tmp_path, job), "b": by_pid(tmp_path, marked)})
        wait_until(lambda: job.do("tos") == 0)
        assert marked.do("tos") == 59 << 2 and free.do("tos") == 59 << 2
        whole.discovery.mark({}, (), None)
        wait_until(lambda: marked.do("tos") == 0)


def test_what_is_left_of_other_dscps_is_taken_away_when_the_plan_names_them(
    tmp_path: Path, peer: socket.socket, whole: Whole
) -> None:
    with JobProcess() as job:
        to_peer(peer, job)
        job.do("claim 48")
        whole.discovery.follow({"a": by_pid(tmp_path, job)})
        # After the looks at which sockets are cleared, it is still there: no plan has named it.
        wait_until(lambda: not whole.discovery._marks._uncleared)
        assert job.do("tos") == 48 << 2
        whole.discovery.mark({}, (), CLASS_SELECTORS)
        wait_until(lambda: job.do("tos") == 0)


def test_sockets_are_marked_and_put_back_at_the_end(tmp_path: Path, peer: socket.socket, whole: Whole) -> None:
    with JobProcess() as job, JobProcess() as free:
        to_peer(peer, job)
        to_peer(peer, free)
        whole.discovery.follow({"a": by_pid(tmp_path, job)})
        whole.discovery.mark({"a": 59}, {"a"}, POOL_2)
        wait_until(lambda: job.do("tos") == 59 << 2)
        assert free.do("tos") == 0
        to_peer(peer, job)
        wait_until(lambda: job.do("tos") == 59 << 2)
        # The plan changes; then the job's file goes away; then the agent.
        whole.discovery.mark({"a": 11}, {"a"}, POOL_2)
        wait_until(lambda: job.do("tos") == 11 << 2)
        whole.discovery.follow({})
        wait_until(lambda: job.do("tos") == 0)
        whole.discovery.follow({"a": by_pid(tmp_path, job)})
        wait_until(lambda: job.do("tos") == 11 << 2)
        whole.discovery.stop()
        assert job.do("tos") == 0
