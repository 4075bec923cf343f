"""Log lines that peers cause, limited for each address and minute, and for a bounded number of addresses."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

MINUTE = 60.0
MAX_ADDRESSES = 1000
"""Limits the remembered addresses. While all of them are of the last minute, nothing is logged of others."""


class PeerLog:
    """Logs at most ``lines`` lines for each address and minute, and how many it left out before."""

    def __init__(self, log: logging.Logger, lines: int = 1, clock: Callable[[], float] = time.monotonic) -> None:
        self._log = log
        self._lines = lines
        self._clock = clock
        self._minutes: dict[str, tuple[float, int]] = {}

    def say(self, level: int, address: str, text: str, *, error: BaseException | None = None) -> None:
        """Log ``text``, about ``address``, with the traceback of ``error``, unless the limit is reached."""
        now = self._clock()
        begin, count = self._minutes.get(address, (now, 0))
        left_out = 0
        if now - begin >= MINUTE:
            left_out = max(0, count - self._lines)
            begin, count = now, 0
            del self._minutes[address]
        if address not in self._minutes and not self._has_room(now):
            return
        self._minutes[address] = (begin, count + 1)
        if count < self._lines:
            more = f" ({left_out} lines like this were left out)" if left_out else ""
            self._log.log(level, "%s%s", text, more, exc_info=error)

    def _has_room(self, now: float) -> bool:
        """Returns whether another address can be remembered. Forgets the oldest one if its minute is over."""
        if len(self._minutes) < MAX_ADDRESSES:
            return True
        first = next(iter(self._minutes))
        if now - self._minutes[first][0] < MINUTE:
            return False
        del self._minutes[first]
        return True
