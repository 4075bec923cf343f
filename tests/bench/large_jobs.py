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
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.bench.figures import Bench, Figure
from tests.unit.api_client import Controller

HOSTS = 4096
TASKS = 4096
DEMANDS = 65_536
IDLE_SECONDS = 3.0
SETTLE_SECONDS = 1.0
IN_FORCE_SECONDS = 120.0
LIMIT_MS = 100.0
_DPID = 1


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
    with tempfile.TemporaryDirectory(dir=folder) as scratch, _controller(Path(scratch)) as controller:
        watch = _Watch(controller.port, Path(scratch) / "samples")
        time.sleep(IDLE_SECONDS)
        moments = [("nothing", watch.since(), time.monotonic())]
        for name, act in _acts(controller):
            time.sleep(SETTLE_SECONDS)
            began = time.monotonic()
            act()
            moments.append((name, began, time.monotonic()))
            sys.stderr.write(f"bench large-jobs: {name}: {time.monotonic() - began:.2f} s\n")
        peak = _peak_memory_mb(controller)
        samples = watch.end()
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
    return Bench(figures, details={"idle": idle, "waits": waits, "peak_memory_mb": peak})


def _acts(controller: Controller) -> Iterator[tuple[str, Callable[[], None]]]:
    """Each with a name; what it asks has been done, and planned with, when it returns."""
    ports = {"tasks": [{"role": "peer", "host": f"h{n}", "port": 5000} for n in range(TASKS)]}
    pairs = [(k % 257, 1 + (k % 257 + k // 257) % 256) for k in range(DEMANDS)]
    demand = [
        {"src": f"h{src}", "dst": f"h{dst if dst != src else 0}", "bytes": 1e6 + k}
        for k, (src, dst) in enumerate(pairs)
    ]
    matrix = {"tasks": [{"role": "peer", "host": f"h{n}"} for n in range(258)], "demand": demand}

    def put(job: str, spec: dict[str, Any]) -> None:
        _ask(controller, "PUT", f"/v1/jobs/{job}", spec)
        _wait_for_plan(controller, job)

    yield f"a job of {TASKS} tasks", lambda: put("ports", ports)
    yield "the same job in another class", lambda: put("before", {"tasks": [], "arrival": 0.0})
    yield f"a job of {DEMANDS} demands", lambda: put("matrix", matrix)
    yield "the same job once more", lambda: put("matrix", matrix)
    yield "it with another weight", lambda: put("matrix", matrix | {"weight": 2.0})
    yield "reading it", lambda: _ask(controller, "GET", "/v1/jobs/matrix")
    yield "reading all jobs", lambda: _ask(controller, "GET", "/v1/jobs")
    yield "reading the plan", lambda: _ask(controller, "GET", "/v1/plan")
    yield "another policy's plan", lambda: _ask(controller, "GET", "/v1/plan?policy=sincronia")
    yield (
        "a wrong job",
        lambda: _ask(controller, "PUT", "/v1/jobs/wrong", {"demand": [{"src": 1}] * 100_000}, status=422),
    )
    yield "4096 jobs", lambda: _many(controller)
    names = [f"j{n}" for n in range(4096)]
    tell = _Teller(controller)
    yield "a stage of 4096 jobs", lambda: _ask(controller, "PUT", "/v1/stages/s", {"jobs": names})
    yield "ending it", lambda: _ask(controller, "DELETE", "/v1/stages/s")
    yield (
        "a report of 4096 jobs",
        lambda: tell(jobs=[{"job": j, "points": [{"iteration": 1, "time": 1, "metric": 0.1}]} for j in names]),
    )
    yield (
        "a report of 10000 points",
        lambda: tell(
            jobs=[{"job": "j1", "points": [{"iteration": k, "time": k, "metric": 0.5} for k in range(10_000)]}]
        ),
    )
    links = [{"peer": f"h{1 + k % 4000}", "port": 1 + k, "peer_port": 7} for k in range(4096)]
    now = time.time()
    yield (
        "a report of 16384 links",
        lambda: tell(traffic=[{"job": f"j{k}", "as_of": now, "links": links} for k in range(4)]),
    )
    peers = [{"peer": f"h{k}", "sent": 1e6, "received": 1e6} for k in range(1, 4096)]
    yield (
        "a report of 60000 peers",
        lambda: tell(traffic=[{"job": f"j{k}", "as_of": now, "peers": peers} for k in range(15)]),
    )
    yield (
        "4096 flows",
        lambda: tell(
            flows=[
                {"job": "j9", "flow": {"src": "h0", "dst": f"h{1 + k % 4000}", "dst_port": 1 + k}} for k in range(4096)
            ]
        ),
    )
    yield "reading 4098 jobs", lambda: _ask(controller, "GET", "/v1/jobs")
    yield "the plan of 4098 jobs", lambda: _ask(controller, "GET", "/v1/plan")
    yield "metrics", lambda: _ask(controller, "GET", "/metrics")
    yield "status", lambda: _ask(controller, "GET", "/v1/status")
    yield "a host's plan", lambda: _ask(controller, "GET", "/v1/hosts/h5/plan")
    yield "explain", lambda: _ask(controller, "GET", "/v1/jobs/j4000/explain")
    yield "removing the large ones", lambda: [_ask(controller, "DELETE", f"/v1/jobs/{j}") for j in ("matrix", "ports")]


def _many(controller: Controller) -> None:
    for n in range(4096):
        tasks = [{"role": "ps", "host": "h0", "port": 10_000 + n}, {"role": "worker", "host": f"h{1 + n % 4000}"}]
        body = {"tasks": tasks, "demand": [{"src": "h0", "dst": f"h{1 + n % 4000}", "bytes": 1e6}]}
        _ask(controller, "PUT", f"/v1/jobs/j{n}", body)
    _wait_for_plan(controller, "j4095")


class _Teller:
    def __init__(self, controller: Controller) -> None:
        self._controller = controller
        self._seq = 0

    def __call__(self, **parts: Any) -> None:
        self._seq += 1
        body = {"session": "s", "seq": self._seq, "sent_at": time.time()} | parts
        _ask(self._controller, "POST", "/v1/hosts/h0/reports", body)
        time.sleep(1.5)


def _ask(controller: Controller, method: str, path: str, body: Any = None, status: int | None = None) -> Any:
    answer = controller.session.request(method, controller.url + path, json=body, timeout=IN_FORCE_SECONDS)
    if not answer.ok if status is None else answer.status_code != status:
        raise RuntimeError(f"{method} {path}: {answer.status_code} {answer.text[:300]}")
    return answer


def _wait_for_plan(controller: Controller, job: str) -> None:
    deadline = time.monotonic() + IN_FORCE_SECONDS
    while time.monotonic() < deadline:
        answer = controller.session.get(f"{controller.url}/v1/jobs/{job}/explain", timeout=IN_FORCE_SECONDS)
        if answer.ok:
            return
        time.sleep(0.05)
    raise RuntimeError(f"job {job} is in no plan after {IN_FORCE_SECONDS:g} s: {controller.log()[-500:]}")


@contextmanager
def _controller(folder: Path) -> Iterator[Controller]:
    hosts = [
        {"name": f"h{n}", "address": f"10.0.{n // 250}.{n % 250 + 1}", "switch": f"{_DPID:#x}", "port": n + 1}
        for n in range(HOSTS)
    ]
    controller = Controller(
        folder,
        token=False,
        hosts=hosts,
        queues="existing",
        probe=False,
        table_budget=100_000,
        journal=str(folder / "journal.db"),
    )
    switch: subprocess.Popen[bytes] | None = None
    try:
        controller.start()
        port = str(controller.settings["openflow"]["port"])
        switch = subprocess.Popen([sys.executable, "-m", "tests.bench.bare_switch", port, str(_DPID)])
        while not controller.session.get(controller.url + "/readyz", timeout=10).ok:
            time.sleep(0.05)
        yield controller
    finally:
        controller.stop()
        if switch is not None:
            switch.kill()
            switch.wait()


class _Watch:
    def __init__(self, port: int, file: Path) -> None:
        self._file = file
        self._began = time.monotonic()
        self._process = subprocess.Popen([sys.executable, "-m", "tests.bench.health_watch", str(port), str(file)])

    def since(self) -> float:
        return self._began

    def end(self) -> NDArray[np.float64]:
        self._process.terminate()
        self._process.wait(30)
        return np.frombuffer(self._file.read_bytes()).reshape(-1, 2)


def _waits(samples: NDArray[np.float64], began: float, ended: float) -> Waits:
    """Of what was asked in the meantime, also of what was not answered by its end."""
    times = samples[(samples[:, 0] + samples[:, 1] >= began) & (samples[:, 0] <= ended), 1] * 1e3
    return Waits(len(times), *(float(np.quantile(times, q)) for q in (0.5, 0.99, 1.0)), ended - began)


def _peak_memory_mb(controller: Controller) -> float:
    assert controller.process is not None
    status = Path(f"/proc/{controller.process.pid}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


if __name__ == "__main__":
    b = run(Path(sys.argv[1]), None)

    for k, w in (("idle", b.details["idle"]), *b.details["waits"].items()):
        print(f"{k:35s} n={w.count:5d} p50={w.p50_ms:7.2f} p99={w.p99_ms:8.2f} max={w.max_ms:9.2f}  {w.seconds:6.2f} s")
    print(b.details["peak_memory_mb"])
