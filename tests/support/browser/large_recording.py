"""A recording of any size, as a controller with many jobs tells: reports, plans, jobs that go, problems and hosts."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

JOBS, HOSTS = 300, 20
PLAN_EVERY, CHANGE_EVERY = 200, 50
"""Events from one plan, or one other change, to the next."""
EVENTS_PER_SECOND = 100


def write_events(file: Path, size: int) -> float:
    """Write at least ``size`` bytes of events. Returns the time of the last one in seconds."""
    written, time = 0, 0.0
    with file.open("w") as lines:
        for number, (kind, data) in enumerate(_events(), 1):
            time = number / EVENTS_PER_SECOND
            line = json.dumps({"id": number, "event": kind, "time": time, "data": data})
            written += lines.write(line + "\n")
            if written >= size:
                return time
    raise AssertionError("there is always another event")


def _events() -> Iterator[tuple[str, Mapping[str, Any]]]:
    for host in range(HOSTS):
        yield "host", {"name": f"h{host}", "state": "alive", "marks_acknowledgements": True}
    number = 0
    while True:
        number += 1
        if number % PLAN_EVERY == 0:
            yield "plan", _plan(number // PLAN_EVERY)
        elif number % CHANGE_EVERY == 0:
            yield _change(number // CHANGE_EVERY)
        else:
            yield "job", _report(number)


def _plan(epoch: int) -> Mapping[str, Any]:
    jobs = [f"job-{(epoch * 7 + i) % JOBS}" for i in range(JOBS)]
    classes = {job: min(i * 8 // JOBS, 7) for i, job in enumerate(jobs)}
    return {
        "epoch": epoch, "policy": "jpas", "order": [[job] for job in jobs], "classes": classes, "moves": 7,
        "objective_seconds": 100.0 + epoch % 9, "lower_bound_seconds": 90.0,
    }  # fmt: skip


def _change(turn: int) -> tuple[str, Mapping[str, Any]]:
    host = f"h{turn % HOSTS}"
    return (
        ("host", {"name": host, "state": "silent", "marks_acknowledgements": False}),
        ("problem", {"problem": f"host {host} is silent: turn {turn}", "state": "appeared"}),
        ("host", {"name": host, "state": ("alive", "removed")[turn % 2], "marks_acknowledgements": True}),
        ("problem", {"problem": f"host {host} is silent: turn {turn}", "state": "gone"}),
        ("job", {"id": f"job-{turn % JOBS}", "state": "removed", "progress": None}),
        ("stage", {"id": f"rung-{turn % 5}", "state": ("running", "ended")[turn % 2], "jobs": [f"job-{turn % JOBS}"]}),
        ("switch", {"dpid": f"{turn % 3:016x}", "connected": True, "ready": turn % 4 > 0, "reason": None}),
        ("settings", {"policy": "jpas", "pause": turn % 16 < 8, "period_seconds": 1.0}),
        ("audit", {"who": "ann", "action": "PATCH /v1/settings", "path": None, "outcome": "done", "detail": None}),
    )[turn % 9]


def _report(number: int) -> Mapping[str, Any]:
    turn, job = divmod(number, JOBS)
    metric = {"name": "accuracy", "direction": "max"}
    description = {"arrival": 1.0 + job, "hosts": [f"h{job % HOSTS}"], "servers": [], "metric": metric, "stage": None}
    progress = {"iterations_done": turn % 4000, "last_metric": (turn % 4000) / 4000, "iterations_total": 4000}
    return {
        "id": f"job-{job}", "state": ("running", "waiting")[turn % 40 == 0], "progress": progress,
        "service_class": (job + turn) % 8, "targets": {"t90": {"metric": 0.9, "iteration": 3600}},
        "description": description if turn % 50 == 0 else None,
    }  # fmt: skip
