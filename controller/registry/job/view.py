"""A job as the API shows it, as a value that is made quickly, whatever the size of the job."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from controller.declared.declared import Declared
from controller.declared.demand_texts import texts_of
from controller.declared.json_texts import with_members
from controller.model import Demand
from controller.pieces import Steps

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


class JobDescription(NamedTuple):
    """What a job is. ``measured`` is the demand of an iteration as hosts have measured it; empty: they have not."""

    spec: Declared
    arrival: float
    stage: str | None
    measured: Sequence[Demand]


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
    diverged: bool
    service_class: int | None
    connections: int
    measured_demand: Sequence[Demand]
    measured_iterations: float
    problems: tuple[str, ...]

    def to_json(self, targets: Mapping[str, Any]) -> Steps[str]:
        """Returns the text of a ``wire.JobState`` with its predicted targets; yields where others may go on."""
        measured = yield from texts_of(self.measured_demand)
        rest = {
            "arrival": self.arrival,
            "state": self.state,
            "iterations_done": self.iterations_done,
            "last_metric": self.last_metric,
            "last_report": self.last_report,
            "diverged": self.diverged,
            "service_class": self.service_class,
            "connections": self.connections,
            "measured_iterations": self.measured_iterations,
            "problems": self.problems,
            "targets": targets,
        }
        text = json.dumps(rest, separators=(",", ":"), ensure_ascii=False)
        return with_members(text, id=json.dumps(self.id), spec=self.spec.text, measured_demand=measured.as_specs)
