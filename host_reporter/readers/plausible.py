"""Decides which points of progress are plausible: one absurd number would be a job's progress for good."""

from __future__ import annotations

from controller.model import Progress

SLACK = 2.0
"""A run may have at most so many times its declared iterations, as in controller.registry.job.run_length."""

LEAP = 1000.0
"""Where the length is not known, an iteration above so many times the highest one before is a leap."""

FIRST_STRETCH = 1000.0
"""The highest iteration counts as this at least, since a run may begin at a checkpoint."""


class PlausibilityFilter:
    """The filter of one run of a job. ``complaint`` is the first reason why a point was left out, if one was."""

    def __init__(self) -> None:
        self.complaint: str | None = None
        self._highest = FIRST_STRETCH
        self._leap: Progress | None = None

    def accept(self, point: Progress, iterations: float | None) -> tuple[Progress, ...]:
        """Returns the plausible points so far. ``iterations`` is the declared length of the run, if it is known."""
        if iterations is not None:
            if point.iteration > SLACK * iterations:
                self._complain(
                    f"iteration {point.iteration:g} is not believed, nor any other beyond {SLACK:g} times "
                    f"the {iterations:g} of its spec"
                )
                return ()
            return (point,)
        if point.iteration <= self._highest * LEAP:
            if self._leap is not None:
                self._complain(f"iteration {self._leap.iteration:g} is not believed: the ones after it are far lower")
                self._leap = None
            self._highest = max(self._highest, point.iteration)
            return (point,)
        leap, self._leap = self._leap, point
        if leap is None or not leap.iteration < point.iteration <= leap.iteration * LEAP:
            return ()
        # It goes on from where it leapt to, so it was no slip.
        self._highest, self._leap = point.iteration, None
        return (leap, point)

    def _complain(self, complaint: str) -> None:
        self.complaint = self.complaint or complaint
