"""The fewest front layers that must be late, found by measured iterations: a recursion alone is too hopeful. Pure.

[ours] The recursion of ``partial`` knows neither workers that are slower now and then nor what waits for what in a real
network. So its choice is only the guess from which a search begins. First all layers are late, which shows how fast an
iteration can be. Then the guess is tried, and if it is too slow, more front layers, in halves.
"""

from __future__ import annotations

from collections.abc import Sequence

from sasp.core.partial import GAIN

SLACK = 0.05
"""An iteration may take this share longer than with all layers late."""


class LeadSearch:
    """What to try next, until ``is_over``; ``leads`` are those to train with, now or for good."""

    def __init__(self, guess: Sequence[int], seconds: float) -> None:
        """``guess``: by layer, front first, of which one is late; an iteration takes ``seconds`` if none is."""
        self._guess = tuple(guess)
        self._staleness = max(guess)
        self._without = seconds
        self._limit: float | None = None
        # Between these many front layers is the answer; and so many are tried now.
        self._low = next((i for i, lead in enumerate(guess) if lead < self._staleness), len(guess))
        self._high = self._tried = len(guess)

    @property
    def leads(self) -> tuple[int, ...]:
        """By how many iterations each layer is late, front first."""
        return (self._staleness,) * self._tried + self._guess[self._tried :]

    @property
    def is_over(self) -> bool:
        """Whether nothing is left to try."""
        return self._limit is not None and self._low >= self._high

    def note(self, seconds: float) -> None:
        """An iteration takes so many seconds with ``leads``."""
        if self._limit is None:
            self._limit = (1 + SLACK) * seconds
            if seconds > (1 - GAIN) * self._without:
                self._low = self._high = self._tried = 0
                self._guess = (0,) * len(self._guess)
                return
            self._tried = self._low
            return
        if seconds <= self._limit:
            self._high = self._tried
        else:
            self._low = self._tried + 1
        self._tried = (self._low + self._high) // 2
