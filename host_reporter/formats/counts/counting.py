"""From readings to events: where the run is, its metric, and what is said of it. Pure."""

from __future__ import annotations

import math

from host_reporter.formats import names
from host_reporter.formats.counts.choice import MetricChoice, Wanted
from host_reporter.formats.counts.other_loops import OtherLoops
from host_reporter.formats.counts.position import Position
from host_reporter.formats.events import MAX_ITERATION, MAX_METRIC, Described, Diverged, Ended, Event, Point
from host_reporter.formats.reading import Reading

NEAR_START = 0.05
"""A new file begins a new run if its first iteration is at most this share of the highest one before."""

SLACK = 2.0
"""A run may have at most so many times the length that its lines tell."""

LATE = 0.9
"""A validation that comes first when this share of the run is done is a final one, and makes no curve."""

LEAP = 1000.0
"""An iteration above so many times the highest one before is a leap."""

FIRST_STRETCH = 1000.0
"""The highest iteration counts as this at least, since a run may begin at a checkpoint."""

MAX_DESCRIBED = 10
"""Describe one run at most so often: each description registers the job anew, and triggers a plan."""

__all__ = ["Counter", "Wanted"]


class Counter:
    """The events of one job's readings. Iterations never go back within a run; ``complaint`` says where they would.

    A metric on a line without a counter belongs to the step before it if steps came first in this output, and waits for
    the next step otherwise.
    """

    def __init__(self, wanted: Wanted, preset: str | None = None, *, is_guess: bool = False) -> None:
        self.complaint: str | None = None
        self.metrics = 0
        self._choice = MetricChoice(wanted)
        self._declared_length = wanted.iterations
        self._preset, self._is_guess = preset, is_guess
        self._new_file: Position | None = None
        self._is_file_new = False
        self._begin_run()

    def _begin_run(self) -> None:
        self._position, self._loops = Position(), OtherLoops()
        self._highest: float | None = None
        self._first_iteration = 0.0
        self._first: Reading | None = None
        self._waiting: float | None = None
        self._steps_come_first: bool | None = None
        self._described = Described()
        self._described_state: tuple[object, ...] = ()
        self._descriptions = 0
        self._is_read_again = False
        self._leap: float | None = None
        self._last: float | None = None

    @property
    def metric(self) -> str | None:
        """The name of the run's metric, if one was chosen."""
        return self._choice.name

    @property
    def highest(self) -> float | None:
        """The highest iteration of the run; None: none was read."""
        return self._highest

    def prove(self) -> None:
        """The preset, which was a guess, is proven."""
        self._is_guess = False

    def begin_file(self) -> None:
        """The next readings are of a file that was begun anew, or of another one."""
        self._new_file = Position() if self._highest is not None else None
        self._is_file_new = True

    def problem(self) -> str | None:
        """Returns what a person should know, if anything."""
        return self.complaint or self._choice.problem()

    def count(self, reading: Reading) -> list[Event]:
        """Returns the events of one reading."""
        events: list[Event] = []
        if reading.begun and self._highest != self._first_iteration:
            self.begin_file()
            self._is_file_new = False
        if self._new_file is not None and (reading.counts or reading.total is not None):
            begin = self._new_file.advance(reading)
            if begin is None:
                # The head of an epoch or of the run: it says where the run is with the steps after it.
                return []
            events += self._begin_file(reading, self._new_file, begin)
        if self._loops.has(reading, self._position.total, self._highest):
            return events
        if self._first is None and reading.counts:
            self._first = reading
        events += self._point(reading)
        if reading.ended:
            events.append(Ended())
            self._begin_run()
        return events

    def _begin_file(self, reading: Reading, position: Position, begin: float) -> list[Event]:
        """The first reading of a new file: of the same lines once more, of a new run, or of the same run.

        Or of a program that has begun again in the same file.
        """
        self._new_file, self.complaint = None, None
        if self._is_file_new and self._first is not None and _is_same(self._first, reading):
            self._position, self._is_read_again = position, True
            return []
        if not self._is_near_start(position, begin):
            self._position.expect(position.total)
            self._loops = OtherLoops()
            return []
        self._begin_run()
        self._position = position
        return [Ended()]

    def _is_near_start(self, position: Position, begin: float) -> bool:
        """Returns whether a new file begins near the start of a run."""
        first = self._first.epoch if self._first is not None else None
        if position.first_epoch is not None and position.first_epoch > max(1.0, first or 0.0):
            return False
        return begin <= max(NEAR_START * (self._highest or 0.0), self._first_iteration)

    def _point(self, reading: Reading) -> list[Event]:
        iteration = self._position.advance(reading)
        before, value = self._choice.name, self._choice.pick(reading.metrics, is_late=self._is_late)
        has_turned = self._choice.name != before
        if has_turned:
            self._waiting = None
        diverged = _diverges(reading, value)
        metric = self._usable(self._news(value) if reading.lasting else value)
        described = self._describe()
        if iteration is None or not 0 <= iteration <= MAX_ITERATION:
            return described + self._without_step(metric, reading, diverged=diverged)
        if metric is None:
            metric, self._waiting = self._waiting, None
        if self._is_read_again and self._is_old(iteration, has_turned=has_turned):
            return described
        self._is_read_again = False
        if not self._is_believed(iteration) or self._goes_back(iteration):
            return [*described, *([Diverged()] if diverged else [])]
        if iteration == self._highest and metric is None and not diverged:
            return described
        if self._highest is None:
            self._first_iteration = iteration
        self._highest = iteration
        if self._steps_come_first is None:
            self._steps_come_first = True
        return [*described, Point(iteration, metric, reading.time, diverged)]

    def _is_old(self, iteration: float, *, has_turned: bool) -> bool:
        """Returns whether a line that is read again was counted. The first one of a validation at the end was not."""
        if self._highest is None:
            return False
        return iteration < self._highest or (iteration == self._highest and not has_turned)

    def _is_believed(self, iteration: float) -> bool:
        """Returns whether an iteration is no slip: it is not far beyond the run, nor a leap that no other confirms."""
        length = self._declared_length or self._position.length
        if length is not None and iteration > SLACK * length:
            self._complain(
                f"iteration {iteration:g} is not believed, nor any other beyond {SLACK:g} times the {length:g} "
                "of the run"
            )
            return False
        leap, self._leap = self._leap, None
        if iteration <= max(self._highest or 0.0, FIRST_STRETCH) * LEAP:
            if leap is not None:
                self._complain(f"iteration {leap:g} is not believed: the ones after it are far lower")
            return True
        self._leap = iteration
        return leap is not None and leap < iteration <= leap * LEAP

    def _goes_back(self, iteration: float) -> bool:
        """Returns whether an iteration is below one before."""
        if self._highest is None or iteration >= self._highest:
            return False
        self._complain(
            f"its iterations go back from {self._highest:g} to {iteration:g}; "
            f"they are reported again beyond {self._highest:g}"
        )
        return True

    def _complain(self, complaint: str) -> None:
        self.complaint = self.complaint or complaint

    def _without_step(self, metric: float | None, reading: Reading, *, diverged: bool) -> list[Event]:
        if metric is not None and not self._steps_come_first:
            self._steps_come_first, self._waiting = False, metric
        elif metric is not None and self._highest is not None:
            return [Point(self._highest, metric, reading.time, diverged)]
        return [Diverged()] if diverged else []

    @property
    def _is_late(self) -> bool:
        """Whether the run is near its end, as far as its lines tell its length."""
        length = self._declared_length or self._position.length
        return length is not None and self._highest is not None and self._highest >= LATE * length

    def _news(self, value: float | None) -> float | None:
        """Returns a value unless it is that of the last validation."""
        is_old = value == self._last and self._choice.is_validation
        self._last = value if value is not None else self._last
        return None if is_old else value

    def _usable(self, value: float | None) -> float | None:
        """Returns the metric's value if it can be reported; without its direction it would mislead."""
        if value is None or not math.isfinite(value) or abs(value) > MAX_METRIC or self._choice.direction is None:
            return None
        self.metrics += 1
        return value

    def _describe(self) -> list[Event]:
        length = self._position.length
        state = (self._choice.name, length, self._position.counts_epochs, self._preset, self._is_guess)
        if state == self._described_state:
            return []
        self._described_state = state
        described = Described(
            self._choice.name,
            self._choice.direction,
            length if length is not None and 0 < length <= MAX_ITERATION else self._described.iterations,
            self._preset,
            self._is_guess,
            self._position.counts_epochs,
        )
        if described == self._described or self._descriptions >= MAX_DESCRIBED:
            return []
        self._described = described
        self._descriptions += 1
        return [described]


def _is_same(one: Reading, other: Reading) -> bool:
    """Returns whether two readings are of one line, which was written again, maybe with more metrics."""
    common = one.metrics.keys() & other.metrics.keys()
    counters = ("iteration", "epoch", "step", "time")
    return (
        all(getattr(one, name) == getattr(other, name) for name in counters)
        and (bool(common) or one.time is not None)
        and all(one.metrics[name] == other.metrics[name] for name in common)
    )


def _diverges(reading: Reading, value: float | None) -> bool:
    """Returns whether a reading, with this value of the run's metric, says that the run has diverged."""
    if reading.diverged or (value is not None and not math.isfinite(value)):
        return True
    return any(not math.isfinite(number) and names.is_loss(name) for name, number in reading.metrics.items())


def handed_over(events: list[Event], reported: float, highest: float) -> list[Event]:
    """Returns the events of a preset that was recognised late, after a guess had ``reported`` so many iterations.

    Where it counts lower, its ``highest`` iteration so far, its points are a new run's. Else those that were reported
    are left out, except the metrics of the last one.
    """
    if highest < reported:
        return [Ended(), *events]
    return [event for event in events if not isinstance(event, Point) or _is_beyond(event, reported)]


def _is_beyond(point: Point, reported: float) -> bool:
    return point.iteration > reported or (point.iteration == reported and point.metric is not None)
