"""Whose a socket is, with real processes: by descriptors, by cgroup, and when ids come again."""

from __future__ import annotations

import errno
import os
import socket
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from evaluation.bench.support.hosts.job_process import JobProcess
from host_reporter import procfs
from host_reporter.discovery import owners as owners_module
from host_reporter.discovery.owners import Owners
from host_reporter.discovery.sockets.sock_diag import Socket
from host_reporter.jobs.job import JobProcesses
from host_reporter.notices import Notices
from host_reporter.procfs import Process
from tests.support.agent.job_sockets import ClosingDiag, by_pid, to_peer


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
