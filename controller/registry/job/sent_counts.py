"""Bytes that a host has sent for a job, added up over its agent's counts, each of which began at zero."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Iterable

from controller.wire import MAX_BYTES

MAX_COUNTS = 8
"""Counts of which late batches may still tell; older ones are only in the sum."""


class SentCounts:
    """One host's counts of one job, by name. ``before``: the sum of those that are not kept one by one any more."""

    __slots__ = ("_counts", "before")

    def __init__(self, before: float = 0.0, counts: Iterable[tuple[str, float]] = ()) -> None:
        self.before = before
        self._counts = OrderedDict(counts)

    def merge(self, name: str, sent: float) -> bool:
        """Take what a count has come to, which only grows; whether it grew."""
        if sent <= self._counts.get(name, -1.0):
            return False
        if not self._counts:
            # A journal of before there were names: the count that it knew may be this one.
            self.before = max(self.before - sent, 0.0)
        self._counts[name] = sent
        while len(self._counts) > MAX_COUNTS:
            self.before = min(self.before + self._counts.popitem(last=False)[1], MAX_BYTES)
        return True

    @property
    def total(self) -> float:
        """All bytes; the same in whatever order they were told."""
        return self.before + math.fsum(self._counts.values())

    def latest(self) -> tuple[tuple[str, float], ...]:
        """The counts that are kept one by one, oldest first."""
        return tuple(self._counts.items())
