"""A job as the API shows it, as a value that is made quickly, whatever the size of the job."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from controller.declared.declared import Declared
from controller.declared.demand_texts import texts_of
from controller.declared.json_texts import text_of, with_members
from controller.declared.parts.parts_of_job import PartsOfJob
from controller.model import Demand
from controller.pieces import Steps
from controller.registry.job.record import JobRecord
from controller.wire import FoundBy

StateWord = Literal["waiting", "running", "ended", "lost"]


class JobProgress(NamedTuple):
    """How a job fares, as a value that is made for each report: no more of it than events and histories need."""

    id: str
    user: str | None
    state: StateWord
    iterations_done: float
    iterations_total: float | None
    last_metric: float | None
    last_report: float | None
    diverged: bool
    ended_at: float | None

    @classmethod
    def of(cls, job: JobRecord) -> JobProgress:
        """Returns how a job fares."""
        measured = job.history.last_measured
        return cls(
            id=job.id,
            user=job.spec.user,
            state=_state_of(job),
            iterations_done=job.history.iterations_done,
            iterations_total=job.spec.iterations,
            last_metric=measured.metric if measured else None,
            last_report=job.last_report,
            diverged=job.diverged,
            ended_at=job.ended_at,
        )


class JobDescription(NamedTuple):
    """What a job is. ``measured`` is the demand of an iteration as hosts have measured it; empty: they have not.

    ``launcher`` is what has started it, and ``first_host`` the host that rank 0 runs on, of a job that agents have
    found.
    """

    spec: Declared
    arrival: float
    stage: str | None
    measured: Sequence[Demand]
    launcher: str | None = None
    first_host: str | None = None

    @classmethod
    def of(cls, job: JobRecord) -> JobDescription:
        """Returns what a job is."""
        measured = job.measured.value
        demand = () if measured is None else measured.demand
        leading = job.parts.leading if job.parts is not None else None
        if leading is None:
            return cls(job.spec, job.arrival, job.stage, demand)
        first = leading.host if leading.part.is_first else None
        return cls(job.spec, job.arrival, job.stage, demand, leading.part.launcher, first)


@dataclass(frozen=True, slots=True)
class JobView:
    """The fields of ``wire.JobState``, with the spec in the controller's own form."""

    id: str
    spec: Declared
    arrival: float
    state: StateWord
    iterations_done: float
    last_metric: float | None
    last_report: float | None
    ended_at: float | None
    diverged: bool
    service_class: int | None
    dscp: int | None
    acknowledgement_dscp: int | None
    connections: int
    measured_demand: Sequence[Demand]
    measured_iterations: float
    iterations_of_epoch: float | None
    problems: tuple[str, ...]
    parts: PartsOfJob | None = None

    @classmethod
    def of(
        cls, job: JobRecord, service_class: int | None, *, acknowledgement_dscp: int | None = None, sharing: int = 1
    ) -> JobView:
        """Returns a job as the API shows it.

        ``acknowledgement_dscp`` is that of jobs which have their own DSCP, and ``sharing`` jobs have the job's.
        """
        dscp = job.dscp if job.ended_at is None else None
        measured = job.history.last_measured
        demand = job.measured.value
        return cls(
            id=job.id,
            spec=job.spec,
            arrival=job.arrival,
            state=_state_of(job),
            iterations_done=job.history.iterations_done,
            last_metric=measured.metric if measured else None,
            last_report=job.last_report,
            ended_at=job.ended_at,
            diverged=job.diverged,
            service_class=service_class,
            dscp=dscp,
            acknowledgement_dscp=None if dscp is None else acknowledgement_dscp,
            connections=job.connections.found.connections,
            measured_demand=() if demand is None else demand.demand,
            measured_iterations=0.0 if demand is None else demand.iterations,
            iterations_of_epoch=job.iterations_of_epoch,
            problems=job.problems if dscp is None else (*job.problems, *_of_sharing(dscp, sharing)),
            parts=job.parts,
        )

    def to_json(self, targets: Mapping[str, Any]) -> Steps[str]:
        """Returns the text of a ``wire.JobState`` with its predicted targets; yields where others may go on."""
        measured = yield from texts_of(self.measured_demand)
        parts = yield from self._parts()
        rest = {
            "arrival": self.arrival,
            "state": self.state,
            "iterations_done": self.iterations_done,
            "last_metric": self.last_metric,
            "last_report": self.last_report,
            "ended_at": self.ended_at,
            "diverged": self.diverged,
            "service_class": self.service_class,
            "dscp": self.dscp,
            "acknowledgement_dscp": self.acknowledgement_dscp,
            "connections": self.connections,
            "measured_iterations": self.measured_iterations,
            "iterations_of_epoch": self.iterations_of_epoch,
            "problems": self.problems,
            "targets": targets,
        }
        text = json.dumps(rest, separators=(",", ":"), ensure_ascii=False)
        return with_members(
            text, id=json.dumps(self.id), spec=self.spec.text, measured_demand=measured.as_specs, **parts
        )

    def found_by(self) -> FoundBy | None:
        """Returns how agents have found the job; None: it was registered whole."""
        leading = self.parts.leading if self.parts is not None else None
        if self.parts is None or leading is None:
            return None
        return FoundBy(
            launcher=leading.part.launcher,
            first=leading.host if leading.part.is_first else None,
            hosts=tuple(part.host for part in self.parts),
            missing=tuple(self.parts.missing),
        )

    def _parts(self) -> Steps[dict[str, str]]:
        """Returns the members of a ``wire.JobState`` that a job has which is joined of parts, as JSON."""
        if self.parts is None:
            return {}
        is_over = self.state == "ended"
        states = {part.host: part.state(is_over=is_over) for part in self.parts}
        yield
        return {
            "parts": (yield from text_of(states)),
            "missing": json.dumps(self.parts.missing, separators=(",", ":")),
        }


def _of_sharing(dscp: int, sharing: int) -> tuple[str, ...]:
    """Returns a sentence which says that a job shares its DSCP, where ``sharing`` jobs have it; else nothing."""
    if sharing <= 1:
        return ()
    others = f"{sharing - 1} other job{'s' if sharing > 2 else ''}"
    why = "no other one of dscp.jobs was free, and all have the best of their classes"
    return (f"it shares DSCP {dscp} with {others}: {why}",)


def _state_of(job: JobRecord) -> StateWord:
    if job.ended_at is not None:
        return "ended"
    if job.lost_since is not None:
        return "lost"
    return "waiting" if job.last_report is None else "running"
