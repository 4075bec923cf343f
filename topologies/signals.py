"""Signals that become exceptions, and signals that wait while something is taken down."""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any


@contextlib.contextmanager
def ending_signals() -> Iterator[None]:
    """Inside the context SIGTERM and SIGHUP raise SystemExit (128 + number), as SIGINT raises KeyboardInterrupt.

    Does nothing outside the main thread. A signal that is ignored, as SIGHUP is under nohup, stays so.
    """

    def end(number: int, _frame: FrameType | None) -> None:
        raise SystemExit(128 + number)

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    converted = [n for n in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(n) is not signal.SIG_IGN]
    before = {number: signal.signal(number, end) for number in converted}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def exit_status(main: Callable[[], int]) -> int:
    """Runs a command and returns its exit status. If Ctrl-C stops it, writes ``stopped`` and returns 130."""
    try:
        return main()
    except KeyboardInterrupt:
        sys.stderr.write("stopped\n")
        return 128 + signal.SIGINT


@contextlib.contextmanager
def held_off() -> Iterator[None]:
    """Inside the context SIGINT, SIGTERM and SIGHUP wait, so that nothing is left half taken down.

    After the context the signals that came have their usual effect. Where the context raises, its own exception counts.
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
    # The tools that are started here inherit the blocked signals; Ctrl-C in a terminal goes to them as well. Handlers
    # are
    # needed too, because the kernel may give a signal that is blocked here to another thread of this program.
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
