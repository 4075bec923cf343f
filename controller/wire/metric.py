"""The metric of a job, which jobs and parts of jobs declare."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import StringConstraints

from controller.wire.base import PRINTABLE_PATTERN, Message


class MetricSpec(Message):
    """The metric that a job's progress is measured by."""

    name: Annotated[str, StringConstraints(min_length=1, max_length=63, pattern=PRINTABLE_PATTERN)] = "accuracy"
    """The name of the metric, for people."""
    direction: Literal["max", "min"] = "max"
    """Whether a larger (max) or a smaller (min) value is better."""
