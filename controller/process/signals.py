"""Signals have a thread of their own, which works also while the controller's main thread is busy or hangs.

The C handler of Python writes each signal into a pipe, where the thread reads it. The thread wakes the main thread by a
second pipe, and the main thread does everything else. Python's own handlers would wait until the main thread's poll
ends, up to a period, and eventlet's locks, those of the log included, do not work in other threads.
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
"""The process ends with this status when its stop is not completed."""

# The unpatched modules: eventlet's would wait in a hub of this thread.
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
        # The first pipe is from the system, the second to the green thread.
        self._heard, self._caught = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self._handed, self._hand_on = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)

    def listen(self) -> None:
        """Begin. Call it in the main thread."""
        signal.set_wakeup_fd(self._caught, warn_on_full_buffer=False)
        for number in (*ENDS, signal.SIGHUP):
            # Under nohup SIGHUP is ignored already.
            if signal.getsignal(number) != signal.SIG_IGN:
                signal.signal(number, _ignore)
        os.register_at_fork(after_in_child=_forget)
        _threading.Thread(target=self._hear, name="signals", daemon=True).start()
        eventlet.spawn(self._obey)

    def _hear(self) -> None:
        """Forward the signals, and end the process where that must not wait. Runs in a system thread."""
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


def _ignore(_number: int, _frame: FrameType | None) -> None:
    """Do nothing: the signal is in the pipe already."""


def _forget() -> None:
    """In a forked child, restore the default handlers: its signals must not go into its parent's pipe."""
    signal.set_wakeup_fd(-1)
    for number in (*ENDS, signal.SIGHUP):
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)


def _end(reason: str) -> None:
    os.write(2, f"trainyard: {reason}\n".encode())
    os._exit(FAILED)
