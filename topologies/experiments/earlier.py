"""A job that had ended before an experiment began."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, field_validator

from controller.families.names import family_in_force
from controller.wire import Message, Name
from simulator.workloads import curves
from topologies.experiments.curve_plan import CurvePlan, rows_of
from topologies.experiments.family_plan import FamilyName


class EarlierJob(Message):
    """A job of ``family`` that trained to its end: ``iterations`` along ``curve``, which is replayed as a job's is."""

    id: Name
    family: FamilyName
    iterations: Annotated[int, Field(ge=1, le=10**6)]
    curve: CurvePlan

    @field_validator("family")
    @classmethod
    def _is_a_family(cls, family: str) -> str:
        if family_in_force(family, None) is None:
            raise ValueError(f"is the text {family!r}; the name of a family has a letter or a digit")
        return family

    @property
    def rows(self) -> tuple[float, ...]:
        """The rows of ``curve``. Raises curves.CurveError where no recorded curve has its name."""
        return rows_of(self.curve)

    @property
    def metrics(self) -> tuple[float, ...]:
        """The metric of each iteration. Raises curves.CurveError where no recorded curve has the name."""
        return curves.replay(self.rows, self.iterations)
