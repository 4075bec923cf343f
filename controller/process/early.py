"""Signals while the controller starts. Loads nothing but Python's own: it comes before the libraries are made green."""

from __future__ import annotations

import os
import signal
from types import FrameType

ENDS = (signal.SIGINT, signal.SIGTERM)
SIGHUP_IS_IGNORED = "SIGHUP is ignored: the settings are read at the start alone; restart the controller to read them"


def end_at_once() -> None:
    """Have the first SIGINT or SIGTERM end the process with status 0, and SIGHUP cost a line, until ``Signals.listen``.

    Nothing is acknowledged before that, and the journal's file is whole at any moment.
    """
    for number in ENDS:
        signal.signal(number, _end)
    # Who runs it under nohup ignores SIGHUP already.
    if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
        signal.signal(signal.SIGHUP, _say_ignored)


def _end(_number: int, _frame: FrameType | None) -> None:
    os._exit(0)


def _say_ignored(_number: int, _frame: FrameType | None) -> None:
    os.write(2, f"{SIGHUP_IS_IGNORED}\n".encode())
