"""Sockets of jobs' processes to another host's server, as job files and the kernel name them."""

from __future__ import annotations

import socket
from pathlib import Path

from evaluation.bench.support.hosts.job_process import JobProcess
from host_reporter.discovery.sockets.netlink import Diag
from host_reporter.discovery.sockets.sock_diag import ESTABLISHED, Socket
from host_reporter.jobs.job import JobProcesses

PEER = "127.0.0.2"


def by_pid(path: Path, job: JobProcess | int) -> JobProcesses:
    """As a job file has it."""
    pid = job if isinstance(job, int) else job.pid
    file = path / f"{pid}.json"
    file.write_text("{}")
    return JobProcesses(file, pid=pid)


def to_peer(peer: socket.socket, job: JobProcess) -> int:
    return job.do(f"connect {PEER} {peer.getsockname()[1]}")


class ClosingDiag(Diag):
    def __enter__(self) -> Diag:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def sockets_to(diag: Diag, peer: socket.socket) -> list[Socket]:
    port = peer.getsockname()[1]
    return [sock for sock in diag.sockets() if sock.remote_port == port and sock.state == ESTABLISHED]
