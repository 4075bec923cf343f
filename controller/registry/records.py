"""The registry's state as records of the journal, and back."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, fields
from typing import TypeVar

from pydantic import ValidationError

from controller.families.families import Families
from controller.families.names import FamilyKey, Owner
from controller.families.run import EarlierRun, RunKey
from controller.journal.bodies import (
    Body,
    DscpBody,
    HostBody,
    JobBody,
    PartBody,
    RunBody,
    SeenBody,
    StageBody,
    TallyBody,
    TombstoneBody,
)
from controller.journal.file import POINT
from controller.journal.store import Batch, Contents, Point, Store, StoreError, put
from controller.model import Progress
from controller.pieces import Steps
from controller.registry import dscps
from controller.registry.agents.record import HostRecord
from controller.registry.job.history import MAX_POINTS
from controller.registry.job.job_bodies import add_seen, add_tally, job_of, job_text, seen_of, tally_text
from controller.registry.job.part_bodies import part_text
from controller.registry.job.record import JobRecord

AnyBody = TypeVar("AnyBody", bound=Body)
MAX_ROWS = 4 * MAX_POINTS
"""Write a job's points anew, thinned, when the journal holds more rows of it than this."""
PARTS_A_STEP = 250
_WRONG_CHECKSUM = "its checksum is wrong, so it is not what the controller wrote"


@dataclass
class State:
    """All jobs, stages and hosts.

    ``stages`` are those that an operator put. ``waiting_for_host`` are jobs on hosts that the settings do not have now;
    they wait in the journal. ``tombstones`` are of jobs that were removed, oldest first. ``families`` are the runs of
    jobs that have ended. ``freed_dscps`` says of DSCPs that jobs had for their life when they were given back.
    """

    jobs: dict[str, JobRecord] = field(default_factory=dict)
    waiting_for_host: dict[str, JobRecord] = field(default_factory=dict)
    stages: set[str] = field(default_factory=set)
    agents: dict[str, HostRecord] = field(default_factory=dict)
    tombstones: OrderedDict[str, TombstoneBody] = field(default_factory=OrderedDict)
    families: Families = field(default_factory=Families)
    freed_dscps: dict[int, float] = field(default_factory=dict)


def load(contents: Contents, known_hosts: Collection[str], now: float) -> State:
    """Returns the state that a journal holds. Every lease runs anew. Raises StoreError for a damaged record."""
    state, known = State(stages=set(_bodies(contents, "stage", StageBody))), set(known_hosts)
    for name, host in _bodies(contents, "host", HostBody).items():
        state.agents[name] = HostRecord.from_body(host, now)
    tallies, seen = _bodies(contents, "tally", TallyBody), _bodies(contents, "seen", SeenBody)
    parts: dict[str, list[PartBody]] = {}
    for part_id, part in _bodies(contents, "part", PartBody).items():
        parts.setdefault(part_id.partition("/")[0], []).append(part)
    for job_id, body in _bodies(contents, "job", JobBody).items():
        if body.spec is None and not any(part.over != "removed" for part in parts.get(job_id, ())):
            raise _damaged(contents, f"its record of job {job_id!r} is damaged: it has neither a spec nor a part")
        job = job_of(job_id, body, parts.get(job_id, ()))
        written = contents.points.get(job_id, ())
        job.rows = len(written)
        for point in written:
            job.merge_point(_progress(contents, job_id, point))
        if (POINT, job_id) in contents.damaged:
            raise _damaged(contents, f"a point of job {job_id!r} is damaged: {_WRONG_CHECKSUM}")
        if job_id in tallies:
            add_tally(job, tallies[job_id])
        if job_id in seen:
            add_seen(job, seen[job_id])
        job.leave_out_parts(known)
        (state.jobs if job.hosts <= known else state.waiting_for_host)[job_id] = job
    tombstones = sorted(_bodies(contents, "grave", TombstoneBody).items(), key=lambda item: item[1].gone_at)
    state.tombstones.update(tombstones)
    for run in _bodies(contents, "run", RunBody).values():
        state.families.add(*_run_of(run))
    for freed in _bodies(contents, dscps.KIND, DscpBody).values():
        state.freed_dscps[freed.dscp] = freed.freed_at
    return state


def dump(state: State, batch: Batch) -> Steps[None]:
    """Add the whole state to a batch; yields where others may go on.

    A point that is merged meanwhile may be in the batch and in the notes after it. Reading it twice changes nothing.
    """
    for job in (*state.jobs.values(), *state.waiting_for_host.values()):
        yield
        if job is not state.jobs.get(job.id) and job is not state.waiting_for_host.get(job.id):
            continue  # it was removed meanwhile
        put(batch, "job", job.id, job_text(job))
        put(batch, "tally", job.id, tally_text(job))
        if (seen := seen_of(job)) is not None:
            put(batch, "seen", job.id, seen.model_dump_json())
        yield from _dump_parts(job, batch)
        batch.points[job.id] = as_points(job.history.points())
    yield
    for stage in state.stages:
        put(batch, "stage", stage, StageBody().model_dump_json())
    for name, agent in state.agents.items():
        put(batch, "host", name, agent.to_body().model_dump_json())
    yield
    for job_id, tombstone in state.tombstones.items():
        put(batch, "grave", job_id, tombstone.model_dump_json())
    dscps.dump_freed(state.freed_dscps, batch)
    for family in state.families:
        yield
        for run in state.families.runs(family):
            put(batch, "run", _run_id(run.key), _run_text(family, run))


def _dump_parts(job: JobRecord, batch: Batch) -> Steps[None]:
    if job.parts is None:
        return
    for number, part in enumerate(list(job.parts.remembered.values())):
        put(batch, "part", part_id(job.id, part.host), part_text(part, job.parts.lists))
        if number % PARTS_A_STEP == PARTS_A_STEP - 1:
            yield


def save_job(store: Store, job: JobRecord) -> None:
    """Note a job without its points and its parts."""
    save_body(store, job)
    save_tally(store, job)
    save_seen(store, job)


def save_part(store: Store, job: JobRecord, host: str) -> None:
    """Note the part that a host has in a job."""
    if job.parts is not None and (part := job.parts.get(host)) is not None:
        store.put("part", part_id(job.id, host), part_text(part, job.parts.lists))


def remove_parts(store: Store, job: JobRecord) -> None:
    """Note that no part of a job is remembered any more."""
    for host in job.parts.remembered if job.parts is not None else ():
        store.remove("part", part_id(job.id, host))


def part_id(job_id: str, host: str) -> str:
    """Returns the id of a part's record. No name of a job or a host has a slash."""
    return f"{job_id}/{host}"


def save_body(store: Store, job: JobRecord) -> None:
    """Note what seldom changes of a job."""
    store.put("job", job.id, job_text(job))


def save_tally(store: Store, job: JobRecord) -> None:
    """Note what every report changes of a job, beside its points."""
    store.put("tally", job.id, tally_text(job))


def save_seen(store: Store, job: JobRecord) -> None:
    """Note the connections that hosts found. There are many, and they seldom change."""
    if (seen := seen_of(job)) is not None:
        store.put("seen", job.id, seen.model_dump_json())
    else:
        store.remove("seen", job.id)


def save_host(store: Store, name: str, agent: HostRecord) -> None:
    """Note the merged batches of a host, and its clock."""
    store.put("host", name, agent.to_body().model_dump_json())


def remove_job(store: Store, job: JobRecord, tombstone: TombstoneBody) -> None:
    """Note that a job was removed, and when."""
    for kind in ("job", "tally", "seen"):
        store.remove(kind, job.id)
    remove_parts(store, job)
    store.replace_points(job.id, ())
    store.put("grave", job.id, tombstone.model_dump_json())


def save_run(store: Store, family: FamilyKey, run: EarlierRun) -> None:
    """Note a run that a family keeps."""
    store.put("run", _run_id(run.key), _run_text(family, run))


def remove_run(store: Store, key: RunKey) -> None:
    """Note that a run is not kept any more."""
    store.remove("run", _run_id(key))


def save_points(store: Store, job: JobRecord, new_points: Sequence[Progress], *, is_thinned: bool) -> None:
    """Note new points of a job; where the record was thinned, or the rows are too many, only those that are kept."""
    if is_thinned or job.rows > MAX_ROWS:
        kept = as_points(job.history.points())
        job.rows = len(kept)
        store.replace_points(job.id, kept)
    elif new_points:
        store.add_points(job.id, as_points(new_points))


def as_points(points: Iterable[Progress]) -> list[Point]:
    """Returns points as the journal stores them."""
    return [(point.iteration, point.time, point.metric) for point in points]


def _run_id(key: RunKey) -> str:
    return f"{key.job}@{key.began!r}"


def _run_text(family: FamilyKey, run: EarlierRun) -> str:
    owner, values = family.owner, {name: getattr(run, name) for name in _RUN_FIELDS}
    return RunBody.model_construct(family=family.name, user=owner.user, host=owner.host, **values).model_dump_json()


def _run_of(body: RunBody) -> tuple[FamilyKey, EarlierRun]:
    family = FamilyKey(Owner(body.user, body.host), body.family)
    return family, EarlierRun(**{name: getattr(body, name) for name in _RUN_FIELDS})


_RUN_FIELDS = tuple(entry.name for entry in fields(EarlierRun))


def _bodies(contents: Contents, kind: str, model: type[AnyBody]) -> dict[str, AnyBody]:
    bodies = {}
    for record_id, text in contents.records.get(kind, {}).items():
        what = _WRONG_CHECKSUM if (kind, record_id) in contents.damaged else None
        try:
            bodies[record_id] = model.model_validate_json(text)
        except ValidationError as error:
            fault = error.errors(include_url=False, include_input=False)[0]
            place = ".".join(map(str, fault["loc"]))
            what = f"{place}: {fault['msg']}" if place else str(fault["msg"])
        if what is not None:
            raise _damaged(contents, f"its record of {kind} {record_id!r} is damaged: {what}")
    return bodies


def _progress(contents: Contents, job_id: str, point: Point) -> Progress:
    iteration, time, metric = point
    numbers = [iteration, time, *([metric] if metric is not None else [])]
    if not all(isinstance(number, float) and math.isfinite(number) for number in numbers):
        raise _damaged(contents, f"a point of job {job_id!r} is damaged: {point!r}"[:300])
    return Progress(iteration, time, metric)


def _damaged(contents: Contents, what: str) -> StoreError:
    return StoreError(
        f"journal {contents.path}: {what}; put back a copy from before, or move the file away to begin without it"
    )
