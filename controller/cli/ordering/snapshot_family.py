"""The family of a job in a snapshot file: earlier runs, as ``GET /v1/families/{name}`` names what is known of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from pydantic import Field

from controller.cli.ordering.snapshot_values import MetricValue, Moment, Part, Text
from controller.documents.document import FieldPath
from controller.families.build import history_of
from controller.families.history import FamilyHistory
from controller.families.run import MAX_POINTS, EarlierRun, Ending
from controller.model import Metric

Iterations = Annotated[float, Field(gt=0, le=1e15)]
CurvePoint = tuple[Annotated[float, Field(ge=0, le=1e15)], MetricValue]


class RunPart(Part):
    """A run that has ended, with the metric of the file."""

    iterations: Iterations
    ending: Annotated[Ending, Field(strict=False)] = Ending.FINISHED
    converged: MetricValue | None = None
    t90_iteration: Iterations | None = None
    t95_iteration: Iterations | None = None
    curve: Annotated[
        tuple[Annotated[CurvePoint, Field(strict=False)], ...], Field(max_length=MAX_POINTS, strict=False)
    ] = ()
    job: Text | None = None
    ended_at: Moment = 0.0


class FamilyPart(Part):
    """A job's family: its name, and its runs, the one that ended first first."""

    name: Text
    runs: Annotated[tuple[RunPart, ...], Field(max_length=1000, strict=False)] = ()


def contradictions(part: FamilyPart, metric: Metric) -> Iterator[tuple[FieldPath, str]]:
    """Yields what is wrong between the fields of a family: the path inside it, and a sentence."""
    for i, run in enumerate(part.runs):
        at: FieldPath = ("runs", i)
        for field, value in (("t90_iteration", run.t90_iteration), ("t95_iteration", run.t95_iteration)):
            if value is not None and value > run.iterations:
                yield (*at, field), f"is {value:g}, and the run has {run.iterations:g} iterations"
        if run.ending is not Ending.FINISHED:
            continue
        if run.converged is None:
            yield (*at, "converged"), "is missing; a run that finished has one"
        if run.t90_iteration is None:
            yield (*at, "t90_iteration"), "is missing; a run that finished has one"
        if metric.direction == "min" and not run.curve:
            yield (*at, "curve"), "is missing; where the metric falls, its first value is where the run began"


def history(part: FamilyPart, metric: Metric) -> FamilyHistory:
    """Returns what the runs of a family say of a job whose progress is measured by ``metric``."""
    return history_of(part.name, [_run(run, i, metric) for i, run in enumerate(part.runs)], metric)


def _run(part: RunPart, number: int, metric: Metric) -> EarlierRun:
    return EarlierRun(
        job=part.job if part.job is not None else f"run {number + 1}",
        began=float(number),
        ended_at=part.ended_at,
        ending=part.ending,
        metric=metric.name,
        direction=metric.direction,
        length=part.iterations,
        converged=part.converged,
        t90=part.t90_iteration,
        t95=part.t95_iteration,
        curve=part.curve,
    )
