"""A job's spec with what its output says of it, where whoever registered it leaves that open."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, Self, TypeVar

from controller.wire import MetricSpec
from host_reporter.readers.parse import Described

MAX_NAME = 63
"""A metric's name has at most so many characters on the wire."""


class Describable(Protocol):
    """A spec with a metric and a length: of a whole job, or of what one host knows of it."""

    @property
    def metric(self) -> MetricSpec | None:
        """The declared metric."""

    @property
    def iterations(self) -> float | None:
        """The declared length."""

    @property
    def model_fields_set(self) -> set[str]:
        """The fields that were given."""

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Returns a copy with other values."""


_Spec = TypeVar("_Spec", bound=Describable)


def described_spec(spec: _Spec, described: Described, *, counts_epochs: bool = False) -> _Spec:
    """Returns a declared spec with the metric, its direction, the iterations and the unit that it leaves open."""
    found: dict[str, Any] = {}
    metric = _metric(spec, described)
    if metric is not None:
        found["metric"] = metric
    if spec.iterations is None and described.iterations is not None:
        found["iterations"] = described.iterations
    if counts_epochs and "unit" not in spec.model_fields_set:
        found["unit"] = "epoch"
    return spec.model_copy(update=found) if found else spec


def _metric(spec: Describable, described: Described) -> MetricSpec | None:
    """Returns the metric to be declared in the place of the spec's; None: the spec's own stands."""
    if described.metric is None or described.direction is None:
        return None
    own = spec.metric
    if own is None or "metric" not in spec.model_fields_set:
        return MetricSpec(name=printable(described.metric), direction=described.direction)
    if "direction" not in own.model_fields_set:
        return MetricSpec(name=own.name, direction=described.direction)
    return None


def printable(name: str) -> str:
    """Returns the name of a metric as the controller takes it."""
    return "".join(char if char.isprintable() else "?" for char in name.strip())[:MAX_NAME].strip() or "metric"
