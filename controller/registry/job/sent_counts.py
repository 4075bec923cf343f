"""Bytes that hosts have sent for a job, added up over the counts of their agents, each of which began at zero."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Iterable, Mapping

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


class SentByHost:
    """The bytes of one run of a job, by host. ``counts`` has the counts of each host that counts them."""

    def __init__(self, counts: Mapping[str, SentCounts] | None = None) -> None:
        self.counts: dict[str, SentCounts] = dict(counts or {})

    def merge(self, host: str, count: str, sent: float) -> bool:
        """Merge one of a host's counts, which only grows; returns whether it grew. A first one grows even to 0."""
        return self.counts.setdefault(host, SentCounts()).merge(count, sent)

    @property
    def by_host(self) -> dict[str, float]:
        """The bytes of each host, summed over its counts."""
        return {host: counts.total for host, counts in sorted(self.counts.items())}

    @property
    def total(self) -> float | None:
        """The bytes over all hosts; None where no host counts them."""
        return sum(counts.total for counts in self.counts.values()) if self.counts else None
