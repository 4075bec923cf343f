"""Exponential back-off with full jitter: M. Brooker, Exponential Backoff And Jitter, AWS Architecture Blog, 2015."""

from __future__ import annotations

import random


class Backoff:
    """How long to wait before the next try: a random part of a bound that doubles with every failure."""

    def __init__(self, first_seconds: float = 0.2, most_seconds: float = 5.0) -> None:
        self._first = first_seconds
        self._most = most_seconds
        self._bound = first_seconds

    def next_seconds(self) -> float:
        """The wait after one more failure."""
        seconds = random.uniform(0.0, self._bound)  # noqa: S311 - spreads load, keeps no secret
        self._bound = min(self._bound * 2, self._most)
        return seconds

    def reset(self) -> None:
        """It worked."""
        self._bound = self._first
