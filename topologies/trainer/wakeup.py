"""The sleep of the main thread. The end of a task, a signal or a deadline wakes it."""

from __future__ import annotations

import select
import signal
import socket
from types import FrameType, TracebackType

SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_TASK_OVER = b"\0"


class Wakeup:
    """A context of the main thread. Inside, ``SIGNALS`` wake the thread and do not end the process."""

    def __init__(self) -> None:
        self._reader, self._writer = socket.socketpair()

    def __enter__(self) -> Wakeup:
        self._writer.setblocking(False)
        self._handlers = {number: signal.signal(number, _ignore) for number in SIGNALS}
        self._previous_fd = signal.set_wakeup_fd(self._writer.fileno(), warn_on_full_buffer=False)
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _at: TracebackType | None
    ) -> None:
        signal.set_wakeup_fd(self._previous_fd)
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        self._reader.close()
        self._writer.close()

    def notify(self) -> None:
        """Report that a task has ended. Any thread may call this."""
        self._writer.send(_TASK_OVER)

    def wait(self, seconds: float) -> tuple[int, bool]:
        """Sleep until something happens or ``seconds`` have passed.

        Returns how many tasks ended, and whether a signal came.
        """
        if not select.select([self._reader], [], [], seconds)[0]:
            return 0, False
        received = self._reader.recv(4096)
        ended = received.count(_TASK_OVER)
        return ended, len(received) > ended


def _ignore(_number: int, _frame: FrameType | None) -> None:
    """Do nothing: Python itself writes the signal's number into the socket (``signal.set_wakeup_fd``)."""
