"""Ends that can be cleaned up after: signals that become exceptions, and that wait while something is taken down."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Any


@contextlib.contextmanager
def ending_signals() -> Iterator[None]:
    """Turn SIGTERM and SIGHUP into SystemExit (128 + number), as SIGINT is KeyboardInterrupt already, meanwhile.

    Does nothing outside the main thread. A signal that is ignored, as SIGHUP is under nohup, stays so.
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


@contextlib.contextmanager
def held_off() -> Iterator[None]:
    """Let SIGINT, SIGTERM and SIGHUP wait meanwhile: what is being taken down must not stay half standing.

    After it those that came do what they would have done before, unless it has failed: then its own exception goes on.
    Does nothing outside the main thread, where no signal is handled.
    """
    came: list[int] = []

    def note(number: int, _frame: FrameType | None) -> None:
        came.append(number)

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    numbers = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
    before: dict[signal.Signals, Any] = {}
    # Blocked for the tools that are started meanwhile, which inherit that: Ctrl-C in a terminal goes to them as well.
    # Handled too, for another thread of this program may be given what is blocked in this one.
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, numbers)
    try:
        for number in numbers:
            before[number] = signal.signal(number, note)
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        for number, handler in before.items():
            signal.signal(number, handler)
    for noted in came:
        signal.raise_signal(noted)
