"""Recordings of simulated clusters: the events that a controller would have told while the jobs ran."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from controller.model import Role
from simulator.jobs import SimJob, Transfer, Workload
from simulator.network import PAYLOAD_SHARE
from simulator.outcome import JobOutcome, Outcome

EPOCH = 1_795_000_000.0
"""The recording's time 0 in seconds since the Unix epoch."""


def recorded(
    workload: Workload, outcome: Outcome, *, seconds: float = 1.0, period: float = 1.0, classes: int = 7
) -> str:
    """Returns a recording of a simulation, with an event of each job each ``seconds``. The file has its own clock."""
    documents = [(time, event, data) for time, event, data in _events(workload, outcome, seconds, period, classes)]
    lines = sorted(documents, key=lambda document: document[0])
    return "".join(
        json.dumps({"id": number, "event": event, "time": round(time, 3), "data": data}) + "\n"
        for number, (time, event, data) in enumerate(lines, start=1)
    )


def _events(
    workload: Workload, outcome: Outcome, seconds: float, period: float, classes: int
) -> Iterator[tuple[float, str, dict[str, Any]]]:
    for host in workload.hosts.values():
        rates = {"egress_bps": host.egress_bps / PAYLOAD_SHARE, "ingress_bps": host.ingress_bps / PAYLOAD_SHARE}
        yield 0.0, "host", {"name": host.name, "state": "alive", "marks_acknowledgements": False} | rates
    settings = {"policy": outcome.policy, "policy_options": {}, "period_seconds": period, "pause": False}
    more = {"settings_sha256": None, "classes": classes, "enforce": ["switch", "host"]}
    yield 0.0, "settings", settings | more
    plan = {"epoch": 1, "policy": outcome.policy, "order": [], "classes": {}, "moves": 0, "lower_bound_seconds": 1.0}
    yield 0.0, "plan", plan
    for job in workload.jobs:
        yield from _of_job(job, outcome.jobs[job.id], seconds)


def _of_job(job: SimJob, ran: JobOutcome, seconds: float) -> Iterator[tuple[float, str, dict[str, Any]]]:
    described = {"description": description(job)}
    yield ran.arrival, "job", job_data(job, "waiting", 0, None) | described
    ends = ran.iteration_ends
    first = True
    for time in np.arange(np.ceil(ran.arrival / seconds), np.floor(ran.end / seconds) + 1) * seconds + 0.1:
        done = int(np.searchsorted(ends, time, side="right"))
        if done and time < ran.end:
            yield float(time), "job", job_data(job, "running", done, float(time)) | (described if first else {})
            first = False
    late = float(np.ceil(ran.end / seconds) * seconds + 0.1)
    yield late, "job", job_data(job, "ended", job.iterations, late) | described


def job_data(job: SimJob, state: str, done: int, time: float | None) -> dict[str, Any]:
    """Returns the data of an event ``job``, without a description."""
    progress = {
        "iterations_done": float(done),
        "iterations_total": float(job.iterations),
        "last_metric": job.curve[done - 1] if done and job.curve else None,
        "last_report": None if time is None else EPOCH + time,
        "diverged": False,
    }
    return {"id": job.id, "state": state, "progress": progress, "service_class": 0, "targets": {}}


def description(job: SimJob) -> dict[str, Any]:
    """Returns what events say of a job."""
    sizes: dict[tuple[str, str], float] = {}
    for lane in job.lanes:
        for step in lane:
            if isinstance(step, Transfer):
                for flow in step.flows:
                    sizes[flow.src, flow.dst] = sizes.get((flow.src, flow.dst), 0.0) + flow.bytes
    return {
        "arrival": EPOCH + job.arrival,
        "user": None,
        "stage": job.stage,
        "family": None,
        "weight": job.weight,
        "metric": {"name": job.metric.name, "direction": job.metric.direction},
        "target": job.target,
        "compute_seconds": 0.0,
        "hosts": sorted({host for pair in sizes for host in pair}),
        "servers": sorted({task.host for task in job.tasks if task.role is Role.PS}),
        "demand": [{"src": src, "dst": dst, "bytes": size} for (src, dst), size in sizes.items()],
    }


def documents(text: str) -> list[dict[str, Any]]:
    """Returns the events of a recording."""
    return [json.loads(line) for line in text.splitlines()]


def as_text(events: list[Mapping[str, Any]] | list[dict[str, Any]]) -> str:
    """Returns events as a recording."""
    return "".join(json.dumps(event) + "\n" for event in events)
