"""A job's spec with what its output says of it, where its job file leaves that open."""

from __future__ import annotations

from typing import Any

from controller.wire import JobSpec, MetricSpec
from host_reporter.readers.parse import Described

MAX_NAME = 63
"""A metric's name has at most so many characters on the wire."""


def described_spec(spec: JobSpec, described: Described) -> JobSpec:
    """Returns a job file's spec with the metric, its direction and the iterations that it leaves open."""
    found: dict[str, Any] = {}
    metric = _metric(spec, described)
    if metric is not None:
        found["metric"] = metric
    if spec.iterations is None and described.iterations is not None:
        found["iterations"] = described.iterations
    return type(spec).model_construct(**dict(spec) | found) if found else spec


def _metric(spec: JobSpec, described: Described) -> MetricSpec | None:
    """Returns the metric to be declared in the place of the spec's; None: the spec's own stands."""
    if described.metric is None or described.direction is None:
        return None
    if "metric" not in spec.model_fields_set:
        return MetricSpec(name=printable(described.metric), direction=described.direction)
    if "direction" not in spec.metric.model_fields_set:
        return MetricSpec(name=spec.metric.name, direction=described.direction)
    return None


def printable(name: str) -> str:
    """Returns the name of a metric as the controller takes it."""
    return "".join(char if char.isprintable() else "?" for char in name.strip())[:MAX_NAME].strip() or "metric"
