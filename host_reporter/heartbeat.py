"""A file that is touched as long as the agent's main loop goes on, for a probe that starts a hanging agent again."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

from host_reporter.notices import Notices

BEAT_SECONDS = 5.0
"""Touch the file at most this often."""
_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class Heartbeat:
    """Touches ``file``; None: there is none. For one thread."""

    def __init__(
        self,
        file: Path | None,
        notices: Notices,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._file = file
        self._notices = notices
        self._clock = clock
        self._sleep = sleep
        self._last = float("-inf")

    def beat(self) -> None:
        """Touch the file, if it is time to."""
        now = self._clock()
        if self._file is None or now - self._last < BEAT_SECONDS:
            return
        self._last = now
        try:
            descriptor = os.open(self._file, _FLAGS, 0o644)
            try:
                os.utime(descriptor)
            finally:
                os.close(descriptor)
        except OSError as error:
            self._notices.say("alive", f"{self._file} cannot be touched: {error.strerror}")
        else:
            self._notices.clear("alive")

    def sleep(self, seconds: float) -> None:
        """Sleep, and touch the file meanwhile."""
        while seconds > 0:
            self.beat()
            step = min(seconds, BEAT_SECONDS)
            self._sleep(step)
            seconds -= step
