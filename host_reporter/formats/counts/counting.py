"""From readings to events: where the run is, its metric, and what is said of it. Pure."""

from __future__ import annotations

from host_reporter.formats.counts.belief import Belief
from host_reporter.formats.counts.choice import MetricChoice, Wanted
from host_reporter.formats.counts.described import Descriptions
from host_reporter.formats.counts.files import begins_a_run, is_written_again
from host_reporter.formats.counts.late import LateLines
from host_reporter.formats.counts.other_loops import OtherLoops
from host_reporter.formats.counts.position import Position
from host_reporter.formats.counts.values import Lasting, Unplaced, diverges, is_reportable
from host_reporter.formats.events import MAX_ITERATION, Diverged, Ended, Event, Point
from host_reporter.formats.reading import Reading

LATE = 0.9
"""A validation that comes first when this share of the run is done is a final one, and makes no curve."""

__all__ = ["Counter", "Wanted"]


class Counter:
    """The events of one job's readings. Iterations never go back within a run, except with metrics that come late."""

    def __init__(self, wanted: Wanted, preset: str | None = None, *, is_guess: bool = False) -> None:
        self._choice = MetricChoice(wanted)
        self._declared_length = wanted.iterations
        self._preset, self._is_guess = preset, is_guess
        self._new_file: Position | None = None
        self._is_file_new = False
        self._belief = Belief()
        self._begin_run()

    def _begin_run(self) -> None:
        self._position, self._loops = Position(), OtherLoops()
        self._belief = Belief(self._belief.complaint)
        self._descriptions = Descriptions(self._preset)
        self._unplaced, self._lasting, self._late = Unplaced(), Lasting(), LateLines()
        self._first: Reading | None = None
        self._is_read_again = False

    @property
    def metric(self) -> str | None:
        """The name of the run's metric, if one was chosen."""
        return self._choice.name

    @property
    def highest(self) -> float | None:
        """The highest iteration of the run; None: none was read."""
        return self._belief.highest

    def prove(self) -> None:
        """The preset, which was a guess, is proven."""
        self._is_guess = False

    def begin_file(self) -> None:
        """The next readings are of a file that was begun anew, or of another one."""
        self._new_file = Position() if self.highest is not None else None
        self._is_file_new = True

    def problem(self) -> str | None:
        """Returns what a person should know, if anything."""
        return self._belief.complaint or self._choice.problem()

    def count(self, reading: Reading) -> list[Event]:
        """Returns the events of one reading."""
        events: list[Event] = []
        if reading.begun and self.highest != (self._belief.first or 0.0):
            self.begin_file()
            self._is_file_new = False
        if self._new_file is not None and (reading.counts or reading.total is not None):
            begin = self._new_file.advance(reading)
            if begin is None:
                # The head of an epoch or of the run: it says where the run is with the steps after it.
                return []
            events += self.settle() + self._begin_file(reading, self._new_file, begin)
        if self._loops.has(reading, self._position.total, self.highest):
            return events
        if self._first is None and reading.counts:
            self._first = reading
        events += self._point(reading)
        if reading.ended:
            events += [*self.settle(), Ended()]
            self._begin_run()
        return events

    def settle(self) -> list[Event]:
        """No more lines come before the next step: returns the events of those that waited for more."""
        return [*self._late.release(self.highest or 0.0)]

    def _begin_file(self, reading: Reading, position: Position, begin: float) -> list[Event]:
        """The first reading of a new file: of the same lines once more, of a new run, or of the same run.

        Or of a program that has begun again in the same file.
        """
        self._new_file, self._belief.complaint = None, None
        if self._is_file_new and is_written_again(self._first, reading):
            self._position, self._is_read_again = position, True
            return []
        before = self._belief
        if begins_a_run(begin, position.first_epoch, self._first, before.first or 0.0, before.highest or 0.0):
            self._begin_run()
            self._position = position
            return [Ended()]
        self._position.expect(position.total)
        self._loops = OtherLoops()
        return []

    def _point(self, reading: Reading) -> list[Event]:
        counted_epochs = self._position.counts_epochs
        iteration = self._position.advance(reading)
        turn = self._turn_to_steps() if counted_epochs and not self._position.counts_epochs else []
        before, value = self._choice.name, self._choice.pick(reading.metrics, is_late=self._is_near_end)
        if has_turned := self._choice.name != before:
            self._unplaced.forget()
            self._late.forget_metrics()
        diverged = diverges(reading, value)
        metric = self._reported(reading, value)
        described = turn + self._describe()
        if self._may_come_late(reading):
            placed = self._place(iteration, None, reading, diverged=diverged, has_turned=has_turned)
            return described + placed + self._hold(metric, reading)
        return described + self._place(iteration, metric, reading, diverged=diverged, has_turned=has_turned)

    def _place(
        self, iteration: float | None, metric: float | None, reading: Reading, *, diverged: bool, has_turned: bool
    ) -> list[Event]:
        """Returns the point of a reading, with the metric that waits for it."""
        if iteration is None or not 0 <= iteration <= MAX_ITERATION:
            return self._without_step(metric, reading, diverged=diverged)
        metric = metric if metric is not None else self._unplaced.take()
        if self._is_read_again and self._is_old(iteration, has_turned=has_turned):
            return []
        self._is_read_again = False
        if not self._belief.accepts(iteration, self._length):
            return [Diverged()] if diverged else []
        late: list[Event] = [*self._late.release(iteration)]
        if iteration == self.highest and metric is None and not diverged:
            return late
        self._belief.note(iteration)
        self._unplaced.step()
        return [*late, Point(iteration, metric, reading.time, diverged)]

    def _without_step(self, metric: float | None, reading: Reading, *, diverged: bool) -> list[Event]:
        if metric is not None and self._unplaced.is_of_the_step_before(metric) and self.highest is not None:
            return [Point(self.highest, metric, reading.time, diverged)]
        return [Diverged()] if diverged else []

    def _may_come_late(self, reading: Reading) -> bool:
        """Returns whether a line may be of an earlier step than the last one, of a run whose steps are known."""
        has_steps = self.highest is not None or reading.step is not None
        return reading.may_be_late and has_steps and not self._position.counts_epochs and not self._is_read_again

    def _hold(self, metric: float | None, reading: Reading) -> list[Event]:
        if reading.epoch is not None and self.highest is not None:
            self._late.hold(reading.epoch, metric, reading.time)
        return self.settle() if self._late.is_full else []

    def _turn_to_steps(self) -> list[Event]:
        """Steps come after lines that had epochs alone: the points that count epochs are a run of their own."""
        if self.highest is None:
            return []
        position = self._position
        self._begin_run()
        self._position = position
        return [Ended()]

    def _is_old(self, iteration: float, *, has_turned: bool) -> bool:
        """Returns whether a line that is read again was counted. The first one of a validation at the end was not."""
        if self.highest is None:
            return False
        return iteration < self.highest or (iteration == self.highest and not has_turned)

    @property
    def _length(self) -> float | None:
        """How many iterations the run has, or epochs where these are counted; None: it is not known."""
        own = self._position.length
        return own if self._position.counts_epochs and own is not None else self._declared_length or own

    @property
    def _is_near_end(self) -> bool:
        """Whether the run is near its end, as far as its length is known."""
        length = self._length
        return length is not None and self.highest is not None and self.highest >= LATE * length

    def _reported(self, reading: Reading, value: float | None) -> float | None:
        """Returns the metric's value if it is news and can be reported; without its direction it would mislead."""
        if reading.lasting:
            value = self._lasting.news(value, is_validation=self._choice.is_validation)
        if value is None or not is_reportable(value) or self._choice.direction is None:
            return None
        return value

    def _describe(self) -> list[Event]:
        choice, position = self._choice, self._position
        return [
            *self._descriptions.news(
                choice.name,
                choice.direction,
                position.length,
                is_guess=self._is_guess,
                counts_epochs=position.counts_epochs,
            )
        ]
