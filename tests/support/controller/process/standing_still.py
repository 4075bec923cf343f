"""The controller, whose event loop stands still at each SIGUSR1: for as long as the environment says, or with the
interpreter, for ever.
"""

from __future__ import annotations

import os
import signal
import sys
import time

from controller.__main__ import main


def stand_still_here(_number: int, _frame: object) -> None:
    seconds = os.environ.get("STAND_STILL_SECONDS")
    if seconds is None:
        sum(range(10**18))  # in C, where no other thread has its turn
    end = time.monotonic() + float(seconds or 0)
    while time.monotonic() < end:
        pass


if __name__ == "__main__":
    signal.signal(signal.SIGUSR1, stand_still_here)
    if still := os.environ.get("STILL_SECONDS"):
        from controller.process import watchdog

        watchdog.STILL_SECONDS = float(still)
    sys.exit(main(["controller.app"]))
