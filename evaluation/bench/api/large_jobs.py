"""The largest jobs and reports that the API takes: how long anything else waits for an answer meanwhile.

A real controller with a switch that takes every rule, and a client that asks ``/healthz`` every few milliseconds, from
before a request until the plan that it causes is in force. Beside it the same client while nothing else happens.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evaluation.bench.figures import Bench, Figure
from evaluation.bench.support.api_client import Controller
from evaluation.bench.support.openflow.bare_switch_process import DPID, SETTINGS, bare_switch

HOSTS = 4096
TASKS = 4096
DEMANDS = 65_536
JOBS = 4096
PARTS = 1000
CLIENTS = 16
IDLE_SECONDS = 3.0
SETTLE_SECONDS = 1.0
PLANNED_SECONDS = 1.5
"""After a report, so that the plan that it causes, or the next period's, is in the time that is looked at."""
AFTER_SECONDS = 0.02
IN_FORCE_SECONDS = 120.0
LIMIT_MS = 100.0

Act = Callable[[], object]


@dataclass(frozen=True, slots=True)
class Waits:
    """How long ``/healthz`` took while something went on, in milliseconds, and how long that went on, in seconds."""

    count: int
    p50_ms: float
    p99_ms: float
    max_ms: float
    seconds: float


def run(folder: Path, _data: Path | None) -> Bench:
    """Measure. Raises RuntimeError where the controller does not do what it is asked."""
    with tempfile.TemporaryDirectory(dir=folder) as scratch, _running(Path(scratch)) as controller:
        memory_before = _memory_mb(controller, "VmRSS")
        with _watched(controller.port, Path(scratch) / "samples") as samples_of:
            began = time.monotonic()
            time.sleep(IDLE_SECONDS)
            moments = [("nothing", began, time.monotonic())]
            for name, act in (*_large_jobs(controller), *_many_jobs(controller)):
                time.sleep(SETTLE_SECONDS)
                began = time.monotonic()
                act()
                moments.append((name, began, time.monotonic()))
                sys.stderr.write(f"bench large-jobs: {name}: {time.monotonic() - began:.2f} s\n")
        peak = _memory_mb(controller, "VmHWM")
    samples = samples_of()
    waits = {name: _waits(samples, began, ended) for name, began, ended in moments}
    idle = waits.pop("nothing")
    figures = tuple(
        Figure(
            f"The longest wait for /healthz: {name}",
            metric="healthz_max",
            unit="ms",
            value=its.max_ms,
            baseline=idle.max_ms,
            baseline_name="the longest while nothing else happens",
            ci95=(float("nan"), float("nan")),
            limit=LIMIT_MS,
        )
        for name, its in waits.items()
    )
    details = {"idle": idle, "waits": waits, "memory_before_mb": memory_before, "peak_memory_mb": peak}
    return Bench(figures, details=details)


def _large_jobs(controller: Controller) -> Iterator[tuple[str, Act]]:
    """What is asked of the largest jobs, each with a name: it is done, and planned with, when it returns."""
    ports = {"tasks": [{"role": "peer", "host": f"h{n}", "port": 5000} for n in range(TASKS)]}
    pairs = [(f"h{src}", f"h{dst}") for src in range(257) for dst in range(257) if src != dst][:DEMANDS]
    demand = [{"src": src, "dst": dst, "bytes": 1e6 + k} for k, (src, dst) in enumerate(pairs)]
    matrix = {"tasks": [{"role": "peer", "host": f"h{n}"} for n in range(257)], "demand": demand}
    wrong = {"demand": [{"src": 1}] * 100_000}
    yield f"a job of {TASKS} tasks with ports", lambda: _put(controller, "ports", ports)
    yield f"a job of {len(demand)} demands", lambda: _put(controller, "matrix", matrix)
    yield "the same once more", lambda: _put(controller, "matrix", matrix)
    yield "another weight for it", lambda: _put(controller, "matrix", matrix | {"weight": 2.0})
    yield "100,000 faults in a job", partial(_ask, controller, "PUT", "/v1/jobs/wrong", wrong, 422)
    for path in ("/v1/jobs/matrix", "/v1/jobs/matrix/explain", "/v1/jobs", "/v1/plan", "/v1/hosts/h5/plan"):
        yield f"GET {path}", partial(_ask, controller, "GET", path)


def _many_jobs(controller: Controller) -> Iterator[tuple[str, Act]]:
    """What is asked of as many jobs as a stage or a report may name."""
    names = [f"j{n}" for n in range(JOBS)]
    now = time.time()
    tell = _Teller(controller)
    points: list[dict[str, Any]] = [{"iteration": k, "time": k, "metric": 0.5} for k in range(10_000)]
    links = [{"peer": f"h{1 + k % 4000}", "port": 1 + k, "peer_port": 7} for k in range(4096)]
    peers = [{"peer": f"h{k}", "sent": 1e6, "received": 1e6} for k in range(1, 4096)]
    flows = [{"src": "h0", "dst": f"h{1 + k % 4000}", "dst_port": 1 + k} for k in range(4096)]
    yield f"{JOBS} jobs, {CLIENTS} clients", lambda: _put_many(controller, names)
    yield f"a stage of {JOBS} jobs", partial(_ask, controller, "PUT", "/v1/stages/s", {"jobs": names})
    yield "its end", partial(_ask, controller, "DELETE", "/v1/stages/s")
    yield f"a report of {JOBS} jobs", lambda: tell(jobs=[{"job": j, "points": points[1:2]} for j in names])
    yield f"a report of {len(points)} points", lambda: tell(jobs=[{"job": "j1", "points": points}])
    traffic = [{"job": f"j{k}", "as_of": now, "links": links} for k in range(4)]
    yield f"a report of {4 * len(links)} links", lambda: tell(traffic=traffic)
    counts = [{"job": f"j{k}", "as_of": now, "peers": peers} for k in range(15)]
    yield f"a report of {15 * len(peers)} peers' bytes", lambda: tell(traffic=counts)
    yield f"a report of {len(flows)} flows", lambda: tell(flows=[{"job": "j9", "flow": flow} for flow in flows])
    yield f"a job of {PARTS} parts, {CLIENTS} clients", lambda: _put_parts(controller)
    lists = ("/v1/jobs", "/v1/plan", "/v1/plan?policy=sincronia", "/v1/status", "/v1/network")
    for path in (*lists, "/v1/jobs/j7/explain?weights=2,4", "/v1/hosts/h0/plan", "/metrics"):
        yield f"GET {path}, {JOBS + 2} jobs", partial(_ask, controller, "GET", path)
    for job in ("matrix", "ports"):
        yield f"DELETE /v1/jobs/{job}", partial(_ask, controller, "DELETE", f"/v1/jobs/{job}")


def _put(controller: Controller, job: str, spec: dict[str, Any]) -> None:
    _ask(controller, "PUT", f"/v1/jobs/{job}", spec)
    deadline = time.monotonic() + IN_FORCE_SECONDS
    while not controller.session.get(f"{controller.url}/v1/jobs/{job}/explain", timeout=IN_FORCE_SECONDS).ok:
        if time.monotonic() > deadline:
            raise RuntimeError(f"job {job} is in no plan after {IN_FORCE_SECONDS:g} s: {controller.log()[-500:]}")
        time.sleep(0.02)


def _put_many(controller: Controller, names: list[str]) -> None:
    def put(number: int) -> None:
        worker = f"h{1 + number % 4000}"
        tasks = [{"role": "ps", "host": "h0", "port": 10_000 + number}, {"role": "worker", "host": worker}]
        body = {"tasks": tasks, "demand": [{"src": "h0", "dst": worker, "bytes": 1e6}]}
        _ask(controller, "PUT", f"/v1/jobs/{names[number]}", body)

    with ThreadPoolExecutor(CLIENTS) as clients:
        list(clients.map(put, range(len(names) - 1)))
    last = len(names) - 1
    put(last)
    _put(controller, names[last], {"tasks": [{"role": "worker", "host": "h1"}]})


def _put_parts(controller: Controller) -> None:
    """Have each host tell of its part in the same job, as agents do when a large job begins; each names all hosts."""
    hosts = [f"h{n}" for n in range(PARTS)]

    def put(number: int) -> None:
        body = {"launcher": "slurm", "user": "ann", "is_first": number == 0, "hosts": hosts}
        _ask(controller, "PUT", f"/v1/jobs/parts/parts/{hosts[number]}", body)

    with ThreadPoolExecutor(CLIENTS) as clients:
        list(clients.map(put, range(PARTS)))


class _Teller:
    """Reports of one host, one after the other."""

    def __init__(self, controller: Controller) -> None:
        self._controller = controller
        self._seq = 0

    def __call__(self, **parts: Any) -> None:
        self._seq += 1
        body = {"session": "s", "seq": self._seq, "sent_at": time.time()} | parts
        _ask(self._controller, "POST", "/v1/hosts/h0/reports", body)
        time.sleep(PLANNED_SECONDS)


def _ask(controller: Controller, method: str, path: str, body: Any = None, status: int | None = None) -> None:
    answer = controller.session.request(method, controller.url + path, json=body, timeout=IN_FORCE_SECONDS)
    if not (answer.ok if status is None else answer.status_code == status):
        raise RuntimeError(f"{method} {path}: {answer.status_code} {answer.text[:300]}")


@contextmanager
def _running(folder: Path) -> Iterator[Controller]:
    """A controller with a journal, and a switch that every server is plugged into."""
    hosts = [
        {"name": f"h{n}", "address": f"10.0.{n // 250}.{n % 250 + 1}", "switch": f"{DPID:#x}", "port": n + 1}
        for n in range(HOSTS)
    ]
    settings: dict[str, Any] = SETTINGS | {"table_budget": 100_000, "journal": str(folder / "journal.db")}
    controller = Controller(folder, token=False, hosts=hosts, **settings)
    try:
        controller.start()
        with bare_switch(controller):
            yield controller
    finally:
        controller.stop()


@contextmanager
def _watched(port: int, file: Path) -> Iterator[Callable[[], NDArray[np.float64]]]:
    """Ask ``/healthz`` all the time; afterwards what is yielded gives when, and how long each took, shape (n, 2)."""
    watch = subprocess.Popen([sys.executable, "-m", "evaluation.bench.api.health_watch", str(port), str(file)])
    samples: list[NDArray[np.float64]] = []
    try:
        yield lambda: samples[0]
    finally:
        watch.terminate()
        watch.wait(30)
        samples.append(np.frombuffer(file.read_bytes()).reshape(-1, 2))


def _waits(samples: NDArray[np.float64], began: float, ended: float) -> Waits:
    """Of what was asked in the meantime or right after it, also of what was not answered by then."""
    is_in = (samples[:, 0] + samples[:, 1] >= began) & (samples[:, 0] <= ended + AFTER_SECONDS)
    times = samples[is_in, 1] * 1e3
    if not len(times):
        raise RuntimeError("the client that asks /healthz has ended")
    p50, p99, most = (float(np.quantile(times, share)) for share in (0.5, 0.99, 1.0))
    return Waits(len(times), p50, p99, most, ended - began)


def _memory_mb(controller: Controller, field: str) -> float:
    assert controller.process is not None
    status = Path(f"/proc/{controller.process.pid}/status").read_text()
    return int(status.partition(f"{field}:")[2].split()[0]) / 1024
