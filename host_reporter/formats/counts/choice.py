"""Which of the metrics of a line is the metric of the run. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from host_reporter.formats import names
from host_reporter.formats.events import Direction
from host_reporter.formats.local import with_names

MAX_NAMES = 50
"""Remember at most so many names of metrics."""


@dataclass(frozen=True)
class Wanted:
    """What a job file declares of its metric, and the directions that its preset knows."""

    metric: str | None = None
    direction: Direction | None = None
    directions: Mapping[str, Direction] = field(default_factory=dict)
    iterations: float | None = None
    """The length of the run."""
    validates: bool = False
    """Whether a validation's first metric takes the place of one of the training."""


class MetricChoice:
    """Chooses the metric at the first line that has one, and keeps it, so that a run's curve is of one metric.

    Only the first metric of a validation takes the place of one of the training, unless it is a final one. Of several
    on that line: the declared one, else validation before training, else a loss, and that before its parts, else the
    first one.
    ``seen`` are the names of all metrics so far.
    """

    def __init__(self, wanted: Wanted) -> None:
        self._wanted = wanted
        self.name: str | None = None
        self.seen: dict[str, None] = {}

    def direction_of(self, name: str) -> Direction | None:
        """Returns the direction of a metric: the declared one, else the preset's, else that of the name."""
        wanted = self._wanted
        if wanted.direction is not None and (wanted.metric is None or _named(wanted.metric, {name: 0.0})):
            return wanted.direction
        return wanted.directions.get(name) or names.direction(name)

    @property
    def is_validation(self) -> bool:
        """Whether the chosen metric is of data that is not trained on."""
        return self.name is not None and names.is_validation(self.name)

    @property
    def direction(self) -> Direction | None:
        """The direction of the chosen metric."""
        return None if self.name is None else self.direction_of(self.name)

    def pick(self, metrics: Mapping[str, float], *, is_late: bool = False) -> float | None:
        """Returns the value of the run's metric; None where the line does not have it.

        ``is_late``: the run is near its end.
        """
        for name in metrics:
            if len(self.seen) < MAX_NAMES:
                self.seen[name] = None
        if self.name is None or (not is_late and self._turns(metrics)):
            self.name = self.best(metrics)
        return None if self.name is None else metrics.get(self.name)

    def _turns(self, metrics: Mapping[str, float]) -> bool:
        """Returns whether the line has the first metric of a validation, after a metric of the training was chosen."""
        if not self._wanted.validates or self._wanted.metric is not None or self.is_validation:
            return False
        return any(names.is_validation(name) and self.direction_of(name) is not None for name in metrics)

    def best(self, metrics: Mapping[str, float]) -> str | None:
        """Returns which of several metrics would be chosen; None where none is known."""
        if self._wanted.metric is not None:
            return _named(self._wanted.metric, metrics)
        known = [name for name in metrics if self.direction_of(name) is not None]
        return min(known, key=_rank, default=None)

    def problem(self) -> str | None:
        """Returns what a person should know of the metric."""
        if self.name is not None and self.direction is None:
            return (
                f"whether a larger {self.name} is better is not known, so it is not reported: "
                "declare progress.direction, max or min"
            )
        if self.name is None and self.seen and self._wanted.metric is not None:
            return with_names(f"no line has the metric {self._wanted.metric}", self.seen)
        if self.name is None and self.seen:
            return with_names(
                "none of its values is known as a metric: declare progress.metric and progress.direction", self.seen
            )
        return None


def _rank(name: str) -> tuple[bool, bool, bool, bool]:
    """Returns the place of a metric among others: validation first, then losses, of which the whole one is first."""
    return not names.is_validation(name), not names.is_loss(name), names.is_beside(name), not names.is_whole(name)


def _named(wanted: str, metrics: Mapping[str, float]) -> str | None:
    """Returns the metric of this name, or one whose name has all its words: ``accuracy`` may be ``val_accuracy``."""
    for name in metrics:
        if names.same(name, wanted):
            return name
    words = set(names.words(wanted))
    alike = [name for name in metrics if words and words <= set(names.words(name))]
    return max(alike, key=names.is_validation, default=None)
