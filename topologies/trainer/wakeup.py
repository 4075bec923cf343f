"""One place where the main thread sleeps: woken by a task that is over, by a signal, or by a deadline."""

from __future__ import annotations

import select
import signal
import socket
from types import FrameType, TracebackType

SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_TASK_OVER = b"\0"


class Bell:
    """Use it as a context, in the main thread; in it, ``SIGNALS`` ring instead of ending the process."""

    def __init__(self) -> None:
        self._hear, self._strike = socket.socketpair()

    def __enter__(self) -> Bell:
        self._strike.setblocking(False)
        self._handlers = {number: signal.signal(number, _only_ring) for number in SIGNALS}
        self._wakeup = signal.set_wakeup_fd(self._strike.fileno(), warn_on_full_buffer=False)
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _at: TracebackType | None
    ) -> None:
        signal.set_wakeup_fd(self._wakeup)
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        self._hear.close()
        self._strike.close()

    def ring(self) -> None:
        """A task is over. For any thread."""
        self._strike.send(_TASK_OVER)

    def wait(self, seconds: float) -> tuple[int, bool]:
        """Sleep until something happens or ``seconds`` have passed: how many tasks ended, and if a signal came."""
        if not select.select([self._hear], [], [], seconds)[0]:
            return 0, False
        heard = self._hear.recv(4096)
        ended = heard.count(_TASK_OVER)
        return ended, len(heard) > ended


def _only_ring(_number: int, _frame: FrameType | None) -> None:
    """The signal's number goes into the bell's socket by itself."""
