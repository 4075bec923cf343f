"""The agent that finds sockets: what it costs with 100 jobs and 5,000 sockets, and how soon a connection is served.

Real processes and real sockets on the loopback of a network namespace of its own, each job in a cgroup of its own where
one can be made, else by its process. Beside it ``ss``, which lists the same sockets once, and the same agent that looks
for none. Then the same with all jobs marked, and 10,000 short connections a minute beside the 5,000 that stay.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from controller.code_points import POOL_2
from controller.model import MAX_CLASSES
from controller.wire import HostPlan
from evaluation.bench.figures import Bench, Figure
from evaluation.bench.hosts.agent_load import JOBS, PEERS, Churn, groups, running_jobs, socket_count
from evaluation.bench.support.hosts.job_process import JobProcess, in_group
from evaluation.bench.support.hosts.own_namespace import own_namespace
from evaluation.bench.support.hosts.reporter_server import ReporterServer
from evaluation.bench.support.hosts.sniffer import Sniffer

WARM_UP_SECONDS = 8.0
SECONDS = 20.0
ROUNDS = 2
CONNECTIONS = 12
SS_RUNS = 20
PERIOD_SECONDS = 1.0
CPU_LIMIT_PERCENT = 10.0
MEMORY_LIMIT_MB = 100.0


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

    plain = _Arm(
        rounds,
        (
            "The agent with 100 jobs and 5,000 sockets, looked at every second",
            "Memory of the agent with 100 jobs and 5,000 sockets",
            "A new connection is told the controller, at most",
        ),
        "",
        ("ss_percent", "ss, which lists the same sockets once a second"),
        ("bare_memory_mb", "the same agent, looking for no sockets"),
    )
    without = "without marks and short connections"
    marking = _Arm(
        rounds,
        (
            "The agent that marks these jobs, with 10,000 short connections a minute beside",
            "Its memory",
            "A new connection's packets have their class, at most",
        ),
        "marking_",
        ("cpu_percent", without),
        ("memory_mb", without),
    )
    return Bench(figures=(*plain.figures(), *marking.figures()), details={"rounds": rounds})


@dataclass(frozen=True)
class _Arm:
    """What is told of one arm, of its processor time, its memory and the slowest connection; each beside a baseline."""

    rounds: Sequence[Mapping[str, Any]]
    claims: tuple[str, str, str]
    prefix: str
    cpu_beside: tuple[str, str]
    memory_beside: tuple[str, str]

    def figures(self) -> Iterator[Figure]:
        """One each."""
        period = ("period_seconds", "the period in which sockets are looked at")
        yield self._figure(0, "cpu_percent", "% of a core", fmean, self.cpu_beside, CPU_LIMIT_PERCENT)
        yield self._figure(1, "memory_mb", "MB", fmean, self.memory_beside, MEMORY_LIMIT_MB)
        yield self._figure(2, "slowest_seconds", "s", max, period, 2 * PERIOD_SECONDS)

    def _figure(
        self,
        place: int,
        name: str,
        unit: str,
        of_rounds: Callable[[list[float]], float],
        beside: tuple[str, str],
        limit: float,
    ) -> Figure:
        own = [float(one[self.prefix + name]) for one in self.rounds]
        other = [float(one[beside[0]]) for one in self.rounds]
        shares = [1 - value / floor for value, floor in zip(own, other, strict=True)]
        return Figure(
            self.claims[place],
            metric=f"agent_{self.prefix}{name}",
            unit=unit,
            value=of_rounds(own),
            baseline=fmean(other),
            baseline_name=beside[1],
            ci95=(min(shares), max(shares)),
            limit=limit,
        )


def _round(folder: Path) -> dict[str, Any]:
    with groups() as place, running_jobs(place) as pids:
        bare = _measure(folder, {}, None)
        places: dict[str, dict[str, Any]]
        if place is not None:
            places = {f"job{n}": {"cgroup": str(place / f"job_{n}")} for n in range(JOBS)}
        else:
            places = {f"job{n}": {"pid": pid} for n, pid in enumerate(pids)}
        found = _measure(folder, places, place)
        marking = _measure(folder, places, place, marking=True)
        return {
            "by": "pid" if place is None else "cgroup",
            "sockets": socket_count(),
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
            "marking_slowest_seconds": max(marking["seconds"]),
            "marking_seconds": marking["seconds"],
            "period_seconds": PERIOD_SECONDS,
        }


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
        command += ["--jobs-dir", str(jobs), "--progress-dir", scratch, "--period", "1", "--discover", ""]
        command += [] if marking else ["--no-marking"]
        churn = stack.enter_context(Churn(place)) if marking else None
        if churn is not None:
            where = {"pid": churn.pid} if place is None else {"cgroup": str(place / "churn")}
            (jobs / "churn.json").write_text(json.dumps({"id": "churn", "spec": spec, **where}))
            server.set_plan(_plan())
        with (Path(scratch) / "log").open("w") as log, subprocess.Popen(command, stdout=log, stderr=log) as agent:
            try:
                time.sleep(WARM_UP_SECONDS)
                began, before = time.monotonic(), cpu_seconds(agent.pid)
                time.sleep(SECONDS)
                spent = cpu_seconds(agent.pid) - before
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
        {"job": name, "service_class": n % MAX_CLASSES, "dscp": POOL_2.classes[n % MAX_CLASSES]}
        for n, name in enumerate(names)
    ]
    return HostPlan.model_validate(
        {
            "host": "h1", "epoch": 1, "policy": "fifo", "mode": "marked", "class_dscp": POOL_2.classes,
            "class_floor": 0.01, "other_floor": 0.1, "egress_bps": 1e9, "marks": marks,
        }
    ).model_dump(mode="json")  # fmt: skip


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


def cpu_seconds(pid: int) -> float:
    """Of a process and of its children that have ended."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(int(field) for field in fields[11:15]) / os.sysconf("SC_CLK_TCK")


def _memory_mb(pid: int) -> float:
    """The most that it had at any time."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024
