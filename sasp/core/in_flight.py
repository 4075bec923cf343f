"""How long something is in flight, and how much: the network's rate as one worker sees it. Pure; times come in."""

from __future__ import annotations

from typing import NamedTuple


class Carried(NamedTuple):
    """How much has come, in any unit, and the seconds during which something was on its way."""

    size: int
    seconds: float


class InFlight:
    """What is on its way now, and what has come since the last look."""

    def __init__(self) -> None:
        self._outstanding = 0
        self._since = 0.0
        self._size = 0
        self._seconds = 0.0

    def sent(self, size: int, now: float) -> None:
        """So much is on its way from ``now`` on, perhaps behind others."""
        if not self._outstanding:
            self._since = now
        self._outstanding += size

    def came(self, size: int, now: float) -> None:
        """The answer to so much has come."""
        self._outstanding -= size
        self._size += size
        if not self._outstanding:
            self._seconds += now - self._since

    def look(self, now: float) -> Carried:
        """Return what has come since the last look."""
        if self._outstanding:
            self._seconds += now - self._since
            self._since = now
        carried = Carried(self._size, self._seconds)
        self._size, self._seconds = 0, 0.0
        return carried
