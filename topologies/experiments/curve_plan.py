"""The learning curve of a job in an experiment: the name of a recorded curve, or the curve itself."""

from __future__ import annotations

from typing import Annotated

from pydantic import Discriminator, Field, Tag

from controller.wire import MetricValue
from simulator.workloads import curves

MAX_ROWS = 10_000
_Rows = Annotated[tuple[MetricValue, ...], Field(min_length=1, max_length=MAX_ROWS, strict=False)]


def _kind(value: object) -> str | None:
    return "name" if isinstance(value, str) else "rows" if isinstance(value, list | tuple) else None


CurvePlan = Annotated[
    Annotated[str, Tag("name")] | Annotated[_Rows, Tag("rows")],
    Discriminator(
        _kind,
        custom_error_type="curve_type",
        custom_error_message="Input should be the name of a recorded curve or a list of its metric values",
    ),
]
"""A recorded curve by its name, or 1 to 10,000 rows: the metric of iterations 1, 2, ..."""


def rows_of(curve: str | tuple[float, ...]) -> tuple[float, ...]:
    """Returns the rows of a curve. Raises curves.CurveError where no recorded curve has the name."""
    return curves.load(curve) if isinstance(curve, str) else curve
