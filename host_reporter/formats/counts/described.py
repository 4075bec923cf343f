"""What the lines of a run say of the job itself, each time that it is news. Pure."""

from __future__ import annotations

from host_reporter.formats.events import MAX_ITERATION, Described, Direction

MAX_DESCRIBED = 10
"""Describe one run at most so often: each description registers the job anew, and triggers a plan."""


class Descriptions:
    """The descriptions of one run. ``preset`` is what reads its lines."""

    def __init__(self, preset: str | None) -> None:
        self._preset = preset
        self._last = Described()
        self._count = 0

    def news(
        self,
        metric: str | None,
        direction: Direction | None,
        length: float | None,
        *,
        is_guess: bool,
        counts_epochs: bool,
    ) -> list[Described]:
        """Returns the description, if it is another one than the last."""
        known = self._last.iterations if self._last.counts_epochs == counts_epochs else None
        iterations = length if length is not None and 0 < length <= MAX_ITERATION else known
        described = Described(metric, direction, iterations, self._preset, is_guess, counts_epochs)
        if described == self._last or self._count >= MAX_DESCRIBED:
            return []
        self._last = described
        self._count += 1
        return [described]
