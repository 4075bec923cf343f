"""A snapshot in a JSON file, the input of ``trainyard order``: its fields, its defaults, and its faults."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from controller.documents import text_file
from controller.documents.faults import field_name
from controller.documents.foreign_formats import COFLOW_TRACE, SNAPSHOT, recognised
from controller.documents.json_lines import JsonError, Place, Scan, parse
from controller.documents.yaml_lines import Document, describe
from controller.model import MAX_CLASSES, MAX_OFFLINE_CLASSES, Demand, Host, Job, Metric, Progress, Snapshot

SHOWN_FAULTS = 20

Text = Annotated[str, StringConstraints(min_length=1, max_length=255)]
Moment = Annotated[float, Field(ge=-1e15, le=1e15)]
Rate = Annotated[float, Field(ge=1e-3, le=1e18)]


class SnapshotError(ValueError):
    """The file is no snapshot. The message has a line ``file:line: field: what is wrong`` for each fault."""


class Part(BaseModel):
    """Base of every part of the file: no unknown keys, no silent type changes, no infinities."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, strict=True)


class HostPart(Part):
    """A host and the rates of its link, bit/s."""

    name: Text
    ingress_bps: Rate = 1e9
    egress_bps: Rate = 1e9


class DemandPart(Part):
    """Bytes of one iteration from one host to another."""

    src: Text
    dst: Text
    bytes: Annotated[float, Field(ge=0, le=1e18)]


class ProgressPart(Part):
    """A report: the iterations done, the time, and the metric, if it was measured."""

    iteration: Annotated[float, Field(ge=0, le=1e15)]
    time: Moment
    metric: Annotated[float, Field(ge=-1e30, le=1e30)] | None = None


class JobPart(Part):
    """A job."""

    id: Text
    demand: Annotated[tuple[DemandPart, ...], Field(strict=False)]
    arrival: Moment = 0.0
    weight: Annotated[float, Field(gt=0, le=1e15)] = 1.0
    stage: Text | None = None
    iterations_left: Annotated[float, Field(ge=0, le=1e15)] = 1.0
    compute_seconds: Annotated[float, Field(ge=0, le=1e15)] = 0.0
    progress: Annotated[tuple[ProgressPart, ...], Field(strict=False)] = ()


class MetricPart(Part):
    """The metric of all jobs."""

    name: Text = "accuracy"
    direction: Literal["max", "min"] = "max"


class SnapshotPart(Part):
    """The whole file."""

    hosts: Annotated[tuple[HostPart, ...], Field(strict=False)]
    jobs: Annotated[tuple[JobPart, ...], Field(strict=False)]
    now: Moment = 0.0
    classes: Annotated[int, Field(ge=1, le=MAX_OFFLINE_CLASSES)] = MAX_CLASSES
    metric: Annotated[MetricPart, Field(default_factory=MetricPart)]


def read_snapshot(path: Path) -> Snapshot:
    """Returns the snapshot in a file; ``-`` is the standard input. Raises SnapshotError with all faults."""
    name = Path(text_file.name(path))
    try:
        text = text_file.read(path, holds="a snapshot: an object with hosts and jobs")
    except text_file.FileError as error:
        raise SnapshotError(str(error)) from None
    try:
        return _snapshot(_checked(text, name))
    except (JsonError, SnapshotError) as error:
        if (found := recognised(text, SNAPSHOT)) is not None:
            remedy = "; trainyard sim --trace reads it" if found == COFLOW_TRACE else ""
            problem = f"this looks like {found}, and trainyard order reads snapshots (JSON){remedy}"
            raise SnapshotError(f"{name}:1: {problem}") from None
        if isinstance(error, SnapshotError):
            raise
        raise SnapshotError(f"{name}:{error.line}: {field_name(error.place)}: {error}") from None


def _checked(text: str, name: Path) -> SnapshotPart:
    data = parse(text)
    if not isinstance(data, dict):
        raise JsonError("holds no object; it must hold one with hosts and jobs", (), 1)
    try:
        part = SnapshotPart.model_validate(data)
    except ValidationError as error:
        document = _document(name, text, data, [tuple(fault["loc"]) for fault in error.errors(include_url=False)])
        raise SnapshotError(_first_faults(describe(error, document, SnapshotPart).splitlines())) from None
    if faults := list(_contradictions(part)):
        document = _document(name, text, data, [place for place, _ in faults])
        raise SnapshotError(_first_faults([f"{document.where(place)}: {problem}" for place, problem in faults]))
    return part


def _document(name: Path, text: str, data: dict[str, Any], places: list[Place]) -> Document:
    """Returns the document with the lines of these places and of the values that enclose them."""
    wanted = {place[:depth] for place in places for depth in range(len(place) + 1)}
    return Document(name, data, Scan(text, wanted).lines)


def _first_faults(faults: list[str]) -> str:
    """Returns the faults, one a line, the first SHOWN_FAULTS of them."""
    if len(faults) > SHOWN_FAULTS:
        faults = [*faults[:SHOWN_FAULTS], f"and {len(faults) - SHOWN_FAULTS} more"]
    return "\n".join(faults)


def _contradictions(part: SnapshotPart) -> Iterator[tuple[Place, str]]:
    """Yields the faults that no field shows by itself."""
    hosts: dict[str, int] = {}
    for i, host in enumerate(part.hosts):
        if (first := hosts.setdefault(host.name, i)) != i:
            yield ("hosts", i, "name"), f"{host.name!r} is the name of hosts[{first}] already; each needs its own"
    jobs: dict[str, int] = {}
    for j, job in enumerate(part.jobs):
        if (first := jobs.setdefault(job.id, j)) != j:
            yield ("jobs", j, "id"), f"{job.id!r} is the id of jobs[{first}] already; each needs its own"
        for d, demand in enumerate(job.demand):
            place: Place = ("jobs", j, "demand", d)
            for end, host_name in (("src", demand.src), ("dst", demand.dst)):
                if host_name not in hosts:
                    yield (*place, end), f"unknown host {host_name!r}; there are: {_names(hosts)}"
            if demand.src == demand.dst:
                yield (*place, "dst"), f"is {demand.dst!r}, as its src; a flow goes to another host"


def _names(hosts: dict[str, int]) -> str:
    names = ", ".join(list(hosts)[:10]) or "none"
    return names if len(hosts) <= 10 else f"{names} and {len(hosts) - 10} more"


def _snapshot(part: SnapshotPart) -> Snapshot:
    metric = Metric(part.metric.name, part.metric.direction)
    return Snapshot(
        now=part.now,
        hosts={host.name: Host(host.name, host.ingress_bps, host.egress_bps) for host in part.hosts},
        jobs=tuple(_job(job, metric) for job in part.jobs),
        classes=part.classes,
    )


def _job(part: JobPart, metric: Metric) -> Job:
    points = sorted(part.progress, key=lambda point: (point.iteration, point.time))
    progress = tuple(Progress(point.iteration, point.time, point.metric) for point in points)
    total: float | None = None
    if "iterations_left" in part.model_fields_set:
        # The iterations left give the length of the run.
        total = (progress[-1].iteration if progress else 0.0) + part.iterations_left
    return Job(
        id=part.id,
        demand=tuple(Demand(d.src, d.dst, d.bytes) for d in part.demand),
        arrival=part.arrival,
        weight=part.weight,
        stage=part.stage,
        iterations_left=part.iterations_left,
        iterations_total=total,
        compute_seconds=part.compute_seconds,
        progress=progress,
        metric=metric,
    )
