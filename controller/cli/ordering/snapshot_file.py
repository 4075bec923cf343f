"""Reads the snapshot file of ``trainyard order``: its fields, their defaults, and the words for what is wrong."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, ValidationError

from controller.cli.ordering import snapshot_family
from controller.cli.ordering.snapshot_family import FamilyPart
from controller.cli.ordering.snapshot_values import MetricValue, Moment, Part, Text
from controller.documents import text_file
from controller.documents.document import Document, DocumentError, FieldPath, field_name
from controller.documents.faults import described_with_lines
from controller.documents.foreign_formats import COFLOW_TRACE, SNAPSHOT, recognised
from controller.documents.json_lines import read_json
from controller.model import MAX_CLASSES, MAX_OFFLINE_CLASSES, MAX_RUNGS, Demand, Host, Job, Metric, Progress, Snapshot

SHOWN_FAULTS = 20

Rate = Annotated[float, Field(ge=1e-3, le=1e18)]


class SnapshotError(ValueError):
    """A file that is no snapshot. The message has a line ``file:line: field: what is wrong`` for each fault."""


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
    """A report: iterations done, when, and the metric, if it was measured."""

    iteration: Annotated[float, Field(ge=0, le=1e15)]
    time: Moment
    metric: MetricValue | None = None


class JobPart(Part):
    """A job."""

    id: Text
    demand: Annotated[tuple[DemandPart, ...], Field(strict=False)]
    arrival: Moment = 0.0
    weight: Annotated[float, Field(gt=0, le=1e15)] = 1.0
    stage: Text | None = None
    rungs_left: Annotated[int, Field(ge=0, le=MAX_RUNGS)] | None = None
    target: Annotated[float, Field(ge=-1e30, le=1e30)] | None = None
    diverged: bool = False
    iterations_left: Annotated[float, Field(ge=0, le=1e15)] = 1.0
    compute_seconds: Annotated[float, Field(ge=0, le=1e15)] = 0.0
    progress: Annotated[tuple[ProgressPart, ...], Field(strict=False)] = ()
    family: FamilyPart | None = None


class MetricPart(Part):
    """What progress is measured by, for all jobs."""

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
    """Returns the snapshot in a file; ``-`` is the standard input. Raises SnapshotError, which names all faults."""
    name = text_file.name(path)
    try:
        text = text_file.read(path, holds="a snapshot: an object with hosts and jobs")
    except text_file.FileError as error:
        raise SnapshotError(str(error)) from None
    try:
        return _snapshot(_checked(read_json(text), name))
    except (DocumentError, SnapshotError) as error:
        if (other := recognised(text, SNAPSHOT)) is not None:
            remedy = "; trainyard sim --trace reads it" if other == COFLOW_TRACE else ""
            problem = f"this looks like {other}, and trainyard order reads snapshots (JSON){remedy}"
            raise SnapshotError(f"{name}:1: {problem}") from None
        if isinstance(error, SnapshotError):
            raise
        raise SnapshotError(f"{name}:{error.line}: {field_name(error.path)}: {error.problem}") from None


def _checked(document: Document, name: str) -> SnapshotPart:
    """Returns the values of a document as a snapshot's. Raises SnapshotError, DocumentError."""
    if not isinstance(document.data, dict):
        raise DocumentError("holds no object; it must hold one with hosts and jobs", 1)
    try:
        part = SnapshotPart.model_validate(document.data)
    except ValidationError as error:
        raise _refusal(name, described_with_lines(error, document, SnapshotPart)) from None
    if contradictions := list(_contradictions(part)):
        lines = document.lines([path for path, _ in contradictions])
        raise _refusal(name, [(path, line, said) for (path, said), line in zip(contradictions, lines, strict=True)])
    return part


def _refusal(name: str, faults: Sequence[tuple[FieldPath, int, str]]) -> SnapshotError:
    """Returns the error for these faults, one on a line; of very many it shows only the first."""
    shown = [f"{name}:{line}: {field_name(path)}: {said}" for path, line, said in faults[:SHOWN_FAULTS]]
    if len(faults) > SHOWN_FAULTS:
        shown.append(f"and {len(faults) - SHOWN_FAULTS} more")
    return SnapshotError("\n".join(shown))


def _contradictions(part: SnapshotPart) -> Iterator[tuple[FieldPath, str]]:
    """Yields what is wrong between fields that are right by themselves: the path, and a sentence."""
    hosts: dict[str, int] = {}
    for i, host in enumerate(part.hosts):
        if (first := hosts.setdefault(host.name, i)) != i:
            yield ("hosts", i, "name"), f"{host.name!r} is the name of hosts[{first}] already; each needs its own"
    jobs: dict[str, int] = {}
    for j, job in enumerate(part.jobs):
        if (first := jobs.setdefault(job.id, j)) != j:
            yield ("jobs", j, "id"), f"{job.id!r} is the id of jobs[{first}] already; each needs its own"
        for d, demand in enumerate(job.demand):
            flow: FieldPath = ("jobs", j, "demand", d)
            for end, host_name in (("src", demand.src), ("dst", demand.dst)):
                if host_name not in hosts:
                    yield (*flow, end), f"unknown host {host_name!r}; there are: {_names(hosts)}"
            if demand.src == demand.dst:
                yield (*flow, "dst"), f"is {demand.dst!r}, as its src; a flow goes to another host"
        if job.family is not None:
            for path, said in snapshot_family.contradictions(job.family, _metric(part)):
                yield ("jobs", j, "family", *path), said


def _names(hosts: dict[str, int]) -> str:
    names = ", ".join(list(hosts)[:10]) or "none"
    return names if len(hosts) <= 10 else f"{names} and {len(hosts) - 10} more"


def _snapshot(part: SnapshotPart) -> Snapshot:
    metric = _metric(part)
    return Snapshot(
        now=part.now,
        hosts={host.name: Host(host.name, host.ingress_bps, host.egress_bps) for host in part.hosts},
        jobs=tuple(_job(job, metric) for job in part.jobs),
        classes=part.classes,
    )


def _metric(part: SnapshotPart) -> Metric:
    return Metric(part.metric.name, part.metric.direction)


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
        rungs_left=part.rungs_left,
        iterations_left=part.iterations_left,
        iterations_total=total,
        compute_seconds=part.compute_seconds,
        progress=progress,
        metric=metric,
        target=part.target,
        diverged=part.diverged,
        family=snapshot_family.history(part.family, metric) if part.family is not None else None,
    )
