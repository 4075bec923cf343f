"""How far a host's clock is off the controller's, from when its batches were sent and when they came.

A batch that comes late and a clock that is behind look the same once. So one sample is believed only where it is
close to what was known; a jump must be confirmed by the next batches, and until then the clock is taken to go on as
it did.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

WINDOW = 16
PLAUSIBLE_SECONDS = 10.0
"""A request that takes longer has timed out on its way; a clock that is corrected slowly moves less between batches."""
CONFIRMATIONS = 3


class HostClock:
    """One host's clock. ``offset`` is what to add to its times to get the controller's; 0 before anything is known."""

    __slots__ = ("_recent", "_strays")

    def __init__(self, recent: Iterable[float] = (), strays: Iterable[float] = ()) -> None:
        self._recent = deque(recent, maxlen=WINDOW)
        self._strays = list(strays)

    @property
    def offset(self) -> float:
        """Seconds: the batch that came fastest, of the latest ones, tells best how the two clocks differ."""
        return min(self._recent, default=0.0)

    def note(self, sent_at: float, now: float) -> None:
        """Take a batch into account that was sent at ``sent_at`` by the host's clock and came ``now``."""
        sample = now - sent_at
        if abs(sample - self.offset) <= PLAUSIBLE_SECONDS:
            self._recent.append(sample)
            self._strays.clear()
            return
        if self._strays and abs(sample - self._strays[-1]) > PLAUSIBLE_SECONDS:
            self._strays.clear()
        self._strays.append(sample)
        if len(self._strays) >= CONFIRMATIONS:
            self._recent = deque(self._strays, maxlen=WINDOW)
            self._strays.clear()

    def samples(self) -> tuple[list[float], list[float]]:
        """The samples that are believed and those that are not yet, for the journal."""
        return list(self._recent), list(self._strays)
