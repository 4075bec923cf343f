"""Repairs what other programs have changed, and logs it. The first repairs are immediate; many in a row are delayed."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Protocol

from host_reporter.notices import Notices

QUICK_REPAIRS = 5
"""This many repairs in a row happen as soon as the change is seen. There is a wait before each further repair."""

FIRST_WAIT_SECONDS, LONGEST_WAIT_SECONDS = 2.0, 60.0
"""The first wait doubles with each further repair, up to the longest."""

CALM_SECONDS = 60.0
"""A repair this long after the last one begins a new row."""


class Installed(Protocol):
    """Something that the agent has put into the kernel, where others can change it."""

    def changed(self) -> Sequence[str]:
        """Returns in words what differs from the installation; an empty sequence where nothing does."""

    def put_back(self) -> None:
        """Install it again."""


class Pace:
    """Decides when the next repair may happen. Pure: its callers give the time, in seconds of a monotonic clock."""

    def __init__(self) -> None:
        self._row = 0
        self._last = float("-inf")
        self._wait = 0.0

    def is_due(self, now: float) -> bool:
        """Returns whether a repair may happen now."""
        return now >= self._last + self._wait

    def repaired(self, now: float) -> float:
        """Count a repair. Returns the seconds until the next repair may happen; 0 where it may happen at any time."""
        is_new = now - self._last > self._wait + CALM_SECONDS
        self._row = 1 if is_new else self._row + 1
        self._last = now
        over = self._row - QUICK_REPAIRS
        self._wait = 0.0 if over < 0 else min(FIRST_WAIT_SECONDS * 2.0 ** min(over, 10), LONGEST_WAIT_SECONDS)
        return self._wait

    @property
    def row(self) -> int:
        """The number of repairs in a row so far."""
        return self._row


class Repairs:
    """The repairs of one installed thing, which ``what`` names in messages. It is not thread-safe."""

    def __init__(self, what: str, notices: Notices, clock: Callable[[], float] = time.monotonic) -> None:
        self._what = what
        self._notices = notices
        self._clock = clock
        self._pace = Pace()

    def look(self, installed: Installed) -> bool:
        """Repair what differs from the installation. Returns whether all of it is installed now.

        Returns False where it is too early for the next look. Raises what ``installed`` raises.
        """
        if not self._pace.is_due(self._clock()):
            return False
        was = installed.changed()
        if not was:
            return True
        try:
            installed.put_back()
        except Exception:
            # A repair that the kernel refuses counts too, so that it is not tried all the time.
            self._pace.repaired(self._clock())
            raise
        self.say(was)
        return True

    def say(self, was: Sequence[str]) -> None:
        """Log a repair of ``was``, the differences from the installation."""
        wait = self._pace.repaired(self._clock())
        again = ""
        if wait:
            again = (
                f"; that was repair {self._pace.row} in a row: the next one comes in {wait:g} s at the earliest; find "
                "out who changes it, such as a second agent, a firewall or a network manager"
            )
        self._notices.happened(f"somebody else has changed {self._what}: {'; '.join(was)}; it is put back{again}")
