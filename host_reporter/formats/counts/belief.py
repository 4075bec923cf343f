"""Which iterations of a run are believed: one absurd number would be a job's progress for good. Pure."""

from __future__ import annotations

SLACK = 2.0
"""A run may have at most so many times the length that its lines tell."""

LEAP = 1000.0
"""An iteration above so many times the highest one before is a leap."""

BACK = 2
"""Say that iterations go back after so many in a row that are below the highest one."""

FIRST_STRETCH = 1000.0
"""The highest iteration counts as this at least, since a run may begin at a checkpoint."""


class Belief:
    """Judges the iterations of one run. ``complaint`` is the first reason why one was left out, if one was.

    ``highest`` is the highest one that was believed, ``first`` the first one; None: none was.
    """

    def __init__(self, complaint: str | None = None) -> None:
        self.complaint = complaint
        self.first: float | None = None
        self.highest: float | None = None
        self._leap: float | None = None
        self._back = 0

    def accepts(self, iteration: float, length: float | None) -> bool:
        """Returns whether an iteration goes on from those before. ``length`` is the run's; None: it is not known."""
        return not self._is_beyond(iteration, length) and not self._leaps(iteration) and not self._goes_back(iteration)

    def note(self, iteration: float) -> None:
        """An iteration was accepted."""
        self.first = iteration if self.first is None else self.first
        self.highest = iteration

    def _is_beyond(self, iteration: float, length: float | None) -> bool:
        if length is None or iteration <= SLACK * length:
            return False
        self._complain(
            f"iteration {iteration:g} is not believed, nor any other beyond {SLACK:g} times the {length:g} of the run"
        )
        return True

    def _leaps(self, iteration: float) -> bool:
        """Returns whether an iteration leaps, and no other one before confirms that."""
        leap, self._leap = self._leap, None
        if iteration <= max(self.highest or 0.0, FIRST_STRETCH) * LEAP:
            if leap is not None:
                self._complain(f"iteration {leap:g} is not believed: the ones after it are far lower")
            return False
        self._leap = iteration
        return leap is None or not leap < iteration <= leap * LEAP

    def _goes_back(self, iteration: float) -> bool:
        """Returns whether an iteration is below one before. One line that is may be of a summary: the best epoch."""
        if self.highest is None or iteration >= self.highest:
            self._back = 0
            return False
        self._back += 1
        if self._back < BACK:
            return True
        self._complain(
            f"its iterations go back from {self.highest:g} to {iteration:g}; "
            f"they are reported again beyond {self.highest:g}"
        )
        return True

    def _complain(self, complaint: str) -> None:
        self.complaint = self.complaint or complaint
