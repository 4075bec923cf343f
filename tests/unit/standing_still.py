"""The controller, whose event loop stands still for as many seconds as the environment says, at each SIGUSR1."""

from __future__ import annotations

import os
import signal
import sys
import time

from controller.manager import main


def stand_still_here(_number: int, _frame: object) -> None:
    end = time.monotonic() + float(os.environ["STAND_STILL_SECONDS"])
    while time.monotonic() < end:
        pass


if __name__ == "__main__":
    signal.signal(signal.SIGUSR1, stand_still_here)
    if still := os.environ.get("STILL_SECONDS"):
        from controller import watchdog

        watchdog.STILL_SECONDS = float(still)
    sys.exit(main(["controller.app"]))
