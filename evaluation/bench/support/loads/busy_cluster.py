"""A controller with many jobs, which report all the time."""

from __future__ import annotations

import itertools
import threading
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import requests

from evaluation.bench.support.api_client import Controller

REPORT_SECONDS = 5.0
"""Each job reports once in so many seconds, each host at its own moment."""
_DPID = "0x1"


@contextmanager
def busy_cluster(
    folder: Path, *, hosts: int, places: Sequence[tuple[int, int]], trials: int | None = None, **settings: Any
) -> Iterator[Controller]:
    """A controller with hosts ``h0``, ``h1``, ... and jobs ``j0``, ``j1``, ...

    Each host is plugged into a port of one switch. ``places`` has the two hosts of each job by their numbers: the first
    one sends to the second one and reports. ``trials`` jobs in turn are those of a stage; None: there are no stages.
    Raises AssertionError where the controller refuses something.
    """
    folder.mkdir()
    entries = [
        {"name": f"h{n}", "address": f"10.0.{n // 250}.{n % 250 + 1}", "switch": _DPID, "port": n + 1}
        for n in range(hosts)
    ]
    controller = Controller(folder, token=False, hosts=entries, period_seconds=5.0, **settings)
    with ExitStack() as stack:
        stack.callback(controller.stop)
        controller.start()
        jobs: dict[int, list[str]] = defaultdict(list)
        for number, (host, other) in enumerate(places):
            jobs[host].append(f"j{number}")
            register(controller, f"j{number}", 10_000 + number, (f"h{host}", f"h{other}"), _stage(number, trials))
        ended = threading.Event()
        thread = threading.Thread(target=_report, args=(controller, jobs, ended))
        thread.start()
        stack.callback(thread.join)
        stack.callback(ended.set)
        yield controller


def register(controller: Controller, job: str, port: int, ends: tuple[str, str], stage: str | None = None) -> None:
    """Register a job whose first host sends from ``port`` to its second one. Raises AssertionError if it is refused."""
    host, other = ends
    body = {
        "tasks": [{"role": "ps", "host": host, "port": port}, {"role": "worker", "host": other}],
        "demand": [{"src": host, "dst": other, "bytes": 1e6}],
        "iterations": 1000,
        "stage": stage,
    }
    answer = controller.call("PUT", f"/v1/jobs/{job}", body)
    assert answer.ok, answer.text


def _stage(number: int, trials: int | None) -> str | None:
    return None if trials is None else f"rung-{number // trials}"


def _report(controller: Controller, jobs: Mapping[int, Sequence[str]], ended: threading.Event) -> None:
    with requests.Session() as session:
        session.trust_env = False
        for seq in itertools.count(1):
            for host, names in jobs.items():
                if ended.wait(REPORT_SECONDS / len(jobs)):
                    return
                point = {"iteration": float(seq), "time": time.time(), "metric": seq / (seq + 10.0)}
                parts = [{"job": name, "points": [point]} for name in names]
                body = {"session": "bench", "seq": seq, "sent_at": time.time(), "jobs": parts}
                session.post(f"{controller.url}/v1/hosts/h{host}/reports", json=body, timeout=60)
