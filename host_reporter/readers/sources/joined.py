"""One job's progress from two sources: the iterations from one, the metric from the other."""

from __future__ import annotations

from collections import deque
from dataclasses import replace

from host_reporter.formats.events import Described, Diverged, Event, Point
from host_reporter.readers.log_source import ProgressSource
from host_reporter.readers.match_limit import MatchLimit

MAX_WAITING = 2_000
"""Keep so many metrics that no step has come for; the oldest ones go first."""


class JoinedSource:
    """Gives each point of ``steps`` the latest metric of ``metrics``: by time where both have times, else as read.

    A metric is reported once.
    """

    def __init__(self, steps: ProgressSource, metrics: ProgressSource) -> None:
        self._steps, self._metrics = steps, metrics
        self._waiting: deque[Point] = deque(maxlen=MAX_WAITING)
        self._of_steps = self._of_metrics = Described()

    @property
    def matched(self) -> int:
        """How many lines of the first source were understood."""
        return self._steps.matched

    @property
    def unmatched(self) -> int:
        """How many lines of the first source were not."""
        return self._steps.unmatched

    @property
    def samples(self) -> tuple[str, ...]:
        """The first few lines that were not understood."""
        return (*self._steps.samples, *self._metrics.samples)

    @property
    def is_costly(self) -> bool:
        """Whether the lines of one take too long."""
        return self._steps.is_costly or self._metrics.is_costly

    @property
    def has_begun(self) -> bool:
        """Whether something of both was read."""
        return self._steps.has_begun and self._metrics.has_begun

    def poll(self, limit: MatchLimit) -> tuple[list[Event], bool]:
        """Some of the events since the last call, and whether there may be more to read at once."""
        found, more_metrics = self._metrics.poll(limit)
        events = self._take(found)
        if more_metrics:
            return events, True
        steps, more = self._steps.poll(limit)
        return events + self._join(steps), more

    def rest(self, limit: MatchLimit) -> list[Event]:
        """Returns the events of what waits for more."""
        return self._take(self._metrics.rest(limit)) + self._join(self._steps.rest(limit))

    def aim(self) -> None:
        """Note how much there is to read now."""
        self._steps.aim()
        self._metrics.aim()

    @property
    def is_there(self) -> bool:
        """Whether all that there was at ``aim`` was read."""
        return self._steps.is_there and self._metrics.is_there

    @property
    def modified(self) -> float | None:
        """When the first source was last written."""
        return self._steps.modified

    def seems_over(self, limit: MatchLimit) -> bool:
        """Returns whether the last event of the first source seems to be an end."""
        return self._steps.seems_over(limit)

    def problem(self, *, final: bool = False) -> str | None:
        """What a person should know of either, if anything."""
        return self._steps.problem(final=final) or self._metrics.problem(final=final)

    def close(self) -> None:
        """Let go of the files."""
        self._steps.close()
        self._metrics.close()

    def _take(self, events: list[Event]) -> list[Event]:
        """Keep the metrics. Returns what else their source says: which metric it is, and whether the run diverged."""
        found: list[Event] = []
        for event in events:
            if isinstance(event, Point):
                if event.metric is not None:
                    self._waiting.append(event)
                if event.diverged:
                    found.append(Diverged())
            elif isinstance(event, Described):
                self._of_metrics = event
                found.append(self._described())
            elif isinstance(event, Diverged):
                found.append(event)
        return found

    def _join(self, events: list[Event]) -> list[Event]:
        joined: list[Event] = []
        for event in events:
            if isinstance(event, Point):
                joined.append(replace(event, metric=self._metric_at(event.time)))
            elif isinstance(event, Described):
                self._of_steps = event
                joined.append(self._described())
            else:
                joined.append(event)
        return joined

    def _metric_at(self, time: float | None) -> float | None:
        """Returns the latest metric until then, and forgets it and those before it."""
        metric: float | None = None
        while self._waiting and (time is None or (self._waiting[0].time or 0.0) <= time):
            metric = self._waiting.popleft().metric
        return metric

    def _described(self) -> Described:
        of = self._of_metrics
        return replace(self._of_steps, metric=of.metric, direction=of.direction)
