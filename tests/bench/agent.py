"""The agent that finds sockets: what it costs with 100 jobs and 5,000 sockets, and how soon a connection is served.

Real processes and real sockets on the loopback of a network namespace of its own, each job in a cgroup of its own where
one can be made, else by its process. Beside it ``ss``, which lists the same sockets once, and the same agent that looks
for none. Then the same with all jobs marked, and 10,000 short connections a minute beside the 5,000 that stay.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from controller.model import CLASS_DSCP, MAX_CLASSES
from controller.wire import HostPlan
from tests.bench.figures import Bench, Figure
from tests.host.own_namespace import own_namespace
from tests.job_process import JobProcess, in_group, second_hierarchy
from tests.sniffer import Sniffer
from tests.unit.reporter_server import ReporterServer

JOBS = 100
SOCKETS_A_JOB = 50
PEERS = 10
WARM_UP_SECONDS = 8.0
SECONDS = 20.0
ROUNDS = 2
CONNECTIONS = 12
SS_RUNS = 20
PERIOD_SECONDS = 1.0
CHURN_SECONDS, CHURN_CONNECTIONS = 0.1, 17
"""Between two bursts of short connections, and how many: 10,200 a minute."""

CPU_LIMIT_PERCENT = 10.0
MEMORY_LIMIT_MB = 100.0

# Each job listens, connects to the next one's port at another address, and sends a little on each connection.
_JOBS = r"""
import json, os, resource, socket, sys, time
jobs, each, peers, place = int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 65536), hard))
told, tell = os.pipe()
hear = [os.pipe() for _ in range(jobs)]
pids = []
for n in range(jobs):
    pid = os.fork()
    if pid == 0:
        if place != "-":
            with open(f"{place}/job{n}/cgroup.procs", "w") as procs:
                procs.write("0")
        for m in range(jobs):
            os.close(hear[m][1])
            if m != n:
                os.close(hear[m][0])
        server = socket.create_server((f"127.0.0.{2 + n % peers}", 0), backlog=1000)
        os.write(tell, (json.dumps([n, *server.getsockname()]) + "\n").encode())
        address = tuple(json.loads(os.read(hear[n][0], 4096)))
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


class Server(ReporterServer):
    """Tells the addresses too, and knows when a job's link to a port was told first."""

    def __init__(self) -> None:
        self.told: dict[int, float] = {}
        super().__init__()
        self.period_seconds = PERIOD_SECONDS

    def handle(self, method: str, path: str, body: bytes, tag: str | None) -> tuple[int, dict[str, Any] | None]:
        """Also: note the links of a report."""
        if path.endswith("/peers"):
            hosts = {f"127.0.0.{n}": f"h{n}" for n in range(1, PEERS + 2)}
            return 200, {"addresses": hosts}
        answer = super().handle(method, path, body, tag)
        if method == "POST":
            now = time.monotonic()
            for part in self.reports[-1].traffic:
                for link in part.links or ():
                    self.told.setdefault(link.peer_port or 0, now)
            # A bench runs for long: what was counted is enough.
            del self.reports[:-1]
        return answer


def run(folder: Path, _data: Path | None) -> Bench:
    """Measure. Raises RuntimeError where the sockets could not be made."""
    try:
        with own_namespace():
            rounds = [_round(folder) for _ in range(ROUNDS)]
    except PermissionError as error:
        raise RuntimeError("a network namespace cannot be made; run it as root") from error

    def mean(name: str) -> float:
        return sum(float(one[name]) for one in rounds) / len(rounds)

    def ci(value: str, floor: str) -> tuple[float, float]:
        shares = [1 - one[value] / one[floor] for one in rounds]
        return min(shares), max(shares)

    return Bench(
        figures=(
            Figure(
                "The agent with 100 jobs and 5,000 sockets, looked at every second",
                metric="agent_cpu",
                unit="% of a core",
                value=mean("cpu_percent"),
                baseline=mean("ss_percent"),
                baseline_name="ss, which lists the same sockets once a second",
                ci95=ci("cpu_percent", "ss_percent"),
                limit=CPU_LIMIT_PERCENT,
            ),
            Figure(
                "Memory of the agent with 100 jobs and 5,000 sockets",
                metric="agent_memory",
                unit="MB",
                value=mean("memory_mb"),
                baseline=mean("bare_memory_mb"),
                baseline_name="the same agent, looking for no sockets",
                ci95=ci("memory_mb", "bare_memory_mb"),
                limit=MEMORY_LIMIT_MB,
            ),
            Figure(
                "A new connection is told the controller, at most",
                metric="new_connection",
                unit="s",
                value=max(float(one["slowest_seconds"]) for one in rounds),
                baseline=PERIOD_SECONDS,
                baseline_name="the period in which sockets are looked at",
                ci95=ci("slowest_seconds", "period_seconds"),
                limit=2 * PERIOD_SECONDS,
            ),
            Figure(
                "The agent that marks these jobs, with 10,000 short connections a minute beside",
                metric="agent_marking_cpu",
                unit="% of a core",
                value=mean("marking_cpu_percent"),
                baseline=mean("cpu_percent"),
                baseline_name="without marks and short connections",
                ci95=ci("marking_cpu_percent", "cpu_percent"),
                limit=CPU_LIMIT_PERCENT,
            ),
            Figure(
                "Its memory",
                metric="agent_marking_memory",
                unit="MB",
                value=mean("marking_memory_mb"),
                baseline=mean("memory_mb"),
                baseline_name="without marks and short connections",
                ci95=ci("marking_memory_mb", "memory_mb"),
                limit=MEMORY_LIMIT_MB,
            ),
            Figure(
                "A new connection's packets have their class, at most",
                metric="new_connection_marked",
                unit="s",
                value=max(float(one["slowest_marked_seconds"]) for one in rounds),
                baseline=PERIOD_SECONDS,
                baseline_name="the period in which sockets are looked at",
                ci95=ci("slowest_marked_seconds", "period_seconds"),
                limit=2 * PERIOD_SECONDS,
            ),
        ),
        details={"rounds": rounds},
    )


def _round(folder: Path) -> dict[str, Any]:
    with _groups() as place, _jobs(place) as pids:
        bare = _measure(folder, {}, None)
        places: dict[str, dict[str, Any]]
        if place is not None:
            places = {f"job{n}": {"cgroup": str(place / f"job{n}")} for n in range(JOBS)}
        else:
            places = {f"job{n}": {"pid": pid} for n, pid in enumerate(pids)}
        found = _measure(folder, places, place)
        marking = _measure(folder, places, place, marking=True)
        return {
            "by": "pid" if place is None else "cgroup",
            "sockets": _socket_count(),
            "cpu_percent": found["cpu_percent"],
            "bare_cpu_percent": bare["cpu_percent"],
            "ss_percent": _ss_percent(),
            "memory_mb": found["memory_mb"],
            "bare_memory_mb": bare["memory_mb"],
            "slowest_seconds": max(found["seconds"]),
            "seconds": found["seconds"],
            "marking_cpu_percent": marking["cpu_percent"],
            "marking_memory_mb": marking["memory_mb"],
            "short_connections": marking["short_connections"],
            "marked_by": marking["marked_by"],
            "slowest_marked_seconds": max(marking["seconds"]),
            "marked_seconds": marking["seconds"],
            "period_seconds": PERIOD_SECONDS,
        }


@contextlib.contextmanager
def _groups() -> Iterator[Path | None]:
    """A folder with a cgroup of the second version for each job; None where none can be made."""
    second = second_hierarchy()
    if second is None:
        yield None
        return
    place = second / f"trainyard-bench-{secrets.token_hex(4)}"
    names = [place / f"job{n}" for n in range(JOBS)] + [place / "fresh", place / "churn"]
    try:
        for name in names:
            name.mkdir(parents=True)
        yield place
    finally:
        for name in (*names, place):
            with contextlib.suppress(OSError):
                name.rmdir()


@contextlib.contextmanager
def _jobs(place: Path | None) -> Iterator[list[int]]:
    command = [sys.executable, "-S", "-c", _JOBS, str(JOBS), str(SOCKETS_A_JOB), str(PEERS), str(place or "-")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            pids = [int(pid) for pid in process.stdout.readline().split()]
            deadline = time.monotonic() + 60
            while _socket_count() < JOBS * SOCKETS_A_JOB:
                if len(pids) < JOBS or time.monotonic() > deadline:
                    raise RuntimeError(f"only {_socket_count()} of {JOBS * SOCKETS_A_JOB} sockets could be opened")
                time.sleep(0.5)
            yield pids
        finally:
            assert process.stdin is not None
            process.stdin.close()
            process.wait(20)


def _socket_count() -> int:
    """The established TCP sockets of this network namespace."""
    listed = subprocess.run(["ss", "-tHn", "state", "established"], capture_output=True, text=True, check=True)
    return listed.stdout.count("\n")


def _ss_percent() -> float:
    """What a list of the sockets with their counts costs, once a second, in percent of a core."""
    before = os.times()
    for _ in range(SS_RUNS):
        subprocess.run(["ss", "-tinHO", "--cgroup"], stdout=subprocess.DEVNULL, check=True)
    after = os.times()
    spent = after.children_user - before.children_user + after.children_system - before.children_system
    return 100 * spent / SS_RUNS


def _measure(
    folder: Path, places: Mapping[str, Mapping[str, Any]], place: Path | None, *, marking: bool = False
) -> dict[str, Any]:
    """One agent with these jobs; without any it has as many that say no place. ``marking``: with marks, and churn."""
    server = Server()
    with tempfile.TemporaryDirectory(dir=folder) as scratch, contextlib.ExitStack() as stack:
        jobs = Path(scratch) / "jobs.d"
        jobs.mkdir()
        spec = {"tasks": [{"role": "worker", "host": f"h{n}"} for n in (1, 2)]}
        for n in range(JOBS):
            its = {"id": f"job{n}", "spec": spec, **places.get(f"job{n}", {})}
            (jobs / f"job{n}.json").write_text(json.dumps(its))
        fresh = stack.enter_context(JobProcess(*(() if place is None else in_group(place / "fresh"))))
        where = {"pid": fresh.pid} if place is None else {"cgroup": str(place / "fresh")}
        if places:
            (jobs / "fresh.json").write_text(json.dumps({"id": "fresh", "spec": spec, **where}))
        command = [sys.executable, "-m", "host_reporter.agent", "--controller", server.url, "--host", "h1"]
        command += ["--jobs-dir", str(jobs), "--progress-dir", scratch, "--period", "1"]
        command += [] if marking else ["--no-marking"]
        churn = stack.enter_context(Churn(place)) if marking else None
        if churn is not None:
            where = {"pid": churn.pid} if place is None else {"cgroup": str(place / "churn")}
            (jobs / "churn.json").write_text(json.dumps({"id": "churn", "spec": spec, **where}))
            server.set_plan(_plan())
        with (Path(scratch) / "log").open("w") as log, subprocess.Popen(command, stdout=log, stderr=log) as agent:
            try:
                time.sleep(WARM_UP_SECONDS)
                began, before = time.monotonic(), _cpu_seconds(agent.pid)
                time.sleep(SECONDS)
                spent = _cpu_seconds(agent.pid) - before
                found = {
                    "cpu_percent": 100 * spent / (time.monotonic() - began),
                    "seconds": (_marked if marking else _told)(server, fresh) if places else [],
                    "memory_mb": _memory_mb(agent.pid),
                    "short_connections": churn.count if churn is not None else 0,
                    "marked_by": _marked_by() if marking else "nothing",
                }
            finally:
                agent.send_signal(signal.SIGTERM)
                agent.wait(20)
                server.stop()
    return found


def _plan() -> dict[str, Any]:
    """Every job in a class."""
    names = [*(f"job{n}" for n in range(JOBS)), "fresh", "churn"]
    marks = [
        {"job": name, "service_class": n % MAX_CLASSES, "dscp": CLASS_DSCP[n % MAX_CLASSES]}
        for n, name in enumerate(names)
    ]
    return HostPlan.model_validate(
        {
            "host": "h1", "epoch": 1, "policy": "fifo", "mode": "marked", "class_dscp": CLASS_DSCP,
            "class_floor": 0.01, "other_floor": 0.1, "egress_bps": 1e9, "marks": marks,
        }
    ).model_dump(mode="json")  # fmt: skip


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


def _marked_by() -> str:
    """Which kind of rule marks here."""
    saved = "iptables-legacy-save -t mangle; iptables-nft-save -t mangle; :"
    rules = subprocess.run(["sh", "-c", saved], capture_output=True, text=True, check=True).stdout
    if "--path" in rules:
        return "cgroup"
    return "connection" if "-g TRAINYARD-A" in rules or "-g TRAINYARD-B" in rules else "socket"


def _connections(job: JobProcess) -> Iterator[tuple[int, int, float]]:
    """New connections of a job, each to a port of its own: that port, the job's own, and when it was made."""
    for n in range(CONNECTIONS):
        # At another moment of the period each time.
        time.sleep(1.0 + n / CONNECTIONS)
        with socket.create_server(("127.0.0.2", 0)) as peer:
            port = peer.getsockname()[1]
            threading.Thread(target=_drain, args=(peer,), daemon=True).start()
            began = time.monotonic()
            yield port, job.do(f"connect 127.0.0.2 {port}"), began
            job.do("close")


def _drain(server: socket.socket) -> None:
    """Take one connection, and all that comes."""
    with contextlib.suppress(OSError), server.accept()[0] as peer:
        while peer.recv(65536):
            pass


def _told(server: Server, job: JobProcess) -> list[float]:
    """Seconds from a connection until the controller is told of it, again and again."""
    found = []
    for port, _, began in _connections(job):
        while port not in server.told:
            if time.monotonic() - began > 20:
                raise RuntimeError("a new connection was not told within 20 s")
            time.sleep(0.005)
        found.append(server.told[port] - began)
        # The next one's may be the same.
        server.told.clear()
    return found


def _marked(_server: Server, job: JobProcess) -> list[float]:
    """Seconds from a connection until what it sends has its job's class."""
    dscp = next(mark["dscp"] for mark in _plan()["marks"] if mark["job"] == "fresh")
    found = []
    with contextlib.closing(Sniffer()) as sniffer:
        for _, local, began in _connections(job):
            while sniffer.dscp_of(job, local) != dscp:
                if time.monotonic() - began > 20:
                    raise RuntimeError("a new connection was not marked within 20 s")
            found.append(time.monotonic() - began)
    return found


def _cpu_seconds(pid: int) -> float:
    """Of a process and of its children that have ended."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(int(field) for field in fields[11:15]) / os.sysconf("SC_CLK_TCK")


def _memory_mb(pid: int) -> float:
    """The most that it had at any time."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024
