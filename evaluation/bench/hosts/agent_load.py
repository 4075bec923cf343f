"""What the agent is measured with: many jobs with many sockets that stay, and one with many that do not."""

from __future__ import annotations

import contextlib
import os
import secrets
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from evaluation.bench.support.hosts.job_process import JobProcess, in_group, second_hierarchy

JOBS = 100
SOCKETS_A_JOB = 50
PEERS = 10
CHURN_SECONDS, CHURN_CONNECTIONS = 0.1, 17
"""Between two bursts of short connections, and how many: 10,200 a minute."""

# A job listens, connects to the next one's port at another address, and sends a little on each connection.
_JOB = r"""
import json, os, socket, sys, time
n, each, peers, tell, hear = map(int, sys.argv[1:])
server = socket.create_server((f"127.0.0.{2 + n % peers}", 0), backlog=1000)
os.write(tell, (json.dumps([n, *server.getsockname()]) + "\n").encode())
address = tuple(json.loads(os.read(hear, 4096)))
out = [socket.create_connection(address, 20, ("127.0.0.1", 0)) for _ in range(each // 2)]
took = [server.accept()[0] for _ in range(each // 2)]
for sock in took:
    sock.setblocking(False)
while True:
    for sock in out:
        sock.send(b"x" * 200)
    for sock in took:
        try:
            sock.recv(65536)
        except BlockingIOError:
            pass
    time.sleep(1.0)
"""

TASK = "step_0/user/task_0"
"""Where Slurm puts the processes of a job, below the job's cgroup."""
# Starts the jobs, each in its cgroup if it has one, and with a name in its environment if the jobs have names.
_JOBS = r"""
import json, os, resource, sys
jobs, each, peers, place, task, names, job = *map(int, sys.argv[1:4]), *sys.argv[4:]
hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 65536), hard))
told, tell = os.pipe()
hear = [os.pipe() for _ in range(jobs)]
pids = []
for n in range(jobs):
    pid = os.fork()
    if pid == 0:
        if place != "-":
            with open(f"{place}/job_{n}/{task}/cgroup.procs", "w") as procs:
                procs.write("0")
        for m in range(jobs):
            os.close(hear[m][1])
            if m != n:
                os.close(hear[m][0])
        sys.argv = ["-", *map(str, (n, each, peers, tell, hear[n][0]))]
        if names == "-":
            exec(job)
        for descriptor in (tell, hear[n][0]):
            os.set_inheritable(descriptor, True)
        os.execve(sys.executable, [sys.executable, "-S", "-c", job, *sys.argv[1:]], {"TRAINYARD_JOB": f"{names}{n}"})
    pids.append(pid)
addresses, lines = {}, os.fdopen(told)
while len(addresses) < jobs:
    n, *address = json.loads(lines.readline())
    addresses[n] = address
for n in range(jobs):
    os.write(hear[n][1], json.dumps(addresses[(n + 1) % jobs]).encode())
print(*pids, flush=True)
sys.stdin.read()
for pid in pids:
    os.kill(pid, 9)
for pid in pids:
    os.waitpid(pid, 0)
"""


@contextlib.contextmanager
def groups() -> Iterator[Path | None]:
    """A folder with a cgroup of the second version for each job, as Slurm makes them; None where none can be made."""
    second = second_hierarchy()
    if second is None:
        yield None
        return
    place = second / f"bench{secrets.token_hex(4)}_slurmstepd.scope"
    tasks = [place / f"job_{n}" / TASK for n in range(JOBS)]
    try:
        for name in (*tasks, place / "fresh", place / "churn"):
            name.mkdir(parents=True)
        yield place
    finally:
        for folder, _, _ in os.walk(place, topdown=False):
            with contextlib.suppress(OSError):
                Path(folder).rmdir()


@contextlib.contextmanager
def running_jobs(place: Path | None, names: str | None = None) -> Iterator[list[int]]:
    """The jobs' processes. ``names``: TRAINYARD_JOB of each begins with it; None: they have none."""
    command = [sys.executable, "-S", "-c", _JOBS, str(JOBS), str(SOCKETS_A_JOB), str(PEERS)]
    command += [str(place or "-"), TASK, names or "-", _JOB]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            pids = [int(pid) for pid in process.stdout.readline().split()]
            deadline = time.monotonic() + 60
            while socket_count() < JOBS * SOCKETS_A_JOB:
                if len(pids) < JOBS or time.monotonic() > deadline:
                    raise RuntimeError(f"only {socket_count()} of {JOBS * SOCKETS_A_JOB} sockets could be opened")
                time.sleep(0.5)
            yield pids
        finally:
            assert process.stdin is not None
            process.stdin.close()
            process.wait(20)


def socket_count() -> int:
    """The established TCP sockets of this network namespace."""
    listed = subprocess.run(["ss", "-tHn", "state", "established"], capture_output=True, text=True, check=True)
    return listed.stdout.count("\n")


class Churn:
    """Short connections of one job to another address, so many a minute, while it is entered."""

    def __init__(self, place: Path | None) -> None:
        self.count = 0
        self._job = JobProcess(*(() if place is None else in_group(place / "churn")))
        self.pid = self._job.pid
        self._server = socket.create_server(("127.0.0.3", 0), backlog=1000)
        self._ends = threading.Event()
        self._threads = [threading.Thread(target=body, daemon=True) for body in (self._accept, self._connect)]

    def __enter__(self) -> Churn:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ends.set()
        self._threads[1].join()
        self._server.shutdown(socket.SHUT_RDWR)
        self._threads[0].join()
        self._server.close()
        self._job.end()

    def _connect(self) -> None:
        port = self._server.getsockname()[1]
        due = time.monotonic()
        while not self._ends.wait(max(due - time.monotonic(), 0.0)):
            self._job.do(f"churn 127.0.0.3 {port} {CHURN_CONNECTIONS}")
            self.count += CHURN_CONNECTIONS
            due += CHURN_SECONDS

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                self._server.accept()[0].close()
