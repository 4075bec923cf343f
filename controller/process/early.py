"""Signals while the controller starts. Imports the standard library only: it runs before eventlet patches anything."""

from __future__ import annotations

import os
import signal
from types import FrameType

ENDS = (signal.SIGINT, signal.SIGTERM)
SIGHUP_IS_IGNORED = "SIGHUP is ignored: the controller is starting, and reads its settings now"


def end_at_once() -> None:
    """Until ``Signals.listen``, let SIGINT and SIGTERM end the process with status 0, and let SIGHUP print a line.

    Nothing is acknowledged before that, and the journal's file is consistent at any moment.
    """
    for number in ENDS:
        signal.signal(number, _end)
    # Under nohup SIGHUP is ignored already.
    if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
        signal.signal(signal.SIGHUP, _say_ignored)


def _end(_number: int, _frame: FrameType | None) -> None:
    os._exit(0)


def _say_ignored(_number: int, _frame: FrameType | None) -> None:
    os.write(2, f"{SIGHUP_IS_IGNORED}\n".encode())
