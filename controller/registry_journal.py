"""The registry's state as records of the journal, and back."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from controller.host_record import HostRecord
from controller.job_record import JobRecord
from controller.model import Progress
from controller.store import Batch, Contents, Point, Store, put


@dataclass
class State:
    """All that the registry knows. ``left_out`` are jobs of the journal whose hosts (given) are gone."""

    jobs: dict[str, JobRecord] = field(default_factory=dict)
    stages: set[str] = field(default_factory=set)
    agents: dict[str, HostRecord] = field(default_factory=dict)
    left_out: dict[str, list[str]] = field(default_factory=dict)


def load(contents: Contents, known_hosts: Collection[str], now: float) -> State:
    """The state that a journal holds; every host gets a fresh lease."""
    state = State(stages=set(contents.records.get("stage", {})))
    for name, record in contents.records.get("host", {}).items():
        if name in known_hosts:
            state.agents[name] = HostRecord.from_record(record, now)
    tallies = contents.records.get("tally", {})
    for job_id, record in contents.records.get("job", {}).items():
        job = JobRecord.from_record(job_id, record)
        if gone := sorted(job.hosts - set(known_hosts)):
            state.left_out[job_id] = gone
            continue
        for iteration, time, metric in contents.points.get(job_id, ()):
            job.merge_point(Progress(iteration, time, metric))
        if job_id in tallies:
            job.add_tally(tallies[job_id])
        state.jobs[job_id] = job
    return state


def dump(state: State, batch: Batch) -> None:
    """Add the whole state to a batch."""
    for job in state.jobs.values():
        put(batch, "job", job.id, job.to_record())
        put(batch, "tally", job.id, job.to_tally())
        batch.points[job.id] = as_points(job.history.points())
    for stage in state.stages:
        put(batch, "stage", stage, {})
    for name, agent in state.agents.items():
        put(batch, "host", name, agent.to_record())


def save_job(store: Store, job: JobRecord) -> None:
    """Note a job without its points."""
    store.put("job", job.id, job.to_record())
    store.put("tally", job.id, job.to_tally())


def save_tally(store: Store, job: JobRecord) -> None:
    """Note what a report changed, beside the points."""
    store.put("tally", job.id, job.to_tally())


def remove_job(store: Store, job_id: str) -> None:
    """Note that a job is gone."""
    store.remove("job", job_id)
    store.remove("tally", job_id)
    store.replace_points(job_id, ())


def as_points(points: Iterable[Progress]) -> list[Point]:
    """Points as the journal has them."""
    return [(point.iteration, point.time, point.metric) for point in points]
