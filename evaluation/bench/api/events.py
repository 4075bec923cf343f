"""``GET /v1/events`` with many clients: how soon all have an event, what memory they cost, and whom they hold up.

A real controller without a switch. First 1,000 clients that read and 100 that do not follow the events while 100 jobs
report; each second a setting is changed, and the time until every reader has that event is looked at. One client in the
place of the 1,000 is measured beside it. Then 1,000 jobs report, each once in 5 s, in turn without clients and with
five, and the processor time of the controller is compared. There the policy is FIFO: what JPAS spends on its fits
differs from one half minute to the next by more than the clients cost.

The aims, which were set before the first measurement:

- every reader has every event: none is lost, and no gap is told to a client that reads;
- 95 of 100 events are with all 1,000 readers within 1 s of the request that causes them;
- a client costs less than 100 kB, and while events flow the memory grows by less than 32 MB: the ring's 16 MB, and what
  is put together for those who see the same;
- ``/healthz`` waits less than 100 ms, in 99 of 100 cases;
- five clients cost less than 2 % of a core at 1,000 jobs.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from evaluation.bench.figures import Bench, Figure
from evaluation.bench.support.api_client import Controller
from evaluation.bench.support.loads.busy_cluster import busy_cluster
from simulator.reports.statistics import mean_interval

READERS = 1000
STALLED = 100
FEW_JOBS, MANY_JOBS = 100, 1000
JOBS_A_HOST = 50
CLIENTS = 5
MARKS = 60
MARK_SECONDS = 1.0
LAST_SECONDS = 5.0
"""Wait so long for the last event to come to all."""
ROUNDS = 10
ROUND_SECONDS = 20.0
SETTLE_SECONDS = 10.0
CONNECT_SECONDS = 120.0
LIMIT_ALL_MS = 1000.0
LIMIT_CLIENT_KB = 100.0
LIMIT_GROWTH_MB = 32.0
LIMIT_HEALTH_MS = 100.0
LIMIT_SHARE = 2.0
_NONE = (float("nan"), float("nan"))


@dataclass(frozen=True, slots=True)
class Spread:
    """What became of the marks: the milliseconds until the last reader had each, and what was missed."""

    all_ms: tuple[float, ...]
    missing: int
    gaps: int
    ended: int
    received: int


def run(folder: Path, _data: Path | None) -> Bench:
    """Measure. Raises RuntimeError where the controller does not do what it is asked."""
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        try:
            many, one, memory, health_ms = _measure_clients(Path(scratch))
            shares = _measure_share(Path(scratch))
        except AssertionError as error:  # what the processes and the waiting raise
            raise RuntimeError(str(error)) from error
    before, connected, most = memory
    extra = [with_clients - without for without, with_clients in shares]
    return Bench(
        figures=(
            Figure(
                f"Events that one of {READERS} readers missed, beside {STALLED} that do not read",
                metric="events_missing",
                unit="",
                value=many.missing + many.gaps + many.ended,
                baseline=MARKS * READERS,
                baseline_name="events that were to come",
                ci95=_NONE,
                limit=1,
            ),
            Figure(
                f"From a request to its event at all {READERS} readers, 95th percentile",
                metric="events_all_p95",
                unit="ms",
                value=float(np.quantile(many.all_ms, 0.95)),
                baseline=float(np.quantile(one.all_ms, 0.95)),
                baseline_name="with one client",
                ci95=_NONE,
                limit=LIMIT_ALL_MS,
            ),
            Figure(
                "Memory of the controller for a client",
                metric="events_client_memory",
                unit="kB",
                value=(connected - before) * 1024 / (READERS + STALLED),
                baseline=before * 1024,
                baseline_name="the controller without clients",
                ci95=_NONE,
                limit=LIMIT_CLIENT_KB,
            ),
            Figure(
                "Growth of the memory while events flow to clients of which some do not read",
                metric="events_growth",
                unit="MB",
                value=most - connected,
                baseline=connected,
                baseline_name="the memory when all had connected",
                ci95=_NONE,
                limit=LIMIT_GROWTH_MB,
            ),
            Figure(
                "The wait for /healthz meanwhile, 99th percentile",
                metric="events_healthz_p99",
                unit="ms",
                value=health_ms["p99"],
                baseline=health_ms["quiet_p99"],
                baseline_name="without clients",
                ci95=_NONE,
                limit=LIMIT_HEALTH_MS,
            ),
            Figure(
                f"Share of a core for {CLIENTS} clients at {MANY_JOBS} jobs, mean",
                metric="events_share",
                unit="%",
                value=fmean(extra),
                baseline=fmean(without for without, _ in shares),
                baseline_name="the controller without clients",
                ci95=mean_interval([1 - more / without for (without, _), more in zip(shares, extra, strict=True)]),
                limit=LIMIT_SHARE,
            ),
        ),
        details={
            "all_ms": _digest(many.all_ms),
            "one_client_ms": _digest(one.all_ms),
            "missing": many.missing,
            "gaps": many.gaps,
            "ended": many.ended,
            "received_mb": many.received / 2**20,
            "memory_mb": {"before": before, "connected": connected, "most": most},
            "healthz_ms": health_ms,
            "shares": [{"without": without, "with": with_clients} for without, with_clients in shares],
        },
    )


def _digest(values: tuple[float, ...]) -> dict[str, float]:
    return {name: float(np.quantile(values, share)) for name, share in (("p50", 0.5), ("p95", 0.95), ("max", 1.0))}


def _measure_clients(scratch: Path) -> tuple[Spread, Spread, tuple[float, float, float], dict[str, float]]:
    """Returns the spread with all clients and with one, the memory in MB (before, connected, most), and the waits."""
    with _running(scratch / "clients", FEW_JOBS, "jpas") as controller, _watched(controller.port, scratch / "health"):
        time.sleep(SETTLE_SECONDS)
        quiet = (time.monotonic() - SETTLE_SECONDS / 2, time.monotonic())
        with _following(controller.port, 1, 0, scratch / "one") as found_by_one:
            marks = _mark(controller)
        one = _spread(found_by_one(), marks, 1)
        before = _memory_mb(controller)
        began = time.monotonic()
        with _following(controller.port, READERS, STALLED, scratch / "many") as found_by_many:
            connected = _memory_mb(controller)
            sys.stderr.write(f"bench events: {READERS + STALLED} clients, {connected:.0f} MB ({before:.0f} before)\n")
            sizes: list[float] = []
            marks = _mark(controller, sizes)
            busy = (began, time.monotonic())
        many = _spread(found_by_many(), marks, READERS)
    samples = np.frombuffer((scratch / "health").read_bytes()).reshape(-1, 2)

    def p99(span: tuple[float, float]) -> float:
        is_in = (samples[:, 0] >= span[0]) & (samples[:, 0] <= span[1])
        return float(np.quantile(samples[is_in, 1], 0.99) * 1e3)

    return many, one, (before, connected, max(sizes)), {"p99": p99(busy), "quiet_p99": p99(quiet)}


def _mark(controller: Controller, sizes: list[float] | None = None) -> list[float]:
    """Change a setting each second. Returns when each request was sent, in the order of the events ``settings``."""
    marks = []
    for number in range(MARKS):
        marks.append(time.monotonic())
        answer = controller.call("PATCH", "/v1/settings", {"period_seconds": 5.0 + (number + 1) % 2})
        assert answer.ok, answer.text
        if sizes is not None:
            sizes.append(_memory_mb(controller))
        time.sleep(max(0.0, marks[-1] + MARK_SECONDS - time.monotonic()))
    time.sleep(LAST_SECONDS)
    return marks


def _spread(found: dict[str, Any], marks: list[float], readers: int) -> Spread:
    """Returns what became of the marks. Each is an event of its own, because a second lies between two."""
    got = sorted((int(number), count, last) for number, (count, last) in found["got"].items())
    missing = MARKS * readers - int(sum(count for _, count, _ in got))
    times = tuple(1e3 * (last - sent) for sent, (_, _, last) in zip(marks, got, strict=False))
    return Spread(times, missing, found["gaps"], found["over"], found["bytes"])


def _measure_share(scratch: Path) -> list[tuple[float, float]]:
    """Returns the percent of a core that the controller takes without and with clients, of each round."""
    shares = []
    with _running(scratch / "share", MANY_JOBS, "fifo") as controller:
        time.sleep(2 * SETTLE_SECONDS)
        for number in range(ROUNDS):
            without = _share(controller)
            with _following(controller.port, CLIENTS, 0, scratch / f"few-{number}"):
                time.sleep(1.0)
                with_clients = _share(controller)
            shares.append((without, with_clients))
            sys.stderr.write(f"bench events: {without:.2f} % without, {with_clients:.2f} % with {CLIENTS} clients\n")
    return shares


def _share(controller: Controller) -> float:
    began, used = time.monotonic(), _seconds(controller)
    time.sleep(ROUND_SECONDS)
    return 100.0 * (_seconds(controller) - used) / (time.monotonic() - began)


def _seconds(controller: Controller) -> float:
    """Returns the processor time of the controller."""
    assert controller.process is not None
    fields = Path(f"/proc/{controller.process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _memory_mb(controller: Controller) -> float:
    assert controller.process is not None
    status = Path(f"/proc/{controller.process.pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) / 1024


@contextmanager
def _running(folder: Path, jobs: int, policy: str) -> Iterator[Controller]:
    """A controller with so many jobs that report."""
    count = max(jobs // JOBS_A_HOST, 2)
    places = [(number % count, (number + 1) % count) for number in range(jobs)]
    with busy_cluster(folder, hosts=count, places=places, policy=policy, enforce=["host"]) as controller:
        yield controller


@contextmanager
def _following(port: int, readers: int, stalled: int, file: Path) -> Iterator[Any]:
    """Clients in a process of their own. What is yielded returns afterwards what they have found."""
    command = [sys.executable, "-m", "evaluation.bench.support.loads.event_clients"]
    arguments = [str(port), str(readers), str(stalled), str(file)]
    clients = subprocess.Popen([*command, *arguments], stdout=subprocess.PIPE, text=True)
    assert clients.stdout is not None
    try:
        assert clients.stdout.readline() == "connected\n", "the clients cannot connect"
        yield lambda: json.loads(file.read_text())
    finally:
        clients.terminate()
        clients.wait(CONNECT_SECONDS)
        clients.stdout.close()


@contextmanager
def _watched(port: int, file: Path) -> Iterator[None]:
    """Ask ``/healthz`` all the time, in a process of its own, and write down how long each answer took."""
    watch = subprocess.Popen([sys.executable, "-m", "evaluation.bench.api.health_watch", str(port), str(file)])
    try:
        yield
    finally:
        watch.terminate()
        watch.wait(30)
