"""Puts back what somebody else has changed, and says so: at once, and seldomer where it is changed again and again."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Protocol

from host_reporter.notices import Notices

QUICK_REPAIRS = 5
"""So many repairs in a row are made as soon as the change is seen; before each further one is a wait."""

FIRST_WAIT_SECONDS, LONGEST_WAIT_SECONDS = 2.0, 60.0
"""The first wait doubles with each further repair, up to the longest."""

CALM_SECONDS = 60.0
"""A repair this long after the last one is the first of a new row."""


class Installed(Protocol):
    """Something that the agent has put into the kernel, where others can change it."""

    def changed(self) -> Sequence[str]:
        """Returns what is no longer as it was installed, in words; nothing where all of it is."""

    def put_back(self) -> None:
        """Install it anew."""


class Pace:
    """When the next repair may be. Pure: the time comes in, in seconds of a clock that only goes forward."""

    def __init__(self) -> None:
        self._row = 0
        self._last = float("-inf")
        self._wait = 0.0

    def is_due(self, now: float) -> bool:
        """Returns whether a repair may be made now."""
        return now >= self._last + self._wait

    def repaired(self, now: float) -> float:
        """Count a repair. Returns the seconds until the next one may be; 0 where it may be at any time."""
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
    """The repairs of one installed thing, which is named ``what``. Not for several threads."""

    def __init__(self, what: str, notices: Notices, clock: Callable[[], float] = time.monotonic) -> None:
        self._what = what
        self._notices = notices
        self._clock = clock
        self._pace = Pace()

    def look(self, installed: Installed) -> bool:
        """Put back what is not as it was installed. Returns whether all of it is there now; False where it is not yet
        time to look again.

        Raises what ``installed`` raises.
        """
        if not self._pace.is_due(self._clock()):
            return False
        was = installed.changed()
        if not was:
            return True
        try:
            installed.put_back()
        except Exception:
            # What the kernel refuses is not to be tried all the time either.
            self._pace.repaired(self._clock())
            raise
        self.say(was)
        return True

    def say(self, was: Sequence[str]) -> None:
        """Say that this was not as it was installed, and is put back."""
        wait = self._pace.repaired(self._clock())
        again = ""
        if wait:
            again = (
                f"; that was repair {self._pace.row} in a row: the next one comes in {wait:g} s at the earliest; find "
                "out who changes it, such as a second agent, a firewall or a network manager"
            )
        self._notices.happened(f"somebody else has changed {self._what}: {'; '.join(was)}; it is put back{again}")
