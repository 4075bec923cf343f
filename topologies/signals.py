"""Ends that can be cleaned up after: SIGTERM and SIGHUP become exceptions, as SIGINT is one already."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType


@contextlib.contextmanager
def ending_signals() -> Iterator[None]:
    """Turn SIGTERM and SIGHUP into SystemExit (128 + number) meanwhile; does nothing outside the main thread.

    A signal that is ignored, as SIGHUP is under nohup, stays so.
    """

    def end(number: int, _frame: FrameType | None) -> None:
        raise SystemExit(128 + number)

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    heeded = [n for n in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(n) is not signal.SIG_IGN]
    before = {number: signal.signal(number, end) for number in heeded}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
