"""The offset of a host's clock from the controller's, from the times at which batches were sent and received.

One sample cannot tell a late batch from a clock that is behind. So a sample is believed only where it is close to the
known offset. A jump must be confirmed by the next batches; until then the old offset holds.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

WINDOW = 16
"""Keep this many samples."""
PLAUSIBLE_SECONDS = 10.0
"""Believe a sample at once if it is this close to the known offset.

A slower request has timed out on its way, and a clock that is corrected slowly moves less between two batches.
"""
CONFIRMATIONS = 3
"""Believe a jump of the clock after this many samples that agree."""


class HostClock:
    """One host's clock. ``offset`` is what to add to its times to get the controller's; 0 before anything is known."""

    __slots__ = ("_recent", "_unconfirmed")

    def __init__(self, recent: Iterable[float] = (), unconfirmed: Iterable[float] = ()) -> None:
        self._recent = deque(recent, maxlen=WINDOW)
        self._unconfirmed = list(unconfirmed)

    @property
    def offset(self) -> float:
        """Seconds. Of the latest batches the fastest one shows best how the two clocks differ."""
        return min(self._recent, default=0.0)

    @property
    def known_offset(self) -> float | None:
        """The offset in seconds. None: there is no sample yet that is believed."""
        return self.offset if self._recent else None

    def note(self, sent_at: float, now: float) -> None:
        """Add the sample of a batch: ``sent_at`` is by the host's clock, ``now`` by the controller's."""
        sample = now - sent_at
        if abs(sample - self.offset) <= PLAUSIBLE_SECONDS:
            self._recent.append(sample)
            self._unconfirmed.clear()
            return
        if self._unconfirmed and abs(sample - self._unconfirmed[-1]) > PLAUSIBLE_SECONDS:
            self._unconfirmed.clear()
        self._unconfirmed.append(sample)
        if len(self._unconfirmed) >= CONFIRMATIONS:
            self._recent = deque(self._unconfirmed, maxlen=WINDOW)
            self._unconfirmed.clear()

    def samples(self) -> tuple[list[float], list[float]]:
        """Returns the samples that are believed, and those that are not yet, for the journal."""
        return list(self._recent), list(self._unconfirmed)
