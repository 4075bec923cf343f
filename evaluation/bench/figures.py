"""What a bench finds, as values that are JSON in the summary."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from evaluation import summary


@dataclass(frozen=True, slots=True)
class Figure:
    """One claim: a value beside a floor or a peer measured in the same run, and the limit that it keeps (None: none).

    ``ci95`` is of the reduction, 1 - value / baseline, over the rounds of the run.
    """

    claim: str
    metric: str
    unit: str
    value: float
    baseline: float
    baseline_name: str
    ci95: tuple[float, float]
    limit: float | None = None

    @property
    def holds(self) -> bool:
        """Whether the value is under its limit."""
        return self.limit is None or self.value < self.limit

    def document(self) -> dict[str, Any]:
        """The entry of the summary's headline."""
        entry = summary.claim(
            self.claim,
            metric=self.metric,
            unit=self.unit,
            baseline=self.baseline,
            value=self.value,
            interval=self.ci95,
        )
        return entry | {"beside": self.baseline_name, "limit": self.limit, "holds": self.holds}


@dataclass(frozen=True, slots=True)
class Bench:
    """The figures of one bench, the datapath that it ran on ("none": no network), and all else that it saw."""

    figures: tuple[Figure, ...]
    datapath: str = "none"
    details: Mapping[str, Any] = field(default_factory=dict)
