"""Signals, heard by a thread of their own, which works also while the controller's one thread is busy or hangs.

The system's own handler writes each signal into a pipe; the thread reads it there. Everything else is done by the
controller's thread, which the thread wakes by a second pipe: Python's own handlers would wait until that thread's poll
ends, up to a period, and eventlet's locks, those of the log included, are of no use in other threads.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from types import FrameType

import eventlet
from eventlet import hubs, patcher

from controller.process.early import ENDS

FAILED = 1
"""The exit status of a stop that did not come to its end."""

# Those of the system: eventlet's would wait in a hub of this thread's own.
_threading = patcher.original("threading")
_select = patcher.original("select")


class Signals:
    """SIGINT and SIGTERM call ``stop``, SIGHUP calls ``hang_up``, both in green threads.

    A second SIGINT or SIGTERM ends the process at once, and so does a stop that takes longer than ``seconds``: then the
    exit status is FAILED.
    """

    def __init__(self, stop: Callable[[], None], hang_up: Callable[[], None], seconds: float) -> None:
        self._stop = stop
        self._hang_up = hang_up
        self._seconds = seconds
        # What comes from the system, and what goes on to the green thread.
        self._heard, self._caught = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self._handed, self._hand_on = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)

    def listen(self) -> None:
        """Begin; for the main thread."""
        signal.set_wakeup_fd(self._caught, warn_on_full_buffer=False)
        for number in (*ENDS, signal.SIGHUP):
            # Who runs it under nohup ignores SIGHUP already.
            if signal.getsignal(number) != signal.SIG_IGN:
                signal.signal(number, _heard_by_the_thread)
        os.register_at_fork(after_in_child=_forget)
        _threading.Thread(target=self._hear, name="signals", daemon=True).start()
        eventlet.spawn(self._obey)

    def _hear(self) -> None:
        """Hand the signals on, and end the process where that must not wait. In a thread of the system's own."""
        left: float | None = None
        while True:
            if not _select.select([self._heard], [], [], left)[0]:
                _end(f"the stop has not come to its end within {self._seconds:g} s; what was answered last may be lost")
            for number in os.read(self._heard, 1024):
                if number not in ENDS:
                    os.write(self._hand_on, bytes([number]))
                elif left is None:
                    left = self._seconds
                    os.write(self._hand_on, bytes([number]))
                else:
                    _end("a second signal has ended the stop; what was answered last may be lost")

    def _obey(self) -> None:
        while True:
            hubs.trampoline(self._handed, read=True)
            for number in os.read(self._handed, 1024):
                eventlet.spawn(self._stop if number in ENDS else self._hang_up)


def _heard_by_the_thread(_number: int, _frame: FrameType | None) -> None:
    """The system has written the signal into the pipe."""


def _forget() -> None:
    """In a child that was forked: its signals are its own, and must not be written into its parent's pipe."""
    signal.set_wakeup_fd(-1)
    for number in (*ENDS, signal.SIGHUP):
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)


def _end(reason: str) -> None:
    os.write(2, f"trainyard: {reason}\n".encode())
    os._exit(FAILED)
