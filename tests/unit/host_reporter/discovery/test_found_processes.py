"""The sockets of found jobs, whose processes are several trees that come and go."""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from evaluation.bench.support.hosts.job_process import JobProcess
from evaluation.bench.support.waiting import wait_until
from host_reporter import procfs
from host_reporter.discovery.finder import Discovery
from host_reporter.discovery.owners import Owners
from host_reporter.discovery.processes import Tree
from host_reporter.discovery.sockets.netlink import Diag
from host_reporter.discovery.traffic_report import NO_INTERFACES
from host_reporter.jobs.job import JobProcesses
from host_reporter.notices import Notices
from host_reporter.procfs import Process

PEER = "127.0.0.2"


@pytest.fixture
def owners() -> Owners:
    return Owners(Notices(logging.getLogger("test")))


@pytest.fixture
def peer() -> Iterator[socket.socket]:
    with socket.create_server((PEER, 0), backlog=100) as server:
        yield server


def below(*jobs: JobProcess) -> JobProcesses:
    roots = [procfs.identify(job.pid) for job in jobs]
    return JobProcesses(Path("/proc"), roots=frozenset(root for root in roots if root is not None))


def ports(owners: Owners, job: str) -> set[int]:
    """Returns the local ports of a job's connections."""
    owners.look()
    diag = Diag()
    try:
        sockets = diag.sockets()
        held = owners.judge(sockets).owners
        return {sock.local_port for sock in sockets if held.get(sock.cookie) == job}
    finally:
        diag.close()


def test_all_trees_are_the_jobs_and_new_ones_join(owners: Owners, peer: socket.socket) -> None:
    port = peer.getsockname()[1]
    with JobProcess() as one, JobProcess() as two:
        first, second = (job.do(f"connect {PEER} {port}") for job in (one, two))
        owners.set_jobs({"a": below(one)})
        assert ports(owners, "a") == {first}
        owners.set_jobs({"a": below(one, two)})
        assert ports(owners, "a") == {first, second}
        two.do("fork")
        third = two.do(f"connect {PEER} {port}")
        assert ports(owners, "a") == {first, second, third}
        # What was started by a root that is gone is still the job's.
        owners.set_jobs({"a": below(one)})
        assert ports(owners, "a") == {first, second, third}


def test_a_job_inside_another_ones_tree_has_its_own_sockets(owners: Owners, peer: socket.socket) -> None:
    """A tuner that starts trials, each with a name of its own."""
    port = peer.getsockname()[1]
    with JobProcess() as outer:
        own = outer.do(f"connect {PEER} {port}")
        child = outer.do("fork")
        theirs = outer.do(f"connect {PEER} {port}")
        inner = procfs.identify(child)
        assert inner is not None
        declared = {"outer": below(outer), "inner": JobProcesses(Path("/proc"), roots=frozenset({inner}))}
        owners.set_jobs(declared)
        assert theirs in ports(owners, "inner")
        assert ports(owners, "outer") <= {own}, "its parent holds what was there before the fork"
    assert Tree(Process(os.getpid(), 0)).look() == frozenset(), "a root is a process, not an id"


def test_a_job_whose_processes_come_and_go_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """A new root ends no report of the job, which a new place in a job file does."""
    root, other = Process(5, 1), Process(6, 1)
    one = JobProcesses(Path("/proc"), roots=frozenset({root}))
    two = JobProcesses(Path("/proc"), roots=frozenset({root, other}))
    assert two.continues(one) and one.continues(one)
    assert not one.continues(None)
    assert not one.continues(JobProcesses(Path("/proc"), cgroup="/a"))
    assert not JobProcesses(Path("/x"), pid=5).continues(JobProcesses(Path("/x"), pid=6))
    discovery = Discovery(
        "h1", _NoAddresses(), _NoReceiver(), Notices(logging.getLogger("test")),
        sources_changed=lambda _: None, failed=lambda _: None,
    )  # fmt: skip
    ended: list[str] = []
    monkeypatch.setattr(discovery._reports, "end", ended.extend)
    for declared in ({"a": one}, {"a": two}, {"a": one}):
        discovery._set_jobs(declared)
    assert ended == []
    discovery._set_jobs({"a": JobProcesses(Path("/x"), cgroup="/a")})
    assert ended == ["a"]


class _NoAddresses:
    addresses = None
    interfaces = NO_INTERFACES

    def start(self) -> None:
        """Nobody asks."""


class _NoReceiver:
    def add_traffic(self, parts: object) -> None:
        """Nothing is reported."""


def test_the_end_of_all_trees_is_seen(owners: Owners) -> None:
    with JobProcess() as job:
        owners.set_jobs({"a": below(job)})
        owners.look()
        assert owners.namespaces(0, 0.0)
    wait_until(lambda: owners.look() or owners.namespaces(0, 0.0) == {})
