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
    parts: PartsOfJob | None = None

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
            "diverged": self.diverged,
            "service_class": self.service_class,
            "connections": self.connections,
            "measured_iterations": self.measured_iterations,
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
