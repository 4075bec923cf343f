"""Where a run is, in iterations, from epochs and steps. Pure."""

from __future__ import annotations

from host_reporter.formats.reading import Reading

_LAP_SHARE = 0.5
"""Steps that begin anew without an epoch begin a new lap if the lap before had got at least so far."""


class Position:
    """Where one run is: iteration = the steps of all epochs before + step, from the first epoch that was seen.

    With epochs of one length that is (epoch - first epoch) x of + step. A run whose lines have epochs only counts
    epochs (``counts_epochs``): who knows the traffic can map them to iterations.
    """

    def __init__(self) -> None:
        self.counts_epochs = False
        self._has_steps = False
        self._first: float | None = None
        self._epoch: float | None = None
        self._epochs: float | None = None
        self._offset = 0.0
        self._total: float | None = None
        self._of: float | None = None
        self._before = 0.0
        self._step: float | None = None
        self._has_begun = False
        self._turned = False

    @property
    def total(self) -> float | None:
        """How many iterations the lines say that the run has; None: they do not say it."""
        return self._total

    def expect(self, total: float | None) -> None:
        """The run has so many iterations; None: it is to be said anew."""
        self._total = total

    @property
    def length(self) -> float | None:
        """How many iterations the run has; None: it is not known."""
        if self._total is not None and not self.counts_epochs:
            return self._total
        if self._epochs is None:
            return None
        # Where epochs count from 0 and the last one has the number of all, there is one more: 0/2, 1/2, 2/2.
        epochs = self._epochs + (self._first == 0.0 and self._epoch == self._epochs)
        if self.counts_epochs:
            return epochs - max(self._offset, 0.0)
        earlier = max((self._first or 0.0) - 1.0, 0.0)
        return (epochs - earlier) * self._of if self._of else None

    @property
    def first_epoch(self) -> float | None:
        """The first epoch that was seen."""
        return self._first

    def advance(self, reading: Reading) -> float | None:
        """Returns the iterations done; None where the line does not tell them."""
        self._epochs = reading.epochs or self._epochs
        self._total = reading.total or self._total
        if reading.iteration is not None:
            self._has_steps, self.counts_epochs = True, False
            if reading.epoch is not None:
                self._enter(reading.epoch)
            return reading.iteration
        if reading.step is not None:
            return self._at_step(reading, reading.step)
        if reading.more is not None:
            self._has_steps, self.counts_epochs = True, False
            self._before += reading.more
            return self._before
        return self._at_epoch(reading, reading.epoch) if reading.epoch is not None else None

    def _at_step(self, reading: Reading, step: float) -> float | None:
        if self._is_of_another_loop(reading):
            return None
        self._has_steps, self.counts_epochs = True, False
        if reading.total is not None and reading.of is None:
            return step
        if reading.epoch is not None:
            self._enter(reading.epoch)
        elif reading.of is not None and self._epoch is None and self._is_new_lap(step, reading.of):
            self._before += reading.of
        if self._turned and self._step is not None and step <= self._step:
            # The steps begin anew in each epoch, so the last one was the epoch's length.
            self._before += self._step
        self._turned = False
        self._of = reading.of or self._of
        self._step, self._has_begun = step, True
        return self._before + step

    def _is_of_another_loop(self, reading: Reading) -> bool:
        """Returns whether a bar without an epoch, within a named one, is of a validation: it has another length."""
        if reading.epoch is not None or self._epoch is None or not self._has_begun:
            return False
        return reading.of is not None and self._of not in (None, reading.of)

    def _is_new_lap(self, step: float, of: float) -> bool:
        return self._step is not None and step < self._step and self._step >= _LAP_SHARE * of

    def _enter(self, epoch: float) -> None:
        """From here on lines are of this epoch."""
        whole = float(int(epoch))
        if self._first is None:
            self._first = whole
        if self._epoch is not None and whole != self._epoch:
            self._before = max(0.0, self._before + (whole - self._epoch) * (self._of or 0.0))
            self._turned = self._of is None and whole > self._epoch
            self._has_begun = False
        self._epoch = whole

    def _at_epoch(self, reading: Reading, epoch: float) -> float | None:
        """A line without steps: the head of an epoch, or what is said at its end."""
        if self._has_steps:
            self._enter(epoch)
            return None
        is_head = not reading.metrics
        if self._first is None:
            self._first = float(int(epoch))
            self._offset = self._first if epoch != self._first else self._first - 1.0
            self._epoch = self._first
            if is_head:
                return None
        self._epoch = float(int(epoch))
        self.counts_epochs = True
        done = epoch - self._offset - (1.0 if is_head else 0.0)
        return max(done, 0.0)
