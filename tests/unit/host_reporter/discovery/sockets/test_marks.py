"""Marks on live sockets of other processes: set, inherited, put back, and refused."""

from __future__ import annotations

import contextlib
import errno
import os
import socket
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest

from controller.code_points import code_points
from evaluation.bench.support.hosts.job_process import JobProcess
from host_reporter.discovery import processes
from host_reporter.discovery.owners import Owners
from host_reporter.discovery.sockets import marks as socket_marks
from host_reporter.discovery.sockets.marks import SocketMarks
from host_reporter.discovery.sockets.sock_diag import Socket
from host_reporter.notices import Notices
from host_reporter.procfs import identify
from tests.support.agent.job_sockets import PEER, ClosingDiag, by_pid, sockets_to, to_peer
from tests.support.loopback import connections


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


def test_only_the_dscps_of_the_plan_are_cleared_and_to_that_of_other_traffic(tmp_path: Path, notices: Notices) -> None:
    marks = SocketMarks()
    marks.points = code_points((56, 48), None, other=8)
    with connections(2) as (server, (client, _, other, _)), ClosingDiag() as diag:
        owners = Owners(notices)
        owners.set_jobs({"a": by_pid(tmp_path, os.getpid())})
        owners.look()
        client.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, 48 << 2)
        other.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, 59 << 2)
        both = sockets_to(diag, server)
        marks.clear(both, lambda inodes: owners.holders("a", inodes))
        assert client.getsockopt(socket.IPPROTO_IP, socket.IP_TOS) == 8 << 2
        assert other.getsockopt(socket.IPPROTO_IP, socket.IP_TOS) == 59 << 2


def test_the_bits_of_congestion_notification_stay_as_they_are() -> None:
    me = identify(os.getpid())
    assert me is not None
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
        udp.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, 0x28 | 0b10)
        inode = os.fstat(udp.fileno()).st_ino
        found = [Socket(1, inode, 0, 1, b"", 0, b"", 0, 0, 0)]
        marks = SocketMarks()
        marks.mark("a", 59, found, lambda _inodes: {inode: processes.Held(me, udp.fileno())})
        assert udp.getsockopt(socket.IPPROTO_IP, socket.IP_TOS) == 59 << 2 | 0b10
        marks.unmark("a")
        assert udp.getsockopt(socket.IPPROTO_IP, socket.IP_TOS) == 0x28 | 0b10


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


def test_a_socket_over_ipv6_is_marked_with_its_traffic_class_and_put_back() -> None:
    me, marks = identify(os.getpid()), SocketMarks()
    assert me is not None
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(socket.create_server(("::1", 0), family=socket.AF_INET6))
        client = stack.enter_context(socket.create_connection(("::1", server.getsockname()[1])))
        diag = stack.enter_context(ClosingDiag())
        client.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_TCLASS, 10 << 2)
        inode = os.fstat(client.fileno()).st_ino
        found = [sock for sock in diag.sockets() if sock.inode == inode]
        assert [sock.remote for sock in found] == [socket.inet_pton(socket.AF_INET6, "::1")]

        def holders(_inodes: Iterable[int]) -> dict[int, processes.Held]:
            return {inode: processes.Held(me, client.fileno())}

        marks.mark("a", 59, found, holders)
        assert marks.trouble == {}
        assert client.getsockopt(socket.IPPROTO_IPV6, socket.IPV6_TCLASS) == 59 << 2
        marks.mark("a", 51, found, holders)
        assert client.getsockopt(socket.IPPROTO_IPV6, socket.IPV6_TCLASS) == 51 << 2
        marks.unmark("a")
        assert client.getsockopt(socket.IPPROTO_IPV6, socket.IPV6_TCLASS) == 10 << 2
        assert client.getsockopt(socket.IPPROTO_IP, socket.IP_TOS) == 0


def test_a_class_that_a_socket_over_ipv6_has_from_others_is_cleared() -> None:
    me, marks = identify(os.getpid()), SocketMarks()
    assert me is not None
    with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as udp:
        udp.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_TCLASS, 59 << 2 | 0b10)
        inode = os.fstat(udp.fileno()).st_ino
        found = [Socket(1, inode, 0, 1, bytes(16), 0, bytes(16), 0, 0, 0)]
        marks.clear(found, lambda _inodes: {inode: processes.Held(me, udp.fileno())})
        assert udp.getsockopt(socket.IPPROTO_IPV6, socket.IPV6_TCLASS) == 0b10


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
