"""Jobs' processes and their sockets, with real processes: trees, ids that come again, marks on live sockets."""

from __future__ import annotations

import errno
import logging
import os
import socket
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from controller.wire import JobTraffic
from evaluation.bench.support.job_process import JobProcess
from evaluation.bench.support.waiting import wait_until
from host_reporter import procfs
from host_reporter.discovery import owners as owners_module
from host_reporter.discovery import processes, reports, socket_marks
from host_reporter.discovery.finder import Discovery
from host_reporter.discovery.netlink import Diag
from host_reporter.discovery.owners import Owners
from host_reporter.discovery.packet_sources import PacketSources
from host_reporter.discovery.processes import Tree
from host_reporter.discovery.sock_diag import ESTABLISHED, Socket
from host_reporter.discovery.socket_marks import SocketMarks
from host_reporter.jobs.job import JobProcesses
from host_reporter.notices import Notices
from host_reporter.procfs import Process
from tests.support.loopback import connections

PEER = "127.0.0.2"


@pytest.fixture
def notices() -> Notices:
    return Notices(logging.getLogger("test"))


@pytest.fixture
def peer() -> Iterator[socket.socket]:
    """Another host's server: nobody's job here."""
    with socket.create_server((PEER, 0), backlog=1000) as server:
        yield server


def by_pid(path: Path, job: JobProcess | int) -> JobProcesses:
    """As a job file has it."""
    pid = job if isinstance(job, int) else job.pid
    file = path / f"{pid}.json"
    file.write_text("{}")
    return JobProcesses(file, pid=pid)


def to_peer(peer: socket.socket, job: JobProcess) -> int:
    return job.do(f"connect {PEER} {peer.getsockname()[1]}")


# Processes -----------------------------------------------------------------------------------------------------------


def test_a_process_is_its_id_and_its_start() -> None:
    mine = procfs.identify(os.getpid())
    assert mine is not None and procfs.is_alive(mine)
    assert not procfs.is_alive(Process(mine.pid, mine.started + 1))
    assert procfs.identify(2**22 + 5) is None


def test_children_are_found_also_when_their_parent_has_ended() -> None:
    with JobProcess() as job:
        root = procfs.identify(job.pid)
        assert root is not None
        tree = Tree(root)
        assert {process.pid for process in tree.look()} == {job.pid}
        child = job.do("fork")
        assert {process.pid for process in tree.look()} == {job.pid, child}
        grandchild = job.do("orphan")
        assert {process.pid for process in tree.look()} == {job.pid, child, grandchild}
        wait_until(lambda: {process.pid for process in tree.look()} == {grandchild}, 5)
    wait_until(lambda: tree.look() == frozenset(), 5)


def test_sockets_are_told_by_the_processes_that_hold_them(
    tmp_path: Path, peer: socket.socket, notices: Notices
) -> None:
    with JobProcess() as one, JobProcess() as two, ClosingDiag() as diag:
        ports = {"a": {to_peer(peer, one)}, "b": {to_peer(peer, two), to_peer(peer, two)}}
        owners = Owners(notices)
        owners.set_jobs({"a": by_pid(tmp_path, one), "b": by_pid(tmp_path, two)})
        owners.look()
        verdict = owners.judge(diag.sockets())
        found = {job: ports_of(diag.sockets(), verdict.owners, job) for job in ("a", "b")}
        assert found == ports
        # A child holds what its parent held, and what it opens itself.
        two.do("fork")
        ports["b"].add(to_peer(peer, two))
        owners.look()
        assert ports_of(diag.sockets(), owners.judge(diag.sockets()).owners, "b") == ports["b"]


def ports_of(sockets: list[Socket], owners: Mapping[int, str], job: str) -> set[int]:
    return {sock.local_port for sock in sockets if owners.get(sock.cookie) == job}


class ClosingDiag(Diag):
    def __enter__(self) -> Diag:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def test_an_id_that_is_another_processs_by_now_is_left_alone(
    tmp_path: Path, notices: Notices, caplog: pytest.LogCaptureFixture
) -> None:
    owners = Owners(notices)
    with JobProcess() as job:
        # A file that was written long before the process began means another one.
        place = by_pid(tmp_path, job)
        old = time.time() - 3600
        os.utime(place.source, (old, old))
        owners.set_jobs({"a": place})
        owners.look()
        assert "it is another process" in caplog.text
        assert owners.namespaces(0, 0.0) == {}
        place = by_pid(tmp_path, job)
        owners.set_jobs({"a": JobProcesses(place.source.rename(tmp_path / "new.json"), pid=job.pid)})
        owners.look()
        assert set(owners.namespaces(0, 0.0).values()) == {job.pid}


def test_a_process_that_ends_and_whose_id_comes_again_is_gone(
    tmp_path: Path, notices: Notices, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    owners = Owners(notices)
    with JobProcess() as job:
        owners.set_jobs({"a": by_pid(tmp_path, job)})
        owners.look()
        assert owners.namespaces(0, 0.0)
        # As if the id had come again: the start is another one.
        real = procfs.identify
        monkeypatch.setattr(
            procfs, "identify", lambda pid: None if (found := real(pid)) is None else Process(pid, found.started + 9)
        )
        owners.look()
        owners.look()
        assert owners.namespaces(0, 0.0) == {}
        assert caplog.text.count("is left alone") == 1, "and that is said once"


def test_a_pidfile_may_name_a_new_process(tmp_path: Path, notices: Notices, caplog: pytest.LogCaptureFixture) -> None:
    file = tmp_path / "job.pid"
    owners = Owners(notices)
    owners.set_jobs({"a": JobProcesses(file, pidfile=file)})
    for text in (None, "", "none\n", "-5", "99999999999999"):
        if text is not None:
            file.write_text(text)
        owners.look()
        assert owners.namespaces(0, 0.0) == {}
    assert "is not there" in caplog.text and "holds no id of a job" in caplog.text
    for _ in range(2):
        with JobProcess() as job:
            file.write_text(f"{job.pid}\n")
            owners.look()
            assert set(owners.namespaces(0, 0.0).values()) == {job.pid}


def test_descriptors_that_may_not_be_looked_at_are_said_once(
    tmp_path: Path,
    peer: socket.socket,
    notices: Notices,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(_path: str) -> list[str]:
        raise PermissionError(errno.EACCES, "Permission denied")

    with JobProcess() as job, ClosingDiag() as diag:
        to_peer(peer, job)
        owners = Owners(notices)
        owners.set_jobs({"a": by_pid(tmp_path, job)})
        owners.look()
        with monkeypatch.context() as patched:
            patched.setattr(os, "listdir", refuse)
            for _ in range(3):
                assert owners.judge(diag.sockets()).owners == {}
        assert caplog.text.count("CAP_SYS_PTRACE") == 1
        assert owners.judge(diag.sockets()).owners != {}


def test_a_kernel_that_names_no_cgroups_is_said_once_and_processes_are_looked_at(
    tmp_path: Path,
    peer: socket.socket,
    notices: Notices,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    group = owners_module.cgroups.Cgroup(tmp_path, "/job", 77)
    with JobProcess() as job, ClosingDiag() as diag:
        port = to_peer(peer, job)
        monkeypatch.setattr(owners_module.cgroups, "find", lambda _name, _mounted: group)
        monkeypatch.setattr(owners_module, "_is_there", lambda _group: True)
        (tmp_path / "cgroup.procs").write_text(f"{job.pid}\n")
        owners = Owners(notices)
        owners.set_jobs({"a": JobProcesses(tmp_path, cgroup="/job")})
        for _ in range(3):
            owners.look()
            # As a kernel without CONFIG_SOCK_CGROUP_DATA answers.
            verdict = owners.judge([sock._replace(cgroup=0) for sock in diag.sockets()])
            assert ports_of(diag.sockets(), verdict.owners, "a") == {port}
        assert caplog.text.count("does not tell the cgroup") == 1


# Marks on live sockets -----------------------------------------------------------------------------------------------


def sockets_to(diag: Diag, peer: socket.socket) -> list[Socket]:
    port = peer.getsockname()[1]
    return [sock for sock in diag.sockets() if sock.remote_port == port and sock.state == ESTABLISHED]


def unmarked(marks: SocketMarks, dscp: int, sockets: Sequence[Socket]) -> list[int]:
    """Returns the inodes of the sockets that a look would still have to mark for job a; none of them is marked."""
    looked_up: list[int] = []

    def holders(inodes: Iterable[int]) -> dict[int, processes.Held]:
        looked_up.extend(inodes)
        return {}

    marks.mark("a", dscp, sockets, holders)
    return looked_up


def test_live_sockets_of_another_process_are_marked_and_put_back(
    tmp_path: Path, peer: socket.socket, notices: Notices
) -> None:
    with JobProcess() as job, ClosingDiag() as diag:
        owners, marks = Owners(notices), SocketMarks()
        owners.set_jobs({"a": by_pid(tmp_path, job)})
        to_peer(peer, job)
        owners.look()

        def mark(dscp: int) -> None:
            marks.mark("a", dscp, sockets_to(diag, peer), lambda inodes: owners.holders("a", inodes))

        mark(59)
        assert job.do("tos") == 59 << 2
        mark(11)
        assert job.do("tos") == 11 << 2
        # One that comes later, at the next look; and children's.
        job.do("fork")
        to_peer(peer, job)
        assert job.do("tos") == 0
        owners.look()
        mark(11)
        assert job.do("tos") == 11 << 2
        assert marks.trouble == {} and len(sockets_to(diag, peer)) == 2
        assert unmarked(marks, 11, sockets_to(diag, peer)) == []
        marks.unmark("a")
        assert job.do("tos") == 0
        job.do("close")
        assert job.do("tos") == 0
        assert marks.jobs == frozenset()


def test_what_a_marked_listener_accepts_inherits_its_class_and_loses_it_again(tmp_path: Path, notices: Notices) -> None:
    with JobProcess() as job, ClosingDiag() as diag:
        owners, marks = Owners(notices), SocketMarks()
        owners.set_jobs({"a": by_pid(tmp_path, job)})
        port = job.do(f"listen {PEER} 0")

        def ours() -> list[Socket]:
            return [sock for sock in diag.sockets() if sock.local_port == port]

        def mark(dscp: int) -> None:
            owners.look()
            marks.mark("a", dscp, ours(), lambda inodes: owners.holders("a", inodes))

        mark(59)
        with socket.create_connection((PEER, port)):
            job.do("accept")
            assert job.do("tos") == 59 << 2, "the kernel gives it what its listener has"
            mark(11)
            assert job.do("tos") == 11 << 2
            assert len(ours()) == 2 and unmarked(marks, 11, ours()) == []
            marks.unmark("a")
            assert job.do("tos") == 0
        # One that nobody has seen before the marks were taken away.
        mark(59)
        with socket.create_connection((PEER, port)):
            job.do("accept")
            marks.unmark("a")
            assert job.do("tos") == 59 << 2
            marks.clear(ours(), lambda inodes: owners.holders("a", inodes))
            assert job.do("tos") == 0


def test_what_the_program_sets_itself_meanwhile_stays(tmp_path: Path, notices: Notices) -> None:
    marks = SocketMarks()
    with connections(1) as (server, (client, _)), ClosingDiag() as diag:
        owners = Owners(notices)
        owners.set_jobs({"a": by_pid(tmp_path, os.getpid())})
        owners.look()
        client.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, 0x28)
        marks.mark("a", 59, sockets_to(diag, server), lambda inodes: owners.holders("a", inodes))
        assert client.getsockopt(socket.IPPROTO_IP, socket.IP_TOS) == 59 << 2
        client.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, 0x48)
        marks.unmark("a")
        assert client.getsockopt(socket.IPPROTO_IP, socket.IP_TOS) == 0x48


def test_only_classes_are_cleared_and_only_where_they_are_not_marked(tmp_path: Path, notices: Notices) -> None:
    marks = SocketMarks()
    with connections(2) as (server, (client, _, other, _)), ClosingDiag() as diag:
        owners = Owners(notices)
        owners.set_jobs({"a": by_pid(tmp_path, os.getpid())})
        owners.look()
        client.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, 0x28)
        other.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, 59 << 2)
        both = sockets_to(diag, server)
        marks.clear(both, lambda inodes: owners.holders("a", inodes))
        assert client.getsockopt(socket.IPPROTO_IP, socket.IP_TOS) == 0x28
        assert other.getsockopt(socket.IPPROTO_IP, socket.IP_TOS) == 0
        marks.mark("a", 59, both, lambda inodes: owners.holders("a", inodes))
        marks.clear(both, lambda inodes: owners.holders("a", inodes))
        assert client.getsockopt(socket.IPPROTO_IP, socket.IP_TOS) == 59 << 2


def test_an_ipv6_socket_that_talks_over_ipv4_is_marked(tmp_path: Path, notices: Notices) -> None:
    marks = SocketMarks()
    with socket.socket(socket.AF_INET6) as client, socket.create_server((PEER, 0)) as server, ClosingDiag() as diag:
        client.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        client.connect((f"::ffff:{PEER}", server.getsockname()[1]))
        owners = Owners(notices)
        owners.set_jobs({"a": by_pid(tmp_path, os.getpid())})
        owners.look()
        marks.mark("a", 59, sockets_to(diag, server), lambda inodes: owners.holders("a", inodes))
        assert marks.trouble == {} and marks.jobs == {"a"}
        assert client.getsockopt(socket.IPPROTO_IP, socket.IP_TOS) == 59 << 2


def test_processes_and_descriptors_that_vanish_are_no_trouble(
    tmp_path: Path, peer: socket.socket, notices: Notices
) -> None:
    marks, owners = SocketMarks(), Owners(notices)
    with JobProcess() as job, ClosingDiag() as diag:
        owners.set_jobs({"a": by_pid(tmp_path, job)})
        owners.look()
        to_peer(peer, job)
        to_peer(peer, job)
        found = sockets_to(diag, peer)
        held = owners.holders("a", [sock.inode for sock in found])
        assert len(held) == 2
        # The descriptor is closed, and its number is another file's, before it is marked.
        job.do("close")
        job.do("listen 127.0.0.1 0")
        marks.mark("a", 59, found, lambda _inodes: held)
        assert marks.trouble == {}
        assert len(unmarked(marks, 59, found)) == 1, "the closed one alone is not marked"
        assert job.do("tos") == 59 << 2
    marks.mark("a", 11, found, lambda _inodes: held)
    assert marks.trouble == {}
    marks.unmark("a")


def test_a_refusal_to_mark_is_told(
    peer: socket.socket, tmp_path: Path, notices: Notices, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Refusing:
        @staticmethod
        def syscall(*_: int) -> int:
            socket_marks.ctypes.set_errno(errno.EPERM)
            return -1

    marks, owners = SocketMarks(), Owners(notices)
    with JobProcess() as job, ClosingDiag() as diag:
        owners.set_jobs({"a": by_pid(tmp_path, job)})
        owners.look()
        to_peer(peer, job)
        monkeypatch.setattr(socket_marks, "_libc", Refusing())
        marks.mark("a", 59, sockets_to(diag, peer), lambda inodes: owners.holders("a", inodes))
        assert "CAP_SYS_PTRACE" in marks.trouble["a"]
        assert marks.jobs == frozenset()


# All of it together --------------------------------------------------------------------------------------------------


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
