"""Which inputs are still in the caches: by how many bytes were touched between two uses of a tensor. Pure.

[ours] Up to ``NEAR_BYTES`` a tensor is near, from ``FAR_BYTES`` on it is far, between them in part, by the logarithm:
the second- and last-level caches of a server's processor, which others use too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

NEAR_BYTES = 2**20
FAR_BYTES = 2**25


@dataclass
class Reuse:
    """The touches of one iteration, in order; an iteration follows another just like it."""

    _touched: float = 0.0
    _last: dict[int, float] = field(default_factory=dict)
    _reads: list[tuple[float, Sequence[int], Sequence[int], list[float | None]]] = field(default_factory=list)

    def note(self, read: Sequence[int], bytes_: Sequence[int], written: Sequence[int], size: float) -> None:
        """An operator: the storages that it reads, the bytes of each, those that it writes, and the bytes that it
        moves.
        """
        last = self._last
        self._reads.append((self._touched, read, bytes_, [last.get(storage) for storage in read]))
        self._touched += size
        for storage in read:
            last[storage] = self._touched
        for storage in written:
            last[storage] = self._touched

    def far_shares(self) -> list[float]:
        """By operator: the share of what it reads that comes from memory."""
        return [self._share(*reads) for reads in self._reads]

    def _share(self, at: float, read: Sequence[int], bytes_: Sequence[int], before: Sequence[float | None]) -> float:
        total = sum(bytes_)
        if not total:
            return 0.0
        far = 0.0
        for storage, size, last in zip(read, bytes_, before, strict=True):
            # What is used for the first time was used last in the iteration before, as the weights were.
            since = at - last if last is not None else at + self._touched - self._last[storage]
            far += size * farness(since)
        return far / total


def farness(since: float) -> float:
    """0: in the nearest caches; 1: in memory."""
    if since <= NEAR_BYTES:
        return 0.0
    return min(1.0, math.log(since / NEAR_BYTES) / math.log(FAR_BYTES / NEAR_BYTES))
