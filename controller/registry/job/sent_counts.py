"""Bytes that a host has sent for a job, added up over its agent's counts, each of which began at zero."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Iterable

from controller.wire import MAX_BYTES

MAX_COUNTS = 8
"""Keep this many counts one by one, because late batches may still add to them. Older ones are only in the sum."""


class SentCounts:
    """One host's counts of one job, by name. ``before``: the sum of the older counts, which are not kept one by one."""

    __slots__ = ("_counts", "before")

    def __init__(self, before: float = 0.0, counts: Iterable[tuple[str, float]] = ()) -> None:
        self.before = before
        self._counts = OrderedDict(counts)

    def merge(self, name: str, sent: float) -> bool:
        """Merge the present value of a count, which only grows; returns whether it grew."""
        if sent <= self._counts.get(name, -1.0):
            return False
        if not self._counts:
            # An older journal has no names. The sum that it holds may be of this very count.
            self.before = max(self.before - sent, 0.0)
        self._counts[name] = sent
        while len(self._counts) > MAX_COUNTS:
            self.before = min(self.before + self._counts.popitem(last=False)[1], MAX_BYTES)
        return True

    @property
    def total(self) -> float:
        """All bytes, in whatever order the batches came."""
        return self.before + math.fsum(self._counts.values())

    def latest(self) -> tuple[tuple[str, float], ...]:
        """Returns the counts that are kept one by one, oldest first."""
        return tuple(self._counts.items())
