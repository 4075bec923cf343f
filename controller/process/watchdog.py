"""Reports when the event loop stands still, from a thread that does not depend on it.

All of the controller runs in green threads of one event loop, so one that keeps the processor blocks everything:
requests, switches, signals. One green thread notes the time again and again. A thread of the operating system looks at
that time. If it is old, the thread writes once where the loop stands, and no longer tells systemd that the controller
lives; systemd then restarts it.
"""

from __future__ import annotations

import contextlib
import faulthandler
import logging
import sys
import threading
import time
import traceback

import eventlet
from eventlet import patcher

from controller.process.sd_notify import Notifier

LOG = logging.getLogger("trainyard.watchdog")
STILL_SECONDS = 5.0
"""The loop counts as standing still after this time. No part of the controller keeps it on purpose above 20 ms."""
LOOK_SECONDS = 1.0
STDERR = 2

_real_threading = patcher.original("threading")
_real_os = patcher.original("os")
_real_time = patcher.original("time")


class Watchdog:
    """Watches the loop from ``start``, which the event loop's thread calls, to the end of the process."""

    def __init__(self, notifier: Notifier) -> None:
        self._notifier = notifier
        limit = notifier.watchdog_seconds
        self.still_seconds = STILL_SECONDS if limit is None else min(STILL_SECONDS, limit / 2)
        self._look_seconds = min(LOOK_SECONDS, self.still_seconds / 4)
        self._loop_thread = threading.get_ident()
        self._beat_at = time.monotonic()

    def start(self) -> None:
        """Begin, and tell systemd that the controller is ready as soon as the loop runs."""
        self._loop_thread = _real_threading.get_ident()
        self._beat_at = time.monotonic()
        eventlet.spawn(self._beat)
        _real_threading.Thread(target=self._look, name="watchdog", daemon=True).start()

    def stop(self) -> None:
        """Tell systemd that the controller stops. A loop that stands still is reported all the same."""
        self._notifier.say("STOPPING=1")

    def _beat(self) -> None:
        eventlet.sleep(0)  # the servers that start with this thread listen before it goes on
        self._notifier.say("READY=1")
        while True:
            still = time.monotonic() - self._beat_at
            self._beat_at = time.monotonic()
            if still >= self.still_seconds:
                LOG.warning("the event loop goes on, after it has stood still for %.1f s", still)
            eventlet.sleep(self._look_seconds / 2)

    def _look(self) -> None:
        is_reported = False
        while True:
            # Where something blocks the interpreter itself, this thread cannot run either; faulthandler's thread can.
            faulthandler.dump_traceback_later(self.still_seconds + 2 * self._look_seconds, file=STDERR)
            _real_time.sleep(self._look_seconds)
            still = time.monotonic() - self._beat_at
            if still < self.still_seconds:
                is_reported = False
                if self._notifier.watchdog_seconds is not None:
                    self._notifier.say("WATCHDOG=1")
            elif not is_reported:
                is_reported = True
                self._report(still)

    def _report(self, still: float) -> None:
        """Write where the loop stands. Not by logging, whose locks belong to the loop that stands still."""
        frame = sys._current_frames().get(self._loop_thread)
        stack = "".join(traceback.format_stack(frame)) if frame is not None else "  (no stack)\n"
        text = f"trainyard: the event loop has stood still for {still:.1f} s. It is at:\n{stack}"
        with contextlib.suppress(OSError):
            _real_os.write(STDERR, text.encode(errors="replace"))
